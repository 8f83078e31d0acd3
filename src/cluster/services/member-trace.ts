/**
 * The trace of a member started with `join()`. Messages are recorded at the transport. Everything else is recorded
 * where it happens, under a name that includes its part, such as `channel.room.delivered`. A node has only one view in
 * a trace; here, that is the view of the replicated service.
 */
import type { NodeId, Tagged, Vocabulary } from "../../core/protocol.ts";
import { type Broadcast, broadcast } from "../../runtime/broadcast.ts";
import type { TraceSink } from "../../runtime/host-options.ts";
import type { Clock } from "../../runtime/platform/platform.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import type { LossReason, MessageId, TraceEntry } from "../../trace/entry.ts";
import type { Envelope } from "./envelope.ts";

/** The maximum number of lines queued for one listener. */
const CAPACITY = 10_000;
/** Kinds of entries that the member or the transport records, so parts must not. */
const NOT_OF_PARTS: ReadonlySet<TraceEntry["kind"]> = new Set(["start", "crash", "send", "receive", "lost"]);

/** Writes the trace while there are listeners. */
export class MemberTrace {
  /** The published entries. Null without admin pages, since there can be no listeners. */
  readonly stream: Broadcast<TraceEntry> | null;
  readonly #self: NodeId;
  readonly #clock: Pick<Clock, "stamp">;

  constructor(self: NodeId, clock: Pick<Clock, "stamp">, isServed: boolean) {
    this.#self = self;
    this.#clock = clock;
    this.stream = isServed ? broadcast(CAPACITY) : null;
  }

  get wanted(): boolean {
    return this.stream?.wanted === true;
  }

  started(): void {
    if (this.wanted) this.#publish({ kind: "start" });
  }

  sent(to: NodeId, envelope: Envelope, { id, lost }: SendResult): void {
    if (!this.wanted) return;
    const name = id();
    this.#publish({ kind: "send", id: name, to, message: messageIn(envelope) });
    if (lost !== null) this.lost(to, () => [name], lost);
  }

  received(from: NodeId, envelope: Envelope, id: () => MessageId): void {
    if (this.wanted) this.#publish({ kind: "receive", id: id(), from, message: messageIn(envelope) });
  }

  lost(to: NodeId, ids: () => readonly MessageId[], why: LossReason): void {
    if (this.wanted) for (const id of ids()) this.#publish({ kind: "lost", id, to, why });
  }

  /**
   * Returns the trace sink for the part at the given path.
   * @param isPicture whether the part's view is also the node's view
   */
  of(path: readonly string[], isPicture = false): TraceSink<Vocabulary> {
    const trace = this;
    return {
      get wanted() {
        return trace.wanted;
      },
      record(entry) {
        if (NOT_OF_PARTS.has(entry.kind) || (entry.kind === "view" && !isPicture)) return;
        if (entry.kind === "command" && path[0] === "detector") return; // Every sign of life is a command.
        trace.stream?.publish(named(entry, path));
      },
    };
  }

  #publish(action: Action): void {
    this.stream?.publish({ at: this.#clock.stamp(), node: this.#self, ...action });
  }
}

type Action = TraceEntry extends infer E ? (E extends TraceEntry ? Omit<E, "at" | "node"> : never) : never;

function named(entry: TraceEntry, path: readonly string[]): TraceEntry {
  switch (entry.kind) {
    case "event":
      return { ...entry, event: within(path, entry.event) };
    case "command":
      return { ...entry, command: within(path, entry.command) };
    case "timeout":
      return { ...entry, timer: [...path, entry.timer].join(".") };
    default:
      return entry;
  }
}

const within = (path: readonly string[], inner: Tagged): Tagged =>
  path.reduceRight<Tagged>((body, type) => ({ type, body }) as Tagged, inner);

function messageIn(envelope: Envelope): Tagged {
  if (!("content" in envelope)) return envelope;
  const path = "name" in envelope ? [envelope.type, envelope.name] : [envelope.type];
  return within(path, "body" in envelope.content ? envelope.content.body : envelope.content);
}

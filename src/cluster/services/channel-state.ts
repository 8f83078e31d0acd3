/**
 * Transfers the state that a program computes from a channel: sends it to members that join, and receives it from other
 * members. The algorithm chooses the position in the order and the sending member.
 */
import { UsageError } from "../../core/errors.ts";
import type { Tagged } from "../../core/protocol.ts";
import type { ChannelReader } from "./channel-reader.ts";
import { jsonOf } from "./channel-text.ts";
import { CoordinationError } from "./coordination-error.ts";
import type { AlgorithmEvent } from "./wired.ts";

/** The maximum size of the state as JSON, in UTF-8. */
const MAX_STATE_BYTES = 16 * 1024 * 1024;
/** The maximum number of parts that a receiver accepts. */
const MAX_PARTS = 300;

/** The channel that the state belongs to. */
interface Surroundings {
  /** The channel's name in error messages. */
  readonly what: string;
  /** Returns the maximum size of a part. */
  partBytes(): number;
  command(command: Tagged): void;
}

/** A message between two members: the state, or the reason why there is none. */
type Said = { state: unknown } | { refusal: string };

/** A channel's state in this process, and its transfer. */
export class ChannelState {
  readonly #channel: Surroundings;
  #reader: ChannelReader | null = null;
  #state: () => unknown = () => null;

  constructor(channel: Surroundings) {
    this.#channel = channel;
  }

  /**
   * Opens a stateful reader.
   * @throws UsageError if another stateful reader exists
   */
  open(reader: () => ChannelReader, state: () => unknown): ChannelReader {
    if (this.#reader !== null)
      throw new UsageError(
        "state-in-use",
        `expected at most one stateful reader of ${this.#channel.what} in this process, got a second: end the first one, or read without state`,
      );
    this.#reader = reader();
    this.#state = state;
    this.#reader.holdBack();
    this.#command({ type: "seek" });
    return this.#reader;
  }

  /** Called when a reader has ended. */
  ended(reader: ChannelReader): void {
    if (reader !== this.#reader) return;
    this.#reader = null;
    this.#command({ type: "lack" });
  }

  /** Called when the algorithm has started. Before that, the algorithm does not know about the reader. */
  begin(): void {
    if (this.#reader === null) return;
    this.#reader.holdBack();
    this.#command({ type: "seek" });
  }

  onEvent(event: AlgorithmEvent): void {
    const reader = this.#reader;
    if (reader === null) return; // The other members will learn that this member has no stateful reader.
    if (event.type === "waiting") reader.holdBack();
    else if (event.type === "placed") reader.place();
    else if (event.type === "founded") reader.goOn();
    else if (event.type === "wanted") reader.mark(() => this.#give(Number(event.view), Number(event.place)));
    else if (event.type === "state") this.#take(reader, (event.parts as string[]).join(""));
  }

  #give(view: number, place: number): void {
    this.#command({ type: "snapshot", view, place, parts: this.#parts() } as Tagged);
  }

  #parts(): string[] {
    const bytes = this.#channel.partBytes();
    try {
      const text = `{"state":${jsonOf(this.#state())}}`;
      requireSize(text, bytes);
      return partsOf(text, bytes);
    } catch (error) {
      const refusal = (error instanceof Error ? error.message : String(error)).replace(
        "the payload",
        "the result of state()",
      );
      return partsOf(JSON.stringify({ refusal: refusal.slice(0, 1_000) }), bytes);
    }
  }

  #take(reader: ChannelReader, text: string): void {
    const said = read(text);
    if ("state" in said) return reader.goOn({ state: said.state });
    const why = `the reader of ${this.#channel.what} could not get the state from another member: ${said.refusal}`;
    reader.fail(new CoordinationError("state-refused", "missed", why));
  }

  /** Sends the command in a microtask, because it must not be sent within a step of the algorithm. */
  #command(command: Tagged): void {
    queueMicrotask(() => this.#channel.command(command));
  }
}

function requireSize(text: string, partBytes: number): void {
  const most = Math.min(MAX_STATE_BYTES, MAX_PARTS * (partBytes - 3));
  const bytes = Buffer.byteLength(text);
  if (bytes > most)
    throw new UsageError(
      "payload-too-large",
      `expected the result of state() to be at most ${most} bytes of JSON, got ${bytes}`,
    );
}

/** Splits text into parts without splitting characters. */
export function partsOf(text: string, partBytes: number): string[] {
  const bytes = Buffer.from(text);
  const parts: string[] = [];
  for (let from = 0; from < bytes.length; ) {
    let to = Math.min(bytes.length, from + partBytes);
    while (to < bytes.length && ((bytes[to] as number) & 0xc0) === 0x80) to -= 1;
    parts.push(bytes.toString("utf8", from, to));
    from = to;
  }
  return parts;
}

/** Parses a message. It comes from another member, so it may be invalid. */
function read(text: string): Said {
  try {
    const said = JSON.parse(text) as Partial<{ state: unknown; refusal: unknown }> | null;
    if (said !== null && Object.hasOwn(said, "state")) return { state: said.state };
    if (typeof said?.refusal === "string") return { refusal: said.refusal };
  } catch {
    // The text is not JSON either.
  }
  return { refusal: "its response is invalid" };
}

/**
 * The state that a program computes from a channel: sends it to members that join, and receives it. The algorithm chooses
 * the position in the order, and the member.
 */
import { UsageError } from "../../core/errors.ts";
import type { Tagged } from "../../core/protocol.ts";
import type { ChannelReader } from "./channel-reader.ts";
import { jsonOf } from "./channel-text.ts";
import { CoordinationError } from "./coordination-error.ts";
import type { AlgorithmEvent } from "./wired.ts";

/** The limit of its JSON, in UTF-8. */
const MAX_STATE_BYTES = 16 * 1024 * 1024;
/** The number of parts that a receiver accepts. */
const MAX_PARTS = 300;

/** The channel, for its state. */
interface Surroundings {
  /** The name in error messages. */
  readonly what: string;
  /** The limit of a part. */
  partBytes(): number;
  command(command: Tagged): void;
}

/** The message from one member to another: the state, or why there is none. */
type Said = { state: unknown } | { refusal: string };

export class ChannelState {
  readonly #channel: Surroundings;
  #reader: ChannelReader | null = null;
  #state: () => unknown = () => null;

  constructor(channel: Surroundings) {
    this.#channel = channel;
  }

  /** A program begins to read with a state. @throws UsageError if another reader with a state exists. */
  open(reader: () => ChannelReader, state: () => unknown): ChannelReader {
    if (this.#reader !== null)
      throw new UsageError(
        "state-in-use",
        `expected one reader with a state of ${this.#channel.what} in this process, got a second: end the first one, or read without a state`,
      );
    this.#reader = reader();
    this.#state = state;
    this.#reader.holdBack();
    this.#command({ type: "seek" });
    return this.#reader;
  }

  /** A reader has ended. */
  ended(reader: ChannelReader): void {
    if (reader !== this.#reader) return;
    this.#reader = null;
    this.#command({ type: "lack" });
  }

  /** The algorithm has started, with no knowledge of the reader. */
  begin(): void {
    if (this.#reader === null) return;
    this.#reader.holdBack();
    this.#command({ type: "seek" });
  }

  onEvent(event: AlgorithmEvent): void {
    const reader = this.#reader;
    if (reader === null) return; // The other members will learn that this one has no reader with a state.
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
    const why = `the reader of ${this.#channel.what} got no state from the member that has it: ${said.refusal}`;
    reader.fail(new CoordinationError("state-refused", "missed", why));
  }

  /** Not from within a step of the algorithm. */
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

/** Splits between characters. */
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

/** It comes from another member, so it may be invalid. */
function read(text: string): Said {
  try {
    const said = JSON.parse(text) as Partial<{ state: unknown; refusal: unknown }> | null;
    if (said !== null && Object.hasOwn(said, "state")) return { state: said.state };
    if (typeof said?.refusal === "string") return { refusal: said.refusal };
  } catch {
    // It is not JSON either.
  }
  return { refusal: "its answer is not valid" };
}

/**
 * Reassembles messages that are longer than a datagram from their fragments. Incomplete messages are limited in number and
 * bytes, and are abandoned after a while; the sender repeats the content in another message, or not at all. Only the last
 * fragment of a message may be short, so that a message contains at most one tiny fragment.
 */
import { MalformedBytes } from "../wire.ts";

/** The size of a fragment apart from its bytes: three naturals. */
export const FRAGMENT_EXTRA_BYTES = 24;

export interface FragmentLimits {
  readonly maxMessageBytes: number;
  /** The minimum for each fragment of a message except the last. */
  readonly minFragmentBytes: number;
  /** The limit of all fragments of incomplete messages. */
  readonly maxBytes: number;
  readonly maxMessages: number;
  /** How many calls of `age` an incomplete message survives. */
  readonly maxAge: number;
}

interface Incomplete {
  /** Emptied when the message is complete. The message stays known for a while, since copies of its fragments may follow. */
  fragments: (Buffer | undefined)[];
  readonly count: number;
  arrived: number;
  bytes: number;
  age: number;
}

export class Fragments {
  readonly #limits: FragmentLimits;
  /** The number of abandoned messages. */
  abandoned = 0;
  #bytes = 0;
  /** By number, oldest first. */
  readonly #messages = new Map<number, Incomplete>();

  constructor(limits: FragmentLimits) {
    this.#limits = limits;
  }

  /**
   * Takes fragment `index` of `count`. Returns the message if this was the last missing fragment. @throws MalformedBytes if it
   * contradicts others
   */
  take(number: number, index: number, count: number, fragment: Buffer): Buffer | null {
    const { maxMessageBytes, minFragmentBytes } = this.#limits;
    const maxCount = Math.ceil(maxMessageBytes / minFragmentBytes);
    const minBytes = index < count - 1 ? minFragmentBytes : 1;
    if (count < 2 || count > maxCount || index >= count || fragment.length < minBytes)
      throw new MalformedBytes(`a message has a fragment ${index} of ${count} with ${fragment.length} bytes`);
    const message = this.#messages.get(number) ?? this.#begin(number, count);
    if (message.count !== count)
      throw new MalformedBytes(`a message has ${count} fragments, and had ${message.count} before`);
    if (message.arrived === count || message.fragments[index] !== undefined) return null; // A duplicate.
    if (message.bytes + fragment.length > maxMessageBytes)
      throw new MalformedBytes(`the fragments of a message have more than ${maxMessageBytes} bytes`);
    message.fragments[index] = Buffer.from(fragment); // Do not keep the datagram itself alive.
    message.arrived += 1;
    message.bytes += fragment.length;
    this.#bytes += fragment.length;
    if (message.arrived < count) {
      this.#makeRoom();
      return null;
    }
    const whole = Buffer.concat(message.fragments as Buffer[]);
    this.#free(message);
    return whole;
  }

  /** Ages all messages, and drops those that are too old. */
  age(): void {
    for (const [number, message] of this.#messages) {
      message.age += 1;
      if (message.age > this.#limits.maxAge) this.#forget(number, message);
    }
  }

  #begin(number: number, count: number): Incomplete {
    const message: Incomplete = { fragments: [], count, arrived: 0, bytes: 0, age: 0 };
    this.#messages.set(number, message);
    if (this.#messages.size > this.#limits.maxMessages) this.#forgetOldest();
    return message;
  }

  #makeRoom(): void {
    while (this.#bytes > this.#limits.maxBytes) this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const [number, message] of this.#messages) return this.#forget(number, message);
  }

  #forget(number: number, message: Incomplete): void {
    if (message.arrived < message.count) this.abandoned += 1;
    this.#free(message);
    this.#messages.delete(number);
  }

  #free(message: Incomplete): void {
    this.#bytes -= message.bytes;
    message.bytes = 0;
    message.fragments = [];
  }
}

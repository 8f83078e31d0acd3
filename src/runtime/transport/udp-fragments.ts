/**
 * Reassembles messages that are longer than a datagram from their fragments. Incomplete messages are limited in number
 * and size, and are abandoned after a while. The sender may then repeat the content in a new message. Only the last
 * fragment of a message may be short, so that each message has at most one tiny fragment.
 */
import { MalformedBytes } from "../wire.ts";

/** The size of a fragment without its bytes: three natural numbers. */
export const FRAGMENT_EXTRA_BYTES = 24;

/** Limits on reassembly. */
export interface FragmentLimits {
  readonly maxMessageBytes: number;
  /** The minimum size of every fragment of a message except the last. */
  readonly minFragmentBytes: number;
  /** The maximum total size of all fragments of incomplete messages. */
  readonly maxBytes: number;
  readonly maxMessages: number;
  /** How many calls to `age` an incomplete message survives. */
  readonly maxAge: number;
}

interface Incomplete {
  /**
   * The fragments, which are dropped when the message is complete. The message itself is remembered for a while, since
   * copies of its fragments may follow.
   */
  fragments: (Buffer | undefined)[];
  readonly count: number;
  arrived: number;
  bytes: number;
  age: number;
}

/** The incomplete messages from one run of a sender. */
export class Fragments {
  readonly #limits: FragmentLimits;
  /** The number of abandoned messages. */
  abandoned = 0;
  #bytes = 0;
  /** Messages by number, oldest first. */
  readonly #messages = new Map<number, Incomplete>();

  constructor(limits: FragmentLimits) {
    this.#limits = limits;
  }

  /**
   * Adds fragment `index` of `count`. Returns the message if this was the last missing fragment.
   * @throws MalformedBytes if it contradicts other fragments
   */
  take(number: number, index: number, count: number, fragment: Buffer): Buffer | null {
    const { maxMessageBytes, minFragmentBytes } = this.#limits;
    const maxCount = Math.ceil(maxMessageBytes / minFragmentBytes);
    const minBytes = index < count - 1 ? minFragmentBytes : 1;
    if (count < 2 || count > maxCount || index >= count || fragment.length < minBytes)
      throw new MalformedBytes(`fragment ${index} of ${count} of a message has ${fragment.length} bytes`);
    const message = this.#messages.get(number) ?? this.#begin(number, count);
    if (message.count !== count)
      throw new MalformedBytes(`a message has ${count} fragments, but earlier fragments declared ${message.count}`);
    // The fragment is a duplicate.
    if (message.arrived === count || message.fragments[index] !== undefined) return null;
    if (message.bytes + fragment.length > maxMessageBytes)
      throw new MalformedBytes(`the fragments of a message have more than ${maxMessageBytes} bytes`);
    // Copy the fragment, so that it does not keep the whole datagram alive.
    message.fragments[index] = Buffer.from(fragment);
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

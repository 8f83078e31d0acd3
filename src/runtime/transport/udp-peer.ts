/**
 * A member's knowledge of another member that may send it datagrams. An attacker can replay old datagrams. A run of the
 * peer's process is therefore trusted only once its `hello` has named this member's own run, which shows that the hello
 * was sent after this process started. Until then, a `hello` from a different run changes nothing, so replayed ones do
 * no harm. If datagrams are sealed, nothing that a run sent before that `hello` is accepted. Nothing from a superseded
 * run is ever accepted.
 */
import type { NodeId } from "../../core/protocol.ts";
import { type Heard, type Objection, OVERHEAD_BYTES, type RunKey } from "./udp-datagram.ts";
import { FRAGMENT_EXTRA_BYTES, Fragments } from "./udp-fragments.ts";
import { MIN_DATAGRAM_BYTES } from "./udp-place.ts";

/** A peer is considered silent after this many checks without a datagram. */
const MAX_SILENCE = 8;
const MAX_RETIRED = 1_000;
const MIB = 2 ** 20;
/** The minimum size of a fragment. When a message is fragmented, every datagram except the last is filled. */
const MIN_FRAGMENT_BYTES = MIN_DATAGRAM_BYTES - OVERHEAD_BYTES - FRAGMENT_EXTRA_BYTES;

interface Run {
  readonly number: number;
  readonly key: RunKey | null;
  readonly seen: SeenNumbers;
  readonly fragments: Fragments;
  /** The number of the latest accepted `hello`. */
  latestHello: number;
}

export class UdpPeer {
  readonly #ownRun: number;
  readonly #maxMessageBytes: number;
  readonly #keyOf: (node: NodeId, run: number) => RunKey | null;
  /** The trusted run. */
  #run: Run | null = null;
  /** A run that sends datagrams but has not yet named this member's run. */
  #candidate: Run | null = null;
  readonly #retired: number[] = [];
  #hearsUs = false;
  #silence = MAX_SILENCE;
  /** The number of consecutive checks that found the peer connected over TCP but silent on UDP. */
  deafLooks = 0;

  constructor(
    readonly node: NodeId,
    ownRun: number,
    maxMessageBytes: number,
    keyOf: (node: NodeId, run: number) => RunKey | null,
  ) {
    this.#ownRun = ownRun;
    this.#maxMessageBytes = maxMessageBytes;
    this.#keyOf = keyOf;
  }

  /**
   * Whether datagrams work in both directions: this member receives from the peer, and the peer's hellos name this
   * member.
   */
  get isReached(): boolean {
    return this.#run !== null && this.#hearsUs && this.#silence < MAX_SILENCE;
  }

  get isHeard(): boolean {
    return this.#run !== null && this.#silence < MAX_SILENCE;
  }

  /** The peer's entries in this member's own `hello`. */
  get heard(): Heard[] {
    const runs = this.isHeard ? [this.#run, this.#candidate] : [this.#candidate];
    return runs.flatMap((run) => (run === null ? [] : [{ node: this.node, run: run.number }]));
  }

  get fragments(): Fragments | null {
    return this.#run?.fragments ?? null;
  }

  /** Returns the key for one of the peer's runs. */
  keyFor(run: number): RunKey | null {
    return this.#known(run)?.key ?? this.#keyOf(this.node, run);
  }

  /**
   * Returns why a datagram that was really sent by the peer is rejected, or null if it is accepted. A repeated number
   * means that the datagram is a copy.
   */
  objection(run: number, number: number, isSealed: boolean): Objection | null {
    if (this.#retired.includes(run)) return ["old-run", "it comes from an earlier run of the process"];
    if (this.#run?.number !== run) return null;
    this.#silence = 0;
    return !isSealed || this.#run.seen.isNew(number)
      ? null
      : ["replayed", `its number ${number} has already been received`];
  }

  isTrusted(run: number): boolean {
    return this.#run?.number === run;
  }

  /** Handles the peer's `hello`. Returns whether to reply to it, which is the case if it contains new information. */
  greet(run: number, number: number, named: readonly Heard[], self: NodeId): boolean {
    const namesUs = named.some((heard) => heard.node === self && heard.run === this.#ownRun);
    if (this.#run?.number === run) return this.#greetAgain(this.#run, number, namesUs);
    const isNew = this.#candidate?.number !== run;
    const candidate = this.#known(run) ?? this.#begin(run);
    if (!namesUs) {
      this.#candidate = candidate;
      return isNew;
    }
    candidate.seen.closeUpTo(number); // An attacker may have recorded anything sent before this.
    candidate.latestHello = number;
    this.#trust(candidate);
    return true;
  }

  /**
   * Handles another `hello` from the trusted run. If numbers cannot be forged, a `hello` with a lower number either was
   * overtaken by a later one or was sent before the run was trusted.
   */
  #greetAgain(run: Run, number: number, namesUs: boolean): boolean {
    if (run.key !== null && number < run.latestHello) return false;
    run.latestHello = number;
    const isNews = namesUs !== this.#hearsUs;
    this.#hearsUs = namesUs;
    return isNews;
  }

  /** Ages the peer's state. Returns the number of incomplete messages that were abandoned. */
  look(): number {
    this.#silence = Math.min(this.#silence + 1, MAX_SILENCE);
    const { fragments } = this;
    if (fragments === null) return 0;
    const before = fragments.abandoned;
    fragments.age();
    return fragments.abandoned - before;
  }

  #known(run: number): Run | null {
    return [this.#run, this.#candidate].find((known) => known?.number === run) ?? null;
  }

  #begin(number: number): Run {
    const maxMessageBytes = this.#maxMessageBytes;
    const maxBytes = 4 * Math.max(maxMessageBytes, MIB);
    const limits = { maxMessageBytes, maxBytes, minFragmentBytes: MIN_FRAGMENT_BYTES, maxMessages: 1_024, maxAge: 8 };
    const [key, fragments] = [this.#keyOf(this.node, number), new Fragments(limits)];
    return { number, key, seen: new SeenNumbers(), fragments, latestHello: 0 };
  }

  #trust(run: Run): void {
    if (this.#run !== null) {
      this.#retired.push(this.#run.number);
      if (this.#retired.length > MAX_RETIRED) this.#retired.shift();
    }
    this.#run = run;
    this.#candidate = null;
    this.#hearsUs = true;
    this.#silence = 0;
  }
}

/** Tracks which of the most recent numbers have been seen. All older numbers count as seen. */
export class SeenNumbers {
  #highest = -1;
  /** All numbers up to this one count as seen. */
  #floor = -1;
  readonly #bits = new Uint8Array(SEEN / 8);

  /** Marks all numbers up to this one as seen. */
  closeUpTo(number: number): void {
    this.#floor = Math.max(this.#floor, number);
  }

  /** Returns whether the number is new, and marks it as seen. */
  isNew(number: number): boolean {
    if (number <= Math.max(this.#floor, this.#highest - SEEN)) return false;
    if (number > this.#highest) this.#moveTo(number);
    const at = number % SEEN;
    const bit = 1 << (at % 8);
    const byte = at >> 3;
    if (((this.#bits[byte] as number) & bit) !== 0) return false;
    this.#bits[byte] = (this.#bits[byte] as number) | bit;
    return true;
  }

  #moveTo(number: number): void {
    if (number - this.#highest >= SEEN) this.#bits.fill(0);
    else
      for (let skipped = this.#highest + 1; skipped <= number; skipped++) {
        const at = skipped % SEEN;
        this.#bits[at >> 3] = (this.#bits[at >> 3] as number) & ~(1 << (at % 8));
      }
    this.#highest = number;
  }
}

/** The size of the window. Must be a multiple of 8. */
const SEEN = 8_192;

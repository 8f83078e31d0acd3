/**
 * What a member knows of one other member whose datagrams it may hear. Anybody can send again what was sent long ago, so
 * a run of the peer's process is trusted once it has named this member's own run in a `hello`: that was said after this
 * process began. Until then a `hello` of another run changes nothing between the two, so that old ones, sent again, do no
 * harm. Where datagrams are sealed, nothing that a run sent before that `hello` is taken; of a run that another has
 * followed, nothing at all.
 */
import type { NodeId } from "../../core/protocol.ts";
import { type Heard, type Objection, OVERHEAD_BYTES, type RunKey } from "./udp-datagram.ts";
import { FRAGMENT_EXTRA_BYTES, Fragments } from "./udp-fragments.ts";
import { MIN_DATAGRAM_BYTES } from "./udp-place.ts";

/** How many looks may go by without a datagram before a peer is held to be out of hearing. */
const MAX_SILENCE = 8;
const MAX_RETIRED = 1_000;
const MIB = 2 ** 20;
/** Who cuts a message into fragments fills a datagram with each of them but the last. */
const MIN_FRAGMENT_BYTES = MIN_DATAGRAM_BYTES - OVERHEAD_BYTES - FRAGMENT_EXTRA_BYTES;

interface Run {
  readonly number: number;
  readonly key: RunKey | null;
  readonly seen: SeenNumbers;
  readonly fragments: Fragments;
  /** The number of the latest `hello` that was taken. */
  latestHello: number;
}

export class UdpPeer {
  readonly #ownRun: number;
  readonly #maxMessageBytes: number;
  readonly #keyOf: (node: NodeId, run: number) => RunKey | null;
  /** The run that is trusted. */
  #run: Run | null = null;
  /** A run that is heard of, and that has not named ours yet. */
  #candidate: Run | null = null;
  readonly #retired: number[] = [];
  #hearsUs = false;
  #silence = MAX_SILENCE;
  /** At how many looks in turn it was linked otherwise, and out of hearing. */
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

  /** Datagrams go both ways: it hears this member, and this member knows so because it hears the peer. */
  get isReached(): boolean {
    return this.#run !== null && this.#hearsUs && this.#silence < MAX_SILENCE;
  }

  get isHeard(): boolean {
    return this.#run !== null && this.#silence < MAX_SILENCE;
  }

  /** What this member's own `hello` says of the peer. */
  get heard(): Heard[] {
    const runs = this.isHeard ? [this.#run, this.#candidate] : [this.#candidate];
    return runs.flatMap((run) => (run === null ? [] : [{ node: this.node, run: run.number }]));
  }

  get fragments(): Fragments | null {
    return this.#run?.fragments ?? null;
  }

  /** The key of one of its runs. */
  keyFor(run: number): RunKey | null {
    return this.#known(run)?.key ?? this.#keyOf(this.node, run);
  }

  /** Why a datagram that the peer did send is not taken; a number that comes twice is a copy. */
  objection(run: number, number: number, isSealed: boolean): Objection | null {
    if (this.#retired.includes(run)) return ["old-run", "it comes from a run of the process that another has followed"];
    if (this.#run?.number !== run) return null;
    this.#silence = 0;
    return !isSealed || this.#run.seen.isNew(number) ? null : ["replayed", `its number ${number} was there before`];
  }

  isTrusted(run: number): boolean {
    return this.#run?.number === run;
  }

  /** The peer's `hello`. Returns whether it has to be answered, since it brings news. */
  greet(run: number, number: number, named: readonly Heard[], self: NodeId): boolean {
    const namesUs = named.some((heard) => heard.node === self && heard.run === this.#ownRun);
    if (this.#run?.number === run) return this.#greetAgain(this.#run, number, namesUs);
    const isNew = this.#candidate?.number !== run;
    const candidate = this.#known(run) ?? this.#begin(run);
    if (!namesUs) {
      this.#candidate = candidate;
      return isNew;
    }
    candidate.seen.closeUpTo(number); // What was said before this, anybody can have heard and kept.
    candidate.latestHello = number;
    this.#trust(candidate);
    return true;
  }

  /** Where numbers cannot be forged, an older `hello` was overtaken, or is one from before the run was trusted. */
  #greetAgain(run: Run, number: number, namesUs: boolean): boolean {
    if (run.key !== null && number < run.latestHello) return false;
    run.latestHello = number;
    const isNews = namesUs !== this.#hearsUs;
    this.#hearsUs = namesUs;
    return isNews;
  }

  /** Time goes by. Returns how many incomplete messages were given up. */
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

/** Which of the latest numbers have been there. What is older than all of those counts as seen. */
export class SeenNumbers {
  #highest = -1;
  /** Up to this one all count as seen. */
  #floor = -1;
  readonly #bits = new Uint8Array(SEEN / 8);

  /** None of these is new any more. */
  closeUpTo(number: number): void {
    this.#floor = Math.max(this.#floor, number);
  }

  /** Whether the number has not been there before; from now on it has. */
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

/** A multiple of 8. */
const SEEN = 8_192;

/**
 * Sends datagrams. Each is sent once for all receivers, unless the fault injector treats some receivers differently.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { LossReason } from "../../trace/entry.ts";
import type { FaultInjector } from "../fault-injector.ts";
import type { Log } from "../log.ts";
import type { Counts } from "../metrics.ts";
import type { Timer, Timers } from "../platform/platform.ts";
import type { DatagramFormat, DatagramKind, RunKey } from "./udp-datagram.ts";

export interface OutletOptions {
  readonly timers: Timers;
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
  readonly run: number;
  readonly format: DatagramFormat;
  readonly injector: FaultInjector;
  readonly counts: Counts;
  readonly log: Log;
  readonly put: (datagram: Buffer) => void;
}

/** The maximum number of datagrams that the fault injector can delay at the same time. Any further ones are lost. */
const MAX_HELD = 10_000;

export class UdpOutlet {
  readonly #options: OutletOptions;
  readonly #key: RunKey | null;
  readonly #held = new Set<Timer>();
  #datagrams = 0;
  #isClosed = false;

  constructor(options: OutletOptions) {
    this.#options = options;
    this.#key = options.format.keyOf(options.self, options.run);
  }

  /**
   * Sends a datagram to all members. For each member, the fault injector decides how many copies arrive and how late.
   * Returns the members for which the datagram was dropped.
   */
  transmit(kind: DatagramKind, body: Buffer): ReadonlyMap<NodeId, LossReason> {
    const { injector } = this.#options;
    const lost = new Map<NodeId, LossReason>();
    if (injector.isCalm) {
      this.#emit(kind, body, []);
      return lost;
    }
    const later: NodeId[] = [];
    for (const to of this.#options.peers) {
      const verdict = injector.datagramVerdict(to);
      if (typeof verdict === "string") lost.set(to, verdict);
      else {
        const copies = verdict.filter((delayMs) => delayMs === 0 || this.#emitLater(kind, body, to, delayMs));
        if (copies.length === 0) lost.set(to, "overflow");
        else if (!copies.includes(0)) later.push(to);
      }
    }
    const excluded = [...lost.keys(), ...later];
    if (excluded.length < this.#options.peers.length) this.#emit(kind, body, excluded);
    return lost;
  }

  /** Sends a datagram after a delay. Returns false if too many datagrams are already delayed. */
  #emitLater(kind: DatagramKind, body: Buffer, to: NodeId, delayMs: number): boolean {
    if (this.#held.size >= MAX_HELD) {
      const text = `the fault injector holds back ${MAX_HELD} datagrams: further ones are dropped`;
      this.#options.log.once("held", text, { event: "fault-injector-full" });
      return false;
    }
    const timer = this.#options.timers.after(delayMs, () => {
      this.#held.delete(timer);
      const others = this.#options.peers.filter((peer) => peer !== to);
      this.#emit(kind, body, others);
    });
    this.#held.add(timer);
    return true;
  }

  #emit(kind: DatagramKind, body: Buffer, excluded: readonly NodeId[]): void {
    this.#datagrams += 1;
    const { self: from, run, format, counts, put } = this.#options;
    const datagram = format.build({ kind, from, run, number: this.#datagrams, excluded }, body, this.#key);
    counts.datagramsSent += 1;
    counts.bytesSent += datagram.length;
    put(datagram);
  }

  noteUnsent(error: NodeJS.ErrnoException): void {
    if (this.#isClosed) return;
    this.#options.counts.datagramsUnsent += 1;
    const hint = error.code === "EMSGSIZE" ? ": maxDatagramBytes exceeds the limit of this interface" : "";
    const text = `a datagram could not be sent (${error.message})${hint}`;
    this.#options.log.once(`unsent ${error.code}`, text, { event: "datagram-unsent", reason: error.code ?? "unknown" });
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#held) this.#options.timers.cancel(timer);
  }
}

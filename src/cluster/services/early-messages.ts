/**
 * Messages of instances whose sender has not announced them here: they wait for the announcement, which is on its way, or was lost
 * with an earlier run of this process.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Log } from "../../runtime/log.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { InstanceEnvelope } from "./algorithms.ts";
import type { Transport } from "./channel-api.ts";

/** How many wait at most, and how much of them; more are dropped. */
const MAX_EARLY = 10_000;
const MAX_EARLY_BYTES = 4 * 1024 * 1024;
/** The sender of one is asked for the announcement, and has so long to answer. */
const EARLY_MS = 10_000;

export interface Arrived {
  readonly from: NodeId;
  readonly envelope: InstanceEnvelope;
  readonly by: Transport;
}

interface Held extends Arrived {
  readonly bytes: number;
}

export class EarlyMessages {
  readonly #platform: Platform;
  readonly #log: Log;
  readonly #ask: (arrived: Arrived) => void;
  readonly #held = new Map<string, Held[]>();
  #count = 0;
  #bytes = 0;

  constructor(platform: Platform, log: Log, ask: (arrived: Arrived) => void) {
    this.#platform = platform;
    this.#log = log;
    this.#ask = ask;
  }

  hold(key: string, arrived: Arrived): void {
    const { from, envelope } = arrived;
    const held = this.#held.get(key) ?? [];
    const bytes = JSON.stringify(envelope).length;
    if (this.#count >= MAX_EARLY || this.#bytes + bytes > MAX_EARLY_BYTES) {
      const text = `${this.#count} messages of unknown elections, locks and channels wait, of ${this.#bytes} bytes: more are dropped`;
      return this.#log.once("too-early", text, { event: "too-early", bytes: this.#bytes });
    }
    if (held.length === 0) {
      this.#held.set(key, held);
      this.#platform.timers.after(EARLY_MS, () => this.#giveUp(held, key)).unref();
    }
    if (!held.some((other) => other.from === from)) this.#ask(arrived);
    held.push({ ...arrived, bytes });
    this.#count += 1;
    this.#bytes += bytes;
  }

  take(key: string): readonly Arrived[] {
    const held = this.#held.get(key) ?? [];
    this.#held.delete(key);
    this.#count -= held.length;
    this.#bytes -= held.reduce((sum, { bytes }) => sum + bytes, 0);
    return held;
  }

  /** What a member has said of that name, or of any, is for nobody any more. */
  dropOf(node: NodeId, key: string | null = null): void {
    for (const of of key === null ? [...this.#held.keys()] : [key]) {
      const held = this.#held.get(of) ?? [];
      const left = held.filter(({ from }) => from !== node);
      if (left.length === held.length) continue;
      const dropped = held.filter(({ from }) => from === node);
      this.#count -= dropped.length;
      this.#bytes -= dropped.reduce((sum, { bytes }) => sum + bytes, 0);
      held.splice(0, held.length, ...left); // The same list: its time runs on.
      if (left.length === 0) this.#held.delete(of);
    }
  }

  clear(): void {
    this.#held.clear();
  }

  #giveUp(held: readonly Held[], key: string): void {
    if (this.#held.get(key) !== held) return; // They have been taken, and others have come since.
    this.take(key);
    const text = `dropped ${held.length} messages of ${key}, since nobody has announced it within ${EARLY_MS} ms`;
    this.#log.once("unannounced", text, { event: "unannounced", messages: held.length });
  }
}

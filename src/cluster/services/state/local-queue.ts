/** A queue and a barrier in this process. */
import type { AcquireOptions } from "../api.ts";
import { CoordinationError } from "../coordination-error.ts";
import { requireOptions } from "../known-options.ts";
import { OwnTenure } from "../tenure.ts";
import type { Arrivals } from "./arrivals.ts";
import { callRules } from "./calls.ts";
import { limits } from "./limits.ts";
import { acquireRules } from "./named-grants.ts";
import { isPassing } from "./refusals.ts";
import type { Service } from "./service.ts";
import type { Barrier, CallOptions, QueueItem, SharedQueue } from "./state-api.ts";
import { parsedValue, textOf } from "./value-text.ts";
import type { Place, Waits } from "./waits.ts";

/** The object that `queue()` returns. */
export class LocalQueue<T> implements SharedQueue<T> {
  readonly #service: Service;
  readonly #waits: Waits;
  constructor(
    readonly name: string,
    service: Service,
    waits: Waits,
  ) {
    this.#service = service;
    this.#waits = waits;
  }

  async add(item: T, options: CallOptions = {}): Promise<number> {
    requireOptions("add", options, callRules);
    const value = textOf(item, "the item", limits.valueBytes);
    return this.#service.call({ ...options, what: `add() to ${this.#what}`, changes: true }, async (isWanted) => {
      return (await this.#service.submit({ type: "enqueue", name: this.name, value }, isWanted)).result.item;
    });
  }

  async take(options: AcquireOptions = {}): Promise<QueueItem<T>> {
    requireOptions("take", options, acquireRules);
    return (await this.#waits.wait(this.#place(), options)).held;
  }

  async size(options: CallOptions = {}): Promise<number> {
    requireOptions("size", options, callRules);
    return this.#service.call({ ...options, what: `size() of ${this.#what}`, changes: false }, async () => {
      return (await this.#service.query({ type: "backlog", name: this.name })).answer.items;
    });
  }

  get #what(): string {
    return `the queue "${this.name}"`;
  }

  #place(): Place<TakenItem<T>> {
    const { name } = this;
    const what = `an item from ${this.#what}`;
    return {
      name: `queue/${name}`,
      what,
      ask: (wait) => ({ type: "take", name, wait }),
      giveUp: (wait) => ({ type: "stopTaking", name, wait }),
      hold: (token, value, giveBack) =>
        new TakenItem<T>({ queue: name, what, token, text: value, giveBack }, this.#service, this.#waits),
    };
  }
}

interface Taken {
  readonly queue: string;
  readonly what: string;
  readonly token: number;
  /** The item as stored in the log. */
  readonly text: string;
  readonly giveBack: () => void;
}

class TakenItem<T> extends OwnTenure implements QueueItem<T> {
  readonly #taken: Taken;
  readonly #service: Service;
  readonly #waits: Waits;
  /** The pending or completed removal. It is submitted only once for all callers that wait for it. */
  #finishing: Promise<void> | null = null;
  #read: { readonly item: T } | null = null;

  constructor(taken: Taken, service: Service, waits: Waits) {
    super({ platform: service.platform, token: taken.token, what: taken.what, onOverdue: taken.giveBack });
    this.#taken = taken;
    this.#service = service;
    this.#waits = waits;
  }

  /** Parses the item when it is read. If another program has written invalid text, only the reader fails. */
  get item(): T {
    this.#read ??= { item: parsedValue(this.#taken.text) as T };
    return this.#read.item;
  }

  async done(options: CallOptions = {}): Promise<void> {
    requireOptions("done", options, callRules);
    if (this.#finishing === null && !this.isHeld) throw this.signal.reason;
    const call = { ...options, what: `done() of ${this.#taken.what}`, changes: true };
    await this.#service.call(call, () => (this.#finishing ??= this.#finish()));
  }

  async #finish(): Promise<void> {
    const { queue: name, what } = this.#taken;
    try {
      await this.#service.submit({ type: "finish", name, token: this.token }, () => this.isHeld);
    } catch (error) {
      this.#finishing = null; // The removal may be submitted again while the item is held.
      throw isPassing(error) && !this.isHeld ? this.signal.reason : error;
    }
    this.#waits.forget(this);
    this.end(new CoordinationError("released", "released", `${what} is done`));
  }

  giveBack(): Promise<void> {
    this.end(new CoordinationError("released", "released", `${this.#taken.what} was given back`));
    this.#taken.giveBack();
    return Promise.resolve();
  }
}

/** The object that `barrier()` returns. */
export class LocalBarrier implements Barrier {
  readonly #arrivals: Arrivals;
  constructor(
    readonly name: string,
    readonly parties: number,
    arrivals: Arrivals,
  ) {
    this.#arrivals = arrivals;
  }

  async arrive(options: AcquireOptions = {}): Promise<number> {
    requireOptions("arrive", options, acquireRules);
    return this.#arrivals.arrive(this, options);
  }
}

/** A shared counter, as used in this process. */
import * as may from "../known-options.ts";
import { requireOptions } from "../known-options.ts";
import { callRules, type IsWanted } from "./calls.ts";
import type { Service } from "./service.ts";
import type { CallOptions, SharedCounter } from "./state-api.ts";

const whole: may.Rule = {
  wanted: `a whole number between ${-Number.MAX_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`,
  accepts: Number.isSafeInteger,
};

/** The object that `counter()` returns. */
export class LocalCounter implements SharedCounter {
  readonly #service: Service;
  constructor(
    readonly name: string,
    service: Service,
  ) {
    this.#service = service;
  }

  get(options: CallOptions = {}): Promise<number> {
    return this.#call("get", false, options, async (isWanted) => {
      return (await this.#service.query({ type: "count", name: this.name }, isWanted)).answer.value;
    });
  }

  async add(by = 1, options: CallOptions = {}): Promise<number> {
    may.requireRule("by of add()", by, may.needed(whole));
    return this.#call("add", true, options, async (isWanted) => {
      return (await this.#service.submit({ type: "add", name: this.name, by }, isWanted)).result.value;
    });
  }

  async set(value: number, options: CallOptions = {}): Promise<void> {
    may.requireRule("the value of set()", value, may.needed(whole));
    await this.#call("set", true, options, (isWanted) =>
      this.#service.submit({ type: "set", name: this.name, to: value }, isWanted),
    );
  }

  async #call<T>(
    name: string,
    changes: boolean,
    options: CallOptions,
    answer: (isWanted: IsWanted) => Promise<T>,
  ): Promise<T> {
    requireOptions(name, options, callRules);
    return this.#service.call({ ...options, what: `${name}() of the counter "${this.name}"`, changes }, answer);
  }
}

/** Why an engine refuses or does not answer, as its calls of late were told: of each kind of call, what has succeeded since is forgotten. */
import type { Platform } from "../runtime/platform/platform.ts";
import type { Store, StoreError } from "./store.ts";

export class LastFailures {
  readonly #clock: Platform["clock"];
  readonly #forMs: number;
  /** The latest last. */
  readonly #failures = new Map<keyof Store, { readonly error: StoreError; readonly at: number }>();

  /** @param forMs how long one counts: what is asked still is asked again sooner. */
  constructor(clock: Platform["clock"], forMs: number) {
    this.#clock = clock;
    this.#forMs = forMs;
  }

  get last(): StoreError | null {
    const last = [...this.#failures.values()].at(-1);
    return last !== undefined && this.#clock.now() - last.at <= this.#forMs ? last.error : null;
  }

  failed(call: keyof Store, error: StoreError): void {
    this.#failures.delete(call);
    this.#failures.set(call, { error, at: this.#clock.now() });
  }

  succeeded(call: keyof Store): void {
    this.#failures.delete(call);
  }
}

/** A name with several addresses fails with the reasons of each, and no words of its own. */
export function reasonOf({ message, cause }: StoreError, engine: string): string {
  if (cause instanceof AggregateError) return cause.errors.map((each: Error) => each.message).join(", ");
  return message.replace(`${engine}: `, "");
}

/**
 * Numbers that name a member's requests to an elected server, with the request's own. A lock that is opened anew, by this run of
 * the process or a later one, must not use a number twice. So they are counted once for all locks of a member, and journalled
 * ahead, many at a time: no lock leaves anything of its own in the journal.
 */
import { natural, struct } from "../../core/shape.ts";
import type { Journal, Slot } from "../../runtime/journal/journal.ts";

/** Above all that earlier versions counted, lock by lock. */
const FIRST = 1_000_000;
/** How many are journalled at once. */
const AHEAD = 1_000_000;

interface Run {
  readonly type: "run";
  readonly run: number;
}

export class RequestRuns {
  readonly #slot: Slot<{ below: number }>;
  #next: number;
  /** Those below are journalled, or about to be. */
  #below: number;
  #durableBelow = 0;

  constructor(journal: Journal) {
    this.#slot = journal.slot("runs", struct({ below: natural }));
    this.#next = this.#slot.records.at(-1)?.below ?? FIRST;
    this.#below = this.#next;
    this.#reserve();
  }

  /** The slot of one lock, as if it had journalled the run before its next one. */
  take(): Slot<Run> {
    const run = this.#next;
    this.#next += 1;
    if (this.#below - this.#next < AHEAD / 2) this.#reserve();
    return {
      records: [{ type: "run", run: run - 1 }],
      append() {},
      compact() {},
      whenDurable: (then) => {
        if (run < this.#durableBelow) queueMicrotask(then);
        else this.#slot.whenDurable(then);
      },
      release() {},
    };
  }

  #reserve(): void {
    const below = this.#below + AHEAD;
    this.#below = below;
    this.#slot.compact([{ below }]);
    this.#slot.whenDurable(() => {
      this.#durableBelow = below;
    });
  }
}

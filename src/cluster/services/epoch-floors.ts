/**
 * What must outlive elections and locks whose promises are journalled: of each algorithm, the highest epoch that this member has
 * promised in any of those that it has put away. One that is opened begins with that promise, whatever its name. A promise
 * may always be higher than it was: it only keeps lower epochs away, so one number does for all names.
 */
import { natural, struct } from "../../core/shape.ts";
import { embeddedNamed, protocolNames } from "../../protocols/index.ts";
import type { Journal, Slot } from "../../runtime/journal/journal.ts";

/** The algorithms that have one. */
export const withFloors = protocolNames.filter((name) => embeddedNamed(name)?.floor != null);

export class EpochFloors {
  readonly #floors: ReadonlyMap<string, Slot<{ epoch: number }>>;

  constructor(journal: Journal) {
    const shape = struct({ epoch: natural });
    this.#floors = new Map(withFloors.map((algorithm) => [algorithm, journal.slot(`floor/${algorithm}`, shape)]));
  }

  /** Into a slot that holds nothing yet. */
  begin(algorithm: string, self: number, slot: Slot<never>): void {
    const epoch = this.#of(algorithm);
    if (epoch > 0 && slot.records.length === 0) slot.append(embeddedNamed(algorithm)?.floor?.(epoch, self) as never);
  }

  /** Before what the slot holds is forgotten. */
  raise(algorithm: string, records: readonly unknown[]): void {
    const promised = (records as readonly { epoch?: number }[]).map(({ epoch = 0 }) => epoch);
    const epoch = Math.max(0, ...promised);
    if (epoch > this.#of(algorithm)) this.#floors.get(algorithm)?.compact([{ epoch }]);
  }

  #of(algorithm: string): number {
    return this.#floors.get(algorithm)?.records.at(-1)?.epoch ?? 0;
  }
}

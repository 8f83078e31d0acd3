/** A journal for tests that lasts as long as its process. */
import { InvariantViolation, UsageError, unexpected } from "../../src/core/errors.ts";
import { slotReplacedBy } from "../../src/core/journal-slots.ts";
import { clone } from "../../src/core/plain.ts";
import { problem, type Shape } from "../../src/core/shape.ts";
import type { Journal } from "../../src/runtime/journal/journal.ts";

export function memoryJournal(kept = new Map<string, unknown[]>()): Journal {
  const taken = new Set<string>();
  return {
    slot<R>(name: string, shape: Shape<R>) {
      if (taken.has(name)) throw new UsageError("slot-taken", unexpected("the journal slot", "unused", name));
      taken.add(name);
      const records = (kept.get(name) ?? []) as R[];
      kept.set(name, records);
      const checked = (record: R): R => {
        const wrong = problem(shape, record, "the record");
        if (wrong !== null) throw new InvariantViolation("bad-record", wrong);
        return clone(record);
      };
      return {
        get records() {
          return clone(records);
        },
        append: (record: R) => void records.push(checked(record)),
        compact(left: readonly R[]) {
          slotReplacedBy(left, () => name);
          records.splice(0, records.length, ...left.map(checked));
        },
        whenDurable: (then: () => void) => queueMicrotask(then),
        release: () => void taken.delete(name),
      };
    },
    has: (name) => kept.has(name),
    forget(name) {
      if (taken.has(name)) throw new UsageError("slot-taken", `the slot ${name} is taken`);
      kept.delete(name);
    },
    close: async () => {},
  };
}

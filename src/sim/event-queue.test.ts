import fc from "fast-check";
import { expect, it } from "vitest";
import { eventQueue } from "./event-queue.ts";

it("gives events by time, and those of one time in the order in which they came", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(5), fc.constant("pop" as const))), (script) => {
      const queue = eventQueue<{ at: number; order: number }>();
      const model: { at: number; order: number }[] = [];
      for (const [order, action] of script.entries()) {
        if (action !== "pop") {
          queue.push(action, { at: action, order });
          model.push({ at: action, order });
          model.sort((a, b) => a.at - b.at || a.order - b.order);
        } else expect(queue.pop()).toEqual(model.shift());
        expect(queue.size).toBe(model.length);
        expect(queue.next()).toBe(model[0]?.at ?? Number.POSITIVE_INFINITY);
      }
    }),
  );
});

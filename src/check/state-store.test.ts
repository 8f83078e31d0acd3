import { expect, it } from "vitest";
import { random } from "../core/random.ts";
import { StateStore } from "./state-store.ts";

it("numbers new tuples in their order, knows old ones, and gives each back", () => {
  const store = new StateStore(3);
  const source = random(7);
  const model = new Map<string, number>();
  for (let i = 0; i < 50_000; i++) {
    const tuple = Int32Array.of(source.below(30), source.below(30), source.below(30));
    const known = model.get(tuple.join());
    if (known === undefined) model.set(tuple.join(), model.size);
    expect(store.add(tuple)).toBe(known === undefined ? model.size - 1 : ~known);
  }
  expect(store.size).toBe(model.size);
  const back = new Int32Array(3);
  for (const [key, id] of model) {
    store.read(id, back);
    expect(back.join()).toBe(key);
  }
});

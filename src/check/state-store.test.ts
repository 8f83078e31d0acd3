import { expect, it } from "vitest";
import { random } from "../core/random.ts";
import { StateStore } from "./state-store.ts";

/** Values grow over time, so the tuples are repacked several times. */
it.each([
  [1, 20_000],
  [3, 30],
  [7, 4],
])("numbers new tuples of %i in order, recognizes old ones, and returns each", (width, below) => {
  const store = new StateStore(width);
  const source = random(7);
  const model = new Map<string, number>();
  for (let i = 0; i < 20_000; i++) {
    const bound = i % 1_000 === 999 ? Math.min(below * i, 2 ** 31 - 1) : below;
    const tuple = Int32Array.from({ length: width }, () => source.below(bound));
    const known = model.get(tuple.join());
    if (store.find(tuple) !== (known ?? -1)) expect.fail(`find(${tuple}) gave another number than ${known ?? -1}`);
    if (known === undefined) model.set(tuple.join(), model.size);
    const expected = known === undefined ? model.size - 1 : ~known;
    if (store.add(tuple) !== expected) expect.fail(`add(${tuple}) gave another number than ${expected}`);
  }
  expect(store.size).toBe(model.size);
  const back = new Int32Array(width);
  const keys = Array.from({ length: store.size }, (_, id) => {
    store.read(id, back);
    return back.join();
  });
  expect(keys).toEqual([...model.keys()]);
});

it("keeps states and their numbers when it is widened", () => {
  const store = new StateStore(2);
  for (let i = 0; i < 70_000; i++) store.add(Int32Array.of(i % 300, i >>> 8));
  const { size } = store;
  const words = store.packing.words;
  store.widen([2 ** 31 - 1, 2 ** 31 - 1]);
  expect([words, store.packing.words, store.size]).toEqual([1, 2, size]);
  const back = new Int32Array(2);
  const found = Array.from({ length: size }, (_, id) => {
    store.read(id, back);
    return store.find(back);
  });
  expect(found).toEqual([...Array(size).keys()]);
});

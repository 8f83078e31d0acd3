/** `coterie node` that is told to stop while it starts. test/e2e/node.test.ts has it whole. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { startedBefore, whenToStop } from "./node.ts";

test.each(["SIGTERM", "SIGINT", "SIGHUP"])("%s while a start does not end: there is no member", async (signal) => {
  const signals = new EventEmitter();
  const { ended } = whenToStop(false, signals);
  signals.emit(signal, signal); // As Node does.
  expect(await startedBefore(ended, new Promise<never>(() => {}))).toBeNull();
});

test("a start that comes through once it is to stop is left in order, and one that fails then is nobody's matter", async () => {
  let stops = 0;
  let start = (): void => {};
  const starting = new Promise<{ stop(): Promise<void> }>((resolve) => {
    start = () =>
      resolve({
        stop() {
          stops += 1;
          return Promise.resolve();
        },
      });
  });
  const left = startedBefore(Promise.resolve(), starting);
  setImmediate(start);
  expect([await left, stops]).toEqual([null, 1]);
  expect(await startedBefore(Promise.resolve(), new Promise<never>((_, reject) => setTimeout(reject)))).toBeNull();
});

test("a start that fails before says why", async () => {
  const failing = Promise.reject(new Error("the port is taken"));
  await expect(startedBefore(new Promise(() => {}), failing)).rejects.toThrow("the port is taken");
});

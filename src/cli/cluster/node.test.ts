/** `coterie node` that gets a signal while it starts. test/e2e/node.test.ts runs the whole command. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { startedBefore, whenToStop } from "./node.ts";

test.each(["SIGTERM", "SIGINT", "SIGHUP"])("%s during a start that does not end leaves no member", async (signal) => {
  const signals = new EventEmitter();
  const { ended } = whenToStop(false, signals);
  signals.emit(signal, signal); // As Node does.
  expect(await startedBefore(ended, new Promise<never>(() => {}))).toBeNull();
});

test("a start that completes after the signal is stopped in order, and a failed one is ignored", async () => {
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

test("a start that fails before a signal rejects with the reason", async () => {
  const failing = Promise.reject(new Error("the port is taken"));
  await expect(startedBefore(new Promise(() => {}), failing)).rejects.toThrow("the port is taken");
});

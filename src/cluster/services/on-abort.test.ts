import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { onAbort } from "./on-abort.ts";

describe("waiting for a signal", () => {
  test("takes one listener, however many wait, and none once all have gone", () => {
    const { signal } = new AbortController();
    const forget = Array.from({ length: 20 }, () => onAbort(signal, () => {}));
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    for (const each of forget) {
      each();
      each();
    }
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    onAbort(signal, () => {});
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
  });

  test("tells each who waits once, and not who has gone, also if that is meanwhile", () => {
    const controller = new AbortController();
    const told: number[] = [];
    const forget = [1, 2, 3, 4].map((number) =>
      onAbort(controller.signal, () => {
        told.push(number);
        if (number === 2) forget[2]?.();
      }),
    );
    forget[0]?.();
    controller.abort();
    expect(told).toEqual([2, 4]);
  });

  test("is nothing where there is no signal", () => {
    expect(onAbort(undefined, () => {})()).toBe(undefined);
  });
});

import { setTimeout as realSleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { VirtualTime } from "./virtual-time.ts";

const sleepOn = (time: VirtualTime) => (ms: number) => new Promise<void>((resolve) => void time.after(ms, resolve));

describe("virtual time", () => {
  test("jumps from one event to the next, and ends with the body", async () => {
    const time = new VirtualTime();
    const sleep = sleepOn(time);
    const result = await time.drive(async () => {
      await sleep(86_400_000);
      return time.now;
    }, 1e9);
    expect(result).toBe(86_400_000);
  });

  test("completes all promises before the next event, no matter how many follow each other", async () => {
    const time = new VirtualTime();
    const seen: string[] = [];
    const wait = async (): Promise<void> => {
      for (let i = 0; i < 500; i++) await Promise.resolve();
      seen.push("500 promises");
    };
    time.after(1, () => void wait());
    time.after(1, () => seen.push("the next event"));
    await time.drive(() => sleepOn(time)(2), 10);
    expect(seen).toEqual(["500 promises", "the next event"]);
  });

  test("rejects a time that is not a number, which would precede all others forever", () => {
    expect(() => new VirtualTime().after(Number.NaN, () => {})).toThrow(
      expect.objectContaining({ name: "InvariantViolation", code: "bad-time" }),
    );
  });

  test("runs events of one time in the order of scheduling, unless they were cancelled", async () => {
    const time = new VirtualTime();
    const seen: number[] = [];
    for (const i of [1, 2, 3, 4]) {
      const due = time.at(5, () => seen.push(i));
      if (i === 3) due.cancel();
    }
    time.at(4, () => seen.push(0));
    await time.drive(() => sleepOn(time)(6), 10);
    expect(seen).toEqual([0, 1, 2, 4]);
  });

  test("stops between two runs", async () => {
    const time = new VirtualTime();
    let ticks = 0;
    const tick = (): void => {
      ticks += 1;
      time.after(1, tick);
    };
    tick();
    await time.drive(() => sleepOn(time)(10.5), 100);
    const afterOne = ticks;
    await realSleep(5);
    expect(ticks).toBe(afterOne);
    await time.drive(() => sleepOn(time)(10), 100);
    expect([afterOne, ticks, time.now]).toEqual([11, 21, 20.5]);
  });

  test("ends a run that waits for something real, with no event left, with an error that explains it", async () => {
    const time = new VirtualTime();
    const end = new AbortController();
    const run = time.drive(() => realSleep(60_000, undefined, { ref: true, signal: end.signal }), 100);
    await expect(run).rejects.toThrow(/no events are left.*outside this world.*Timeout.*sleep\(\)/s);
    end.abort();
  });

  test("ends a run that waits in vain at its limit, though other events continue forever", async () => {
    const time = new VirtualTime();
    const tick = (): void => void time.after(1, tick);
    tick();
    await expect(time.drive(() => new Promise(() => {}), 5_000)).rejects.toMatchObject({ code: "world-too-long" });
  });

  test("ends a run if an event repeats itself without waiting", async () => {
    const time = new VirtualTime();
    const again = (): void => void time.after(0, again);
    again();
    await expect(time.drive(() => sleepOn(time)(1), 5)).rejects.toMatchObject({ code: "world-stands-still" });
  });

  test("ends a run with the error of an event or of the body", async () => {
    const time = new VirtualTime();
    time.after(1, () => {
      throw new Error("in an event");
    });
    await expect(time.drive(() => sleepOn(time)(2), 5)).rejects.toThrow("in an event");
    await expect(time.drive(() => Promise.reject(new Error("in the body")), 5)).rejects.toThrow("in the body");
  });

  test("allows one run at a time", async () => {
    const time = new VirtualTime();
    const first = time.drive(() => sleepOn(time)(1), 5);
    expect(() => time.drive(() => {}, 5)).toThrow(/one run of the world at a time/);
    await first;
  });
});

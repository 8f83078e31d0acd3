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

  test("lets all promises run to their end before the next event, however many there are in a row", async () => {
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

  test("takes no time that is no number, which would come before all others for ever", () => {
    expect(() => new VirtualTime().after(Number.NaN, () => {})).toThrow(
      expect.objectContaining({ name: "InvariantViolation", code: "bad-time" }),
    );
  });

  test("what is due at one time happens in the order in which it was asked for, and not if it was cancelled", async () => {
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

  test("stands still between two runs", async () => {
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

  test("a run that waits for something real, with nothing left to happen, ends with an error that says so", async () => {
    const time = new VirtualTime();
    const end = new AbortController();
    const run = time.drive(() => realSleep(60_000, undefined, { ref: true, signal: end.signal }), 100);
    await expect(run).rejects.toThrow(/nothing is left to happen.*not of this world.*Timeout.*sleep\(\)/s);
    end.abort();
  });

  test("a run that waits for what never happens ends at its limit, though others go on for ever", async () => {
    const time = new VirtualTime();
    const tick = (): void => void time.after(1, tick);
    tick();
    await expect(time.drive(() => new Promise(() => {}), 5_000)).rejects.toMatchObject({ code: "world-too-long" });
  });

  test("an event that repeats itself without waiting ends the run", async () => {
    const time = new VirtualTime();
    const again = (): void => void time.after(0, again);
    again();
    await expect(time.drive(() => sleepOn(time)(1), 5)).rejects.toMatchObject({ code: "world-stands-still" });
  });

  test("what an event throws ends the run, and so does what the body throws", async () => {
    const time = new VirtualTime();
    time.after(1, () => {
      throw new Error("in an event");
    });
    await expect(time.drive(() => sleepOn(time)(2), 5)).rejects.toThrow("in an event");
    await expect(time.drive(() => Promise.reject(new Error("in the body")), 5)).rejects.toThrow("in the body");
  });

  test("one run at a time", async () => {
    const time = new VirtualTime();
    const first = time.drive(() => sleepOn(time)(1), 5);
    expect(() => time.drive(() => {}, 5)).toThrow(/one run of the world at a time/);
    await first;
  });
});

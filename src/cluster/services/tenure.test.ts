import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { uncaughtDuring } from "../../../test/uncaught.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { CoordinationError } from "./coordination-error.ts";
import { listeners } from "./on-abort.ts";
import { OwnTenure } from "./tenure.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const lost = { code: "grant-lost", phase: "lost" };

function tenure(onOverdue: () => void = () => {}): OwnTenure {
  return new OwnTenure({ platform: realPlatform, token: 7, what: "the lock", onOverdue });
}

/** Pauses the process: its clock advances, but no timer fires. */
function stall(ms: number): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + ms);
}

describe("a tenure", () => {
  test("lasts until it is ended, and then stays ended", () => {
    const held = tenure();
    expect(held).toMatchObject({ token: 7, isHeld: true, deadline: null });
    held.end(new CoordinationError("released", "released", "given back"));
    held.lose();
    expect(held.isHeld).toBe(false);
    expect(held.signal.reason).toMatchObject({ code: "released", phase: "released" });
  });

  test("is lost at its deadline, even without an event of the algorithm", async () => {
    const onOverdue = vi.fn();
    const held = tenure(onOverdue);
    held.confirm(performance.now() + 20);
    await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
    expect(held.signal.reason).toMatchObject(lost);
    expect(onOverdue).toHaveBeenCalledTimes(1);
  });

  test("lasts longer with each confirmation, and never shorter", () => {
    vi.useFakeTimers();
    const held = tenure();
    const told: number[] = [];
    const now = performance.now();
    held.confirm(now + 300);
    const forget = held.onDeadline((deadline) => told.push(deadline - now));
    held.confirm(now + 900);
    held.confirm(now + 600);
    forget();
    held.confirm(now + 60_000);
    expect(told.map(Math.round)).toEqual([300, 900]);
    vi.advanceTimersByTime(1_000); // The timers of the first two deadlines have fired.
    expect(held.isHeld).toBe(true);
    held.lose();
  });

  test("calls each listener of its deadline, though another throws, which is an uncaught error as with listeners of its signal", async () => {
    const held = tenure();
    const told: string[] = [];
    const faults = await uncaughtDuring(() => {
      held.onDeadline(() => {
        told.push("first");
        throw new Error("of the first");
      });
      held.confirm(performance.now() + 1_000);
      held.onDeadline(() => {
        told.push("second");
        throw new Error("of the second");
      });
      held.onDeadline(() => told.push("third"));
      held.confirm(performance.now() + 2_000);
      held.signal.addEventListener("abort", () => {
        throw new Error("of the signal");
      });
      held.lose();
    });
    expect(told).toEqual(["first", "second", "third", "first", "second", "third"]);
    const of = (which: string) => new Error(`of the ${which}`);
    expect(faults).toEqual([of("first"), of("second"), of("first"), of("second"), of("signal")]);
  });

  test("ended by a listener of its deadline calls no other listener", () => {
    const held = tenure();
    const told: string[] = [];
    held.onDeadline(() => held.lose());
    held.onDeadline(() => told.push("too late"));
    held.confirm(performance.now() + 1_000);
    expect(told).toEqual([]);
  });

  test("is not confirmed once it is over, nor by an expired confirmation", () => {
    const held = tenure();
    held.confirm(null);
    held.confirm(performance.now() + 1_000);
    expect(held.isHeld).toBe(false);
    expect(held.deadline).toBe(null);
  });

  test.each([
    ["isHeld", (held: OwnTenure) => held.isHeld],
    ["signal.aborted", ({ signal }: OwnTenure) => !signal.aborted],
    [
      "signal.throwIfAborted",
      ({ signal }: OwnTenure) => {
        try {
          signal.throwIfAborted();
          return true;
        } catch (error) {
          expect(error).toMatchObject(lost);
          return false;
        }
      },
    ],
  ])("that expired while the process was paused is lost for the first reader, by %s", (_name, ask) => {
    const held = tenure();
    held.confirm(performance.now() + 60_000);
    expect(ask(held)).toBe(true);
    stall(60_001);
    expect(ask(held)).toBe(false);
    expect(held.signal.reason).toMatchObject(lost);
  });

  test("is not revived by a confirmation that arrives after a pause", () => {
    const held = tenure();
    held.confirm(performance.now() + 60_000);
    stall(60_001);
    held.confirm(performance.now() + 1_000);
    expect(held.isHeld).toBe(false);
  });

  test("is lost when the machine has slept: the system's clock advanced", () => {
    const held = tenure();
    held.confirm(performance.now() + 1_000);
    const now = Date.now();
    vi.spyOn(Date, "now").mockReturnValue(now + 2_000);
    expect(held.isHeld).toBe(false);
  });

  test("aborts operations begun with its signal", async () => {
    const held = tenure();
    held.confirm(performance.now() + 20);
    await expect(sleep(60_000, undefined, { signal: held.signal })).rejects.toMatchObject({
      name: "AbortError",
      cause: lost,
    });
  });
});

test("a signal may have any number of listeners", async () => {
  listeners.allowMany = (many) => setMaxListeners(0, many); // Like join() and connect().
  const warned = vi.fn();
  process.on("warning", warned);
  const { signal } = tenure();
  for (let i = 0; i < 50; i++) signal.addEventListener("abort", () => {});
  await sleep(0); // Warnings are emitted in the next turn.
  process.off("warning", warned);
  expect(warned).not.toHaveBeenCalled();
});

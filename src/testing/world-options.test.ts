import { describe, expect, test } from "vitest";
import { simulate } from "./index.ts";

const world = (more = {}) => simulate({ members: 1, ...more });

describe("invalid options of a world are rejected, with a hint", () => {
  const all = "members, seed, program, faults, network, disk, drift, join, release";
  const kinds = "crash, kill, pause, partition, cut, slow, lossy, slow-disk, full-disk";
  const speeds = "expected drift of simulate() to be an object from id to a finite number > 0";
  test.each([
    [() => simulate(undefined as never), "expected the options of simulate() to be an object, got undefined"],
    [() => simulate({} as never), "expected members to be their number, or a list of distinct ids, got undefined"],
    [() => world({ members: 2.5 }), "expected members to be their number, or a list of distinct ids, got 2.5"],
    [() => world({ sed: 5 }), `expected the options of simulate() to be among ${all}, got "sed"; did you mean seed?`],
    [() => world({ seed: Number.NaN }), "expected seed of simulate() to be a whole number, got NaN"],
    [
      () => world({ network: { delay: 5 } }),
      'expected the options in network of simulate() to be among delayMs, loss, bytesPerMs, got "delay"; did you mean delayMs?',
    ],
    [
      () => world({ disk: { sync: 5 } }),
      'expected the options in disk of simulate() to be among syncMs, got "sync"; did you mean syncMs?',
    ],
    [
      () => world({ faults: "randm" }),
      'expected faults of simulate() to be "random" or an object with kinds or forMs, got "randm"',
    ],
    [
      () => world({ faults: { forMS: 1 } }),
      'expected the options in faults of simulate() to be among kinds, forMs, got "forMS"; did you mean forMs?',
    ],
    [
      () => world({ faults: { forMs: -5 } }),
      "expected faults.forMs of simulate() to be a finite number of 0 or more, got -5",
    ],
    [
      () => world({ faults: { kinds: ["crsh"] } }),
      `expected faults.kinds of simulate() to be a list of ${kinds}, got ["crsh"]`,
    ],
    [() => world({ drift: { 1: Number.NaN } }), `${speeds}, got {"1":null}`],
    [() => world({ drift: { 1: 0 } }), `${speeds}, got {"1":0}`],
    [
      () => world({ members: 2 }).link(1, 2, { delay: 500 } as never),
      'expected the options of link() to be among delayMs, loss, bytesPerMs, got "delay"; did you mean delayMs?',
    ],
  ])("when it is made, or a link is set (%#)", (call, message) => {
    expect(call).toThrow(expect.objectContaining({ name: "UsageError", code: "bad-option", message }));
  });

  const body = "expected the body of run() to be a function, or a finite number of milliseconds, at least 0";
  test.each([
    [undefined, {}, `${body}, got undefined`],
    [Number.NaN, {}, `${body}, got NaN`],
    [-5, {}, `${body}, got -5`],
    [() => {}, { limit: 5 }, 'expected the options of run() to be among limitMs, got "limit"; did you mean limitMs?'],
    [() => {}, { limitMs: Number.NaN }, "expected limitMs of run() to be a number of milliseconds above 0, got NaN"],
  ])("when it runs (%#)", async (given, options, message) => {
    await expect(world().run(given as never, options as never)).rejects.toMatchObject({ code: "bad-option", message });
  });
});

describe("timers", () => {
  const odd = [Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31];
  test.each(odd)("of a world with %s wait for 1 ms, like Node's", async (ms) => {
    const it = world();
    await it.run(async () => {
      const began = it.now();
      await it.sleep(ms);
      await new Promise<void>((resolve) => void it.setTimeout(() => resolve(), ms));
      expect(it.now() - began).toBeCloseTo(2, 6);
    });
  });

  test.each(odd)("of a process with %s wait for little more", async (ms) => {
    const seen: number[] = [];
    const it = simulate({
      members: 1,
      async program(_member, { sleep, now }) {
        const began = now();
        await sleep(ms);
        seen.push(now() - began);
      },
    });
    await it.run(100);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBeGreaterThan(0.9);
    expect(seen[0]).toBeLessThan(2.1);
  });
});

/**
 * Checks user-defined state machines in virtual time: acknowledged commands are kept, even if a member defines a
 * machine late or never.
 */
import { describe, expect, test } from "vitest";
import type { Replicated } from "../../src/cluster/services/state/state-api.ts";
import type { Member, MemberEvent } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

const IDS = [1, 2, 3];
const total = {
  init: () => ({ n: 0 }),
  apply: (state: { n: number }, by: number) => [{ n: state.n + by }, state.n + by],
};
type Total = Replicated<{ n: number }, number, number>;
const totalOf = (member: Member, name = "total"): Total => member.replicated(name, total as never);
const MANY = 10_500;

async function addUp(machine: Total): Promise<void> {
  for (let done = 0; done < MANY; done += 500) await Promise.all(Array.from({ length: 500 }, () => machine.execute(1)));
}

/** Adds enough entries to the log for snapshots. */
async function fillLog(member: Member): Promise<void> {
  for (let at = 0; at < 70; at++) await member.map("other").put("k", "y".repeat(60_000));
}

async function restartAll(world: World): Promise<Member[]> {
  for (const id of IDS) if (world.isUp(id)) world.crash(id);
  await world.sleep(100);
  return Promise.all(IDS.map((id) => world.restart(id)));
}

const readAll = (machines: readonly Total[]): Promise<number[]> =>
  Promise.all(machines.map(async (machine) => (await machine.read()).n));

describe("a state machine that is defined late", () => {
  test("has its whole state at a member that restarts and waits until it is ready", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const [one] = IDS.map((id) => totalOf(world.member(id))) as [Total];
      await addUp(one);
      world.crash(2);
      await world.sleep(2_000);
      const two = await world.restart(2);
      await two.ready();
      expect(await totalOf(two).read()).toEqual({ n: MANY });
      expect(await totalOf(two).execute(1)).toBe(MANY + 1);
      expect(await one.read()).toEqual({ n: MANY + 1 });
    });
  });

  test("has its whole state at all members, after snapshots, and again after another restart", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const [one] = IDS.map((id) => totalOf(world.member(id))) as [Total];
      await addUp(one);
      const again = await restartAll(world);
      await world.sleep(1_000);
      await fillLog(again[0] as Member);
      const members = await restartAll(world);
      await world.sleep(1_000);
      expect(await readAll(members.map((member) => totalOf(member)))).toEqual([MANY, MANY, MANY]);
      expect(await totalOf(members[0] as Member).execute(1)).toBe(MANY + 1);
    });
  });

  test("keeps its state if only a majority defined it and a member without it leads and sends its snapshot", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const [one, two] = [totalOf(world.member(1)), totalOf(world.member(2))];
      await addUp(one);
      expect(await readAll([one, two])).toEqual([MANY, MANY]);
      world.partition([2], [1, 3]);
      await world.sleep(1_500);
      for (const _half of [1, 2]) await fillLog(world.member(1));
      world.heal();
      world.partition([1], [2, 3]); // Member 2 lags behind, so 3 leads.
      await world.sleep(4_000);
      await world.member(3).map("other").put("a", 1);
      expect(world.member(2).status().shared?.leader).toBe(3);
      expect(await two.read()).toEqual({ n: MANY });
      world.heal();
      await world.sleep(2_000);
      expect(await readAll([one, two])).toEqual([MANY, MANY]);
    });
  });
});

/** Collects all events until the member fails, and the reason. */
async function eventsUntilFailure(member: Member): Promise<{ events: MemberEvent[]; reason: unknown }> {
  const events: MemberEvent[] = [];
  try {
    for await (const event of member.events()) events.push(event);
  } catch (reason) {
    return { events, reason };
  }
  throw new Error(`expected member ${member.id} to fail, and its events ended without an error`);
}

const last = {
  init: () => 0,
  apply: (count: number, _text: string): readonly [number, number] => [count + 1, count + 1],
};

test("members that never define a machine stop before they would drop a command, and have all of them once they define it", {
  tags: ["long"],
}, async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const machine = world.member(1).replicated("last", last);
    const warned = eventsUntilFailure(world.member(2));
    const large = "x".repeat(1_000_000);
    let done = 0;
    const outcome = (async () => {
      for (; done < 60; done++) await machine.execute(large, { timeoutMs: 5_000 });
    })();
    await expect(outcome).rejects.toMatchObject({ code: "request-timeout" });
    expect(done).toBeGreaterThan(15); // An ordinary restart reads far less log and snapshots than this.
    for (const id of [2, 3]) {
      const { reason } = world.member(id).signal;
      expect(reason).toMatchObject({ code: "member-failed", cause: { code: "undefined-machine" } });
      expect(String(reason)).toContain('call replicated("last", …) as soon as join() resolves, at every member');
    }
    const { events, reason } = await warned;
    expect(reason).toBe(world.member(2).signal.reason);
    const warnings = events.filter(({ type }) => type === "machine-undefined");
    expect(warnings).toHaveLength(7);
    expect(warnings[0]).toMatchObject({ machine: "last", maxBytes: 33_554_432 });
    const members = await restartAll(world);
    const machines = members.map((member) => member.replicated("last", last));
    const counts = await Promise.all(machines.map((each) => each.read({ timeoutMs: 60_000 })));
    expect(counts[0]).toBeGreaterThanOrEqual(done);
    expect(new Set(counts).size).toBe(1);
    expect(await machines[1]?.execute("more")).toBe((counts[0] as number) + 1);
  });
});

const faults: readonly [string, () => unknown, string][] = [
  ["NaN", () => [{ n: Number.NaN }, 0], "expected the state.n to be a finite number, got NaN"],
  ["no state", () => [undefined, 0], "expected the state to be JSON data, got undefined"],
  ["a field that is undefined", () => [{ n: undefined }, 0], "expected the state.n to be JSON data, got undefined"],
  ["a Set", () => [{ n: [new Set()] }, 0], "expected the state.n[0] to be a plain object, got an instance of Set"],
  ["a Map as result", () => [{ n: 1 }, new Map()], "expected the result to be a plain object, got an instance of Map"],
  ["Infinity in a result", () => [{ n: 1 }, [1 / 0]], "expected the result[0] to be a finite number, got Infinity"],
  ["a function", () => [{ n: 1 }, () => 1], "expected the result to be JSON data, got function"],
  [
    "a list with a name",
    () => [{ list: Object.assign([1], { total: 1 }) }, 0],
    "expected the state.list to have no key that JSON omits, got the state.list.total",
  ],
  [
    "a hidden field",
    () => [Object.defineProperty({ n: 1 }, "hidden", { value: 1 }), 0],
    "expected the state to have no key that JSON omits, got the state.hidden",
  ],
  [
    "a match as result",
    () => [{ n: 1 }, "v1".match(/v(?<major>\d)/)],
    "expected the result to have no key that JSON omits, got the result.index",
  ],
  ["three", () => [1, 2, 3], "expected apply() to return [state, result], got an array of 3"],
  ["the state alone", () => ({ n: 1 }), "expected apply() to return [state, result], got object"],
  ["a text", () => "ab", "expected apply() to return [state, result], got string"],
  ["nothing", () => undefined, "expected apply() to return [state, result], got undefined"],
  ["a promise", () => Promise.resolve([1, 2]), "expected apply() to return [state, result], got a promise"],
];

describe("a state machine with a fault", () => {
  const wrong: readonly [string, () => unknown, string, string][] = [
    [
      "throws",
      () => {
        throw new Error("no config");
      },
      "bad-option",
      "expected init() to return a state, but it throws: no config",
    ],
    ["gives nothing", () => undefined, "bad-value", "expected init() to be JSON data, got undefined"],
    ["gives a Map", () => new Map(), "bad-value", "expected init() to be a plain object, got an instance of Map"],
    [
      "gives Infinity within",
      () => ({ best: Number.POSITIVE_INFINITY }),
      "bad-value",
      "expected init().best to be a finite number, got Infinity",
    ],
    [
      "gives undefined within",
      () => ({ list: [{ a: undefined }] }),
      "bad-value",
      "expected init().list[0].a to be JSON data, got undefined",
    ],
  ];
  test.each(wrong)(
    "whose init %s is rejected when it is defined, and may be defined correctly later",
    async (_what, init, code, message) => {
      const world = simulate({ members: 3 });
      await world.run(async () => {
        const apply = total.apply as never;
        for (const id of IDS)
          expect(() => world.member(id).replicated("total", { init, apply })).toThrow(
            expect.objectContaining({ name: "UsageError", code, message: `replicated("total"): ${message}` }),
          );
        expect(await totalOf(world.member(1)).execute(1)).toBe(1);
      });
    },
  );

  test("whose init returns too much is rejected", async () => {
    const world = simulate({ members: 3 });
    await world.run(() => {
      const large = { init: () => "x".repeat(600_000), apply: (state: string) => [state, 0] as const };
      expect(() => world.member(1).replicated("large", large)).toThrow(expect.objectContaining({ code: "too-large" }));
    });
  });

  test.each(faults)("that returns %s fails, and changes nothing", async (_what, given, message) => {
    const machine = { init: () => ({ n: 7 }), apply: (_state: unknown, _by: number) => given() as never };
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const machines = IDS.map((id) => world.member(id).replicated("faulty", machine));
      const failed = expect.objectContaining({
        code: "machine-failed",
        message: `the command to "faulty": ${message}`,
      });
      await expect(machines[0]?.execute(1)).rejects.toEqual(failed);
      for (const each of machines) expect(await each.read()).toEqual({ n: 7 });
    });
  });

  test("a value with keys that JSON drops is rejected by put", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const map = world.member(1).map("versions");
      await expect(map.put("k", "v1.2".match(/v(?<major>\d)/))).rejects.toMatchObject({
        code: "bad-value",
        message: 'expected the value of "k" to have no key that JSON omits, got the value of "k".index',
      });
    });
  });

  test("may have the name of a property of objects", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const machines = IDS.map((id) => totalOf(world.member(id), "__proto__"));
      expect(await machines[0]?.execute(3)).toBe(3);
      expect(await machines[1]?.read()).toEqual({ n: 3 });
      expect(() => world.member(1).replicated("__proto__", { ...total } as never)).toThrow(
        expect.objectContaining({
          code: "other-setting",
          message: expect.stringContaining("keep the result of replicated()"),
        }),
      );
    });
  });
});

test("values of a full state can be replaced and reduced, by one command or a transaction", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const member = world.member(1);
    const map = member.map<string>("large");
    const large = "x".repeat(1_000_000);
    for (let at = 0; at < 8; at++) await map.put(`k${at}`, large);
    await expect(map.put("k8", large)).rejects.toMatchObject({ code: "state-full" });
    await map.put("k0", large.replaceAll("x", "y"));
    await map.put("k0", large.slice(500_000));
    await map.put("k0", large);
    await member.transaction((transaction) => {
      transaction.delete(map, "k0");
      transaction.put(map, "n", large.slice(500_000));
    });
    expect((await map.range()).entries.map(({ key }) => key)).toEqual(["k1", "k2", "k3", "k4", "k5", "k6", "k7", "n"]);
  });
});

/**
 * Checks calls and iterators of a member or client that has ended. Calls that began before the end follow the same rule
 * as later ones.
 */
import { describe, expect, test } from "vitest";
import type { Client, CoordinationError, EngineMember, Member } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";
import { SimulatedEngine } from "../engines/simulated-engine.ts";

type User = Member | Client | EngineMember;
type Call = readonly [name: string, phase: string, call: () => Promise<unknown>];
type Iterators = Readonly<Record<string, AsyncIterator<unknown>>>;

const machine = { init: () => 0, apply: (n: number, by: number) => [n + by, n] as const };

/** Returns the calls that members, clients and engines have in common. */
const callsOf = (user: User): Call[] => [
  ["get", "never-sent", () => user.map("m").get("a")],
  ["put", "never-sent", () => user.map("m").put("a", 1)],
  ["counter", "never-sent", () => user.counter("c").add(1)],
  ["transaction", "never-sent", () => user.transaction((t) => t.put(user.map("m"), "a", 1))],
  ["mutex", "never-acquired", () => user.mutex("l").acquire()],
  ["use", "never-acquired", () => user.mutex("l").use(() => 1)],
  ["semaphore", "never-acquired", () => user.semaphore("s", { permits: 1 }).acquire()],
  ["read lock", "never-acquired", () => user.readWriteLock("rw").read()],
  ["election", "never-acquired", () => (user as Client).election("e").lead(() => 1)],
];

const callsOfState = (user: Member | Client): Call[] => [
  ["queue", "never-sent", () => user.queue("q").add(1)],
  ["taker", "never-acquired", () => user.queue("q").take()],
  ["barrier", "never-acquired", () => user.barrier("b", { parties: 2 }).arrive()],
];

const callsOfMember = (member: Member): Call[] => [
  ["machine", "never-sent", () => member.replicated("r", machine).execute(1)],
  ["channel", "never-sent", () => member.channel("links", { order: "fifo" }).send(1)],
  ["log channel", "never-sent", () => member.channel("log", { order: "total", transport: "log" }).send(1)],
  ["list", "never-sent", () => member.cluster.members()],
];

async function expectRejected(code: string, calls: readonly Call[]): Promise<void> {
  for (const [name, phase, call] of calls) {
    let thrown: unknown = "nothing";
    let promise: Promise<unknown> = Promise.resolve();
    try {
      promise = call();
    } catch (error) {
      thrown = error;
    }
    expect([name, thrown]).toEqual([name, "nothing"]);
    const told = await promise.then(
      () => "resolved",
      (error: unknown) => `${(error as CoordinationError).code} ${(error as CoordinationError).phase}`,
    );
    expect([name, told]).toEqual([name, `${code} ${phase}`]);
  }
}

const iteratorsOf = (user: User): Iterators => ({
  map: user.map("m").watch(),
  election: (user as Client).election("e").watch(),
});

const iteratorsOfMember = (member: Member): Iterators => {
  const [links, log] = [
    member.channel("links", { order: "fifo" }),
    member.channel("log", { order: "total", transport: "log" }),
  ];
  return {
    ...iteratorsOf(member),
    events: member.events(),
    ...{ reader: links.read(), views: links.views(), logReader: log.read(), logViews: log.views() },
  };
};

/** Reads each iterator to its end. */
const endsOf = async (iterators: Iterators): Promise<Record<string, string>> =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(iterators).map(async ([name, iterator]): Promise<[string, string]> => {
        try {
          while ((await iterator.next()).done !== true);
          return [name, "done"];
        } catch (error) {
          expect(await iterator.next()).toEqual({ done: true, value: undefined });
          return [name, (error as CoordinationError).code];
        }
      }),
    ),
  );

const allAre = (iterators: Iterators, end: string): Record<string, string> =>
  Object.fromEntries(Object.keys(iterators).map((name) => [name, end]));

const calls = (member: Member): Call[] => [...callsOf(member), ...callsOfState(member), ...callsOfMember(member)];

async function remove(world: World): Promise<void> {
  const { signal } = world.member(3);
  await world.member(1).cluster.remove(3);
  while (!signal.aborted) await world.sleep(10);
}

describe("a member", () => {
  test.each([
    ["has left", "member-left", "done", (world: World) => world.member(3).leave()],
    ["was removed", "member-removed", "member-removed", remove],
  ])("that %s rejects calls, and its iterators end", async (_how, code, end, befalls) => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      const member = world.member(3);
      await member.ready();
      const before = iteratorsOfMember(member);
      const ends = endsOf(before);
      await world.sleep(1_000);
      await befalls(world);
      expect(await ends).toEqual(allAre(before, end));
      await expectRejected(code, calls(member));
      const after = iteratorsOfMember(member);
      expect(await endsOf(after)).toEqual(allAre(after, end));
    });
  });
});

test("a client that is closed rejects calls, and its iterators end", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    const client = await world.connect();
    const before = iteratorsOf(client);
    const ends = endsOf(before);
    await world.sleep(1_000);
    await client.close();
    expect(await ends).toEqual(allAre(before, "done"));
    await expectRejected("client-closed", [...callsOf(client), ...callsOfState(client)]);
    const after = iteratorsOf(client);
    expect(await endsOf(after)).toEqual(allAre(after, "done"));
  });
});

test("a member of an engine that has left rejects calls, and its iterators end", async () => {
  const engine = new SimulatedEngine(1);
  await engine.run(async () => {
    const member = await engine.join();
    const before = iteratorsOf(member);
    const ends = endsOf(before);
    await engine.sleep(1_000);
    await member.leave();
    expect(await ends).toEqual(allAre(before, "done"));
    await expectRejected("client-closed", callsOf(member));
    const after = iteratorsOf(member);
    expect(await endsOf(after)).toEqual(allAre(after, "done"));
  });
});

/**
 * Checks clients that are not members, on real processes. Their members are killed and paused, and each command must be
 * applied exactly once.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { Client, CoordinationError, Grant } from "../../src/index.ts";
import { freePorts } from "../network/free-ports.ts";
import { PACKAGE, until } from "./cluster-under-test.ts";
import { Joined, type Place, place } from "./joined-members.ts";

const { connect }: typeof import("../../src/index.ts") = await import(PACKAGE);

const clients = new Set<Client>();
afterEach(async () => {
  await Promise.all([...clients].map((client) => client.close()));
  clients.clear();
});

interface Served {
  readonly where: Place;
  readonly members: Map<number, Joined>;
  readonly endpoints: readonly string[];
  start(id: number): Promise<Joined>;
}

async function served(): Promise<Served> {
  const where = await place(3);
  const ports = await freePorts(3);
  const members = new Map<number, Joined>();
  const start = async (id: number): Promise<Joined> => {
    await members.get(id)?.exited; // Wait until the port and the folder are free.
    const member = new Joined(id, where, PACKAGE, { clients: `127.0.0.1:${ports[id - 1]}` });
    members.set(id, member);
    await member.said("joined");
    return member;
  };
  await Promise.all([1, 2, 3].map(start));
  return { where, members, endpoints: ports.map((port) => `http://127.0.0.1:${port}`), start };
}

/** Connects with one endpoint and waits until the client has learned the others. */
async function connected([first = "", ...others]: readonly string[]): Promise<Client> {
  const client = await connect({ endpoints: [first] });
  clients.add(client);
  await until("it knows all members", () =>
    others.every((each) => client.status().endpoints.includes(each)) ? true : null,
  );
  return client;
}

/** Adds to a counter until it is stopped. @returns the number of certain additions and of possible ones */
async function counting(client: Client, isOver: () => boolean): Promise<{ added: number; perhaps: number }> {
  const counter = client.counter("all");
  let [added, perhaps, last] = [0, 0, 0];
  while (!isOver()) {
    try {
      const value = await counter.add(1, { timeoutMs: 5_000 });
      expect(value).toBeGreaterThan(last);
      last = value;
      added += 1;
    } catch (error) {
      if ((error as CoordinationError).phase === "uncertain") perhaps += 1;
      else expect((error as CoordinationError).phase).toBe("never-sent");
    }
  }
  return { added, perhaps };
}

type Blow = readonly [id: number, signal: "SIGKILL" | "SIGSTOP"];

async function underBlows(blows: readonly Blow[], size: number): Promise<void> {
  const { endpoints, members, start } = await served();
  const several = await Promise.all(Array.from({ length: size }, () => connected(endpoints)));
  const watcher = await connected(endpoints);
  let isOver = false;
  const counts = several.map((client) => counting(client, () => isOver));
  const numbers = watcher.map<number>("numbers");
  const put: number[] = [];
  const putting = (async () => {
    for (let value = 1; !isOver; value++) {
      put.push(await (several[0] as Client).map<number>("numbers").put("n", value, { timeoutMs: 30_000 }));
      await sleep(5);
    }
  })();
  const told: number[] = [];
  const watching = (async () => {
    for await (const change of numbers.watch({ after: 0 })) told.push(change.revision);
  })();
  for (const [id, signal] of blows) {
    const before = put.length;
    await until("writes continue", () => (put.length > before + 5 ? true : null));
    const member = members.get(id) as Joined;
    member.signal(signal);
    await until("writes continue without it", () => (put.length > before + 20 ? true : null));
    if (signal === "SIGSTOP") member.signal("SIGCONT");
    else await start(id);
  }
  isOver = true;
  await putting;
  const done = await Promise.all(counts);
  const added = done.reduce((sum, each) => sum + each.added, 0);
  const perhaps = done.reduce((sum, each) => sum + each.perhaps, 0);
  const total = await watcher.counter("all").get();
  expect(total).toBeGreaterThanOrEqual(added);
  expect(total).toBeLessThanOrEqual(added + perhaps);
  await until("the watch has told all", () => (told.length >= put.length ? true : null));
  expect(told).toEqual(put);
  await watcher.close();
  clients.delete(watcher);
  await watching.catch(() => {});
}

test("a member is killed: its clients continue at others, each addition is applied once, and a watch has no gap", () =>
  underBlows([[1, "SIGKILL"]], 3));

test("the same while members are killed and stopped, one after another", { tags: ["long"] }, () =>
  underBlows(
    [
      [1, "SIGKILL"],
      [2, "SIGSTOP"],
      [3, "SIGKILL"],
      [1, "SIGSTOP"],
      [2, "SIGKILL"],
    ],
    6,
  ),
);

test("two clients never hold one lock, even if its holder's member is stopped or all are", {
  tags: ["long"],
}, async () => {
  const { endpoints, members } = await served();
  const [one, two] = await Promise.all([connected(endpoints), connected(endpoints)]);
  const first = await one.mutex("shared").acquire();
  const member = members.get(one.status().member as number) as Joined;
  member.signal("SIGSTOP");
  await until("the client has moved", () => (one.status().moves > 0 ? true : null));
  await sleep(4_000); // Longer than a lease.
  expect(first.isHeld).toBe(true);
  member.signal("SIGCONT");

  let next: Grant | null = null;
  const waiting = two
    .mutex("shared")
    .acquire()
    .then((grant) => {
      expect(first.isHeld).toBe(false);
      next = grant;
    });
  for (const each of members.values()) each.signal("SIGSTOP");
  await until("the first has lost it by its own clock", () => (first.signal.aborted ? true : null));
  expect((first.signal.reason as CoordinationError).code).toBe("grant-lost");
  expect(next).toBeNull();
  for (const each of members.values()) each.signal("SIGCONT");
  await waiting;
  expect((next as unknown as Grant).token).toBeGreaterThan(first.token);
});

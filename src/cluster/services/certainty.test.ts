/**
 * What the leases are for: whoever is told that a tenure is certain is the only one, at every moment. All members live in
 * this process, so that all can be asked at the same moment.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { cluster, lockServerOf, startAll } from "../../../test/network/joined.ts";
import { seededRandom } from "../../../test/network/seed.ts";
import type { Random } from "../../core/random.ts";
import { epochOf } from "../../protocols/mutex/family/fencing-tokens.ts";
import type { FencedElection, Member, Mutex, Tenure } from "./api.ts";
import type { CoordinationError } from "./coordination-error.ts";
import { guard } from "./guard.ts";

const closing = closedAfterEach();
const PATIENCE = { timeout: 60_000, interval: 5 };
const ROUNDS = Number(process.env.COTERIE_ROUNDS ?? 12);

type Work = (tenure: Tenure) => Promise<void>;
/** Wins it, works, and gives it back, until the signal is aborted. */
type Contender = (member: Member, work: Work, signal: AbortSignal) => Promise<void>;

const locking =
  (algorithm: string): Contender =>
  async (member, work, signal) => {
    while (!signal.aborted) {
      const lock = member.mutex("certain", { algorithm });
      await lock.use(work, { timeoutMs: 400, signal }).catch((error: unknown) => {
        const { code } = error as CoordinationError;
        if (!["acquire-timeout", "acquire-aborted", "grant-lost"].includes(code)) throw error;
      });
    }
  };

const leading =
  (algorithm: FencedElection): Contender =>
  async (member, work, signal) => {
    while (!signal.aborted) {
      await member
        .election("certain", { algorithm })
        .lead(work, { signal })
        .catch((error: unknown) => expect(error).toMatchObject({ code: "lead-aborted" }));
    }
  };

/**
 * Of what each member sends, some is dropped: cut off from some or all, losing some, or late. Or one of them, `alone`, is cut
 * off both ways.
 */
async function disturb(member: Member, alone: number | null, random: Random): Promise<void> {
  const others = [1, 2, 3].filter((id) => id !== member.id);
  const isolation = { cutTo: member.id === alone ? others : [alone] };
  const drawn = random.pick([
    {},
    {},
    { cutTo: others },
    { cutTo: [random.pick(others)] },
    { dropRate: 0.2 },
    { delayMs: { min: 0, max: 150 } },
  ]);
  await putFaults(member, alone === null ? drawn : isolation);
}

const heal = (member: Member): Promise<void> => putFaults(member, {});

async function putFaults({ admin }: Member, faults: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  await fetch(`${admin}/faults`, { method: "PUT", headers, body: JSON.stringify(faults) });
}

function stall(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

// The last number says how long the work takes at most: longer than an election, where leadership is to be lost meanwhile.
test.each<[string, Contender, number]>([
  ["the lock of elected-server", locking("elected-server"), 150],
  ["the lock of epoch-token-ring", locking("epoch-token-ring"), 150],
  ["the leadership of epoch-bully", leading("epoch-bully"), 1_500],
  ["the lock of the log", locking("raft"), 150],
  ["the leadership of the log", leading("raft"), 1_500],
])(
  "%s is certain for one at a time, and tokens grow, whatever the network does; it is had again when that is well",
  { tags: ["long"], timeout: 600_000 },
  async (_name, contend, maxMs) => {
    const random = seededRandom();
    const members = await startAll(closing(await cluster(3, { admin: "127.0.0.1:0", faultInjector: true })));
    const won = new Set<Tenure>();
    const accept = guard();
    let entries = 0;
    const holders = (): number => [...won].filter(({ isHeld }) => isHeld).length;
    const work: Work = async (tenure) => {
      won.add(tenure);
      entries += 1;
      expect(holders()).toBeLessThanOrEqual(1);
      if (tenure.isHeld) accept(tenure.token);
      const until = performance.now() + random.between(0, maxMs);
      while (performance.now() < until && tenure.isHeld) {
        await sleep(1);
        expect(holders()).toBeLessThanOrEqual(1);
        if (tenure.isHeld) accept(tenure.token);
      }
      if (random.below(3) === 0) await sleep(random.between(0, 100)); // It does not look at its signal for a while.
      won.delete(tenure);
    };
    const stop = new AbortController();
    const contending = Promise.all(members.map((member) => contend(member, work, stop.signal)));
    const oneMore = (): Promise<unknown> => {
      const before = entries;
      return Promise.race([vi.waitFor(() => expect(entries).toBeGreaterThan(before), PATIENCE), contending]);
    };
    await oneMore();
    for (let round = 0; round < ROUNDS; round++) {
      const alone = random.pick([null, null, 1, 2, 3]);
      await Promise.all(members.map((member) => disturb(member, alone, random)));
      if (random.below(4) === 0) stall(random.between(50, 900));
      await Promise.race([sleep(random.between(50, 500)), contending]);
    }
    await Promise.all(members.map(heal));
    await oneMore();
    stop.abort();
    await contending;
  },
);

test("a server that has stood still grants nothing, not even to itself, before it is elected anew", async () => {
  const members = await startAll(closing(await cluster(3)));
  const locks = members.map((member) => member.mutex("certain", { algorithm: "elected-server" }));
  const server = (await lockServerOf(members, locks)) as Member;
  const lock = locks[members.indexOf(server)] as Mutex;
  const before = await lock.use(({ token }) => token);
  stall(600); // Longer than its lease as a leader: others may have elected another meanwhile.
  const { token } = await lock.acquire();
  expect(epochOf(token)).toBeGreaterThan(epochOf(before));
});

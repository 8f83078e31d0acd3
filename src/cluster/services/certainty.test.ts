/**
 * What the leases are for: whoever is told that a tenure is certain is the only one, at every moment. In virtual time, where all can be
 * asked at the same moment.
 */
import { describe, expect, test } from "vitest";
import { lockServerOf } from "../../../test/services/lock-server.ts";
import { ExclusiveUse } from "../../../test/testing/exclusive-use.ts";
import { epochOf } from "../../protocols/mutex/family/fencing-tokens.ts";
import { type FaultKind, type ProcessTools, simulate } from "../../testing/index.ts";
import type { FencedElection, Member, Tenure } from "./api.ts";
import type { CoordinationError } from "./coordination-error.ts";
import { guard } from "./guard.ts";

const kinds: readonly FaultKind[] = ["pause", "partition", "cut", "slow", "lossy", "slow-disk"];
const FAULTS_MS = 5_000;
/** After the last fault they have it again within that time. */
const WELL_WITHIN_MS = 10_000;

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

interface Contest {
  readonly contend: Contender;
  /** How long the work takes at most: longer than an election, where leadership is to be lost meanwhile. */
  readonly maxMs: number;
  /** Who has it again once all is mended: all in turn, or those that the algorithm prefers. */
  readonly isFair: boolean;
}

async function contested({ contend, maxMs, isFair }: Contest, seed: number): Promise<void> {
  const stop = new AbortController();
  const entered = new Set<number>();
  const accept = guard();
  const contending: Promise<void>[] = [];
  const world = simulate({
    members: 3,
    seed,
    faults: { kinds, forMs: FAULTS_MS },
    program(member, tools) {
      const living = contend(member, (tenure) => work(member.id, tenure, tools), stop.signal);
      contending.push(living);
      return living;
    },
  });
  const exclusive = new ExclusiveUse(() => world.now());
  const work = async (id: number, tenure: Tenure, { now, random, sleep }: ProcessTools): Promise<void> => {
    exclusive.enter("it", id, tenure, now, () => true);
    entered.add(id);
    if (tenure.isHeld) accept(tenure.token);
    const until = now() + maxMs * random();
    while (now() < until && tenure.isHeld) {
      await sleep(5);
      if (tenure.isHeld) accept(tenure.token);
    }
    if (random() < 0.3) await sleep(100 * random()); // It does not look at its signal for a while.
  };
  await world.run(async () => {
    await world.sleep(Math.max(...world.plan.map(({ at, forMs }) => at + forMs - world.now())) + 1);
    entered.clear();
    await world.sleep(WELL_WITHIN_MS);
    expect(entered.size).toBeGreaterThanOrEqual(isFair ? world.members.length : 1);
    stop.abort();
    await Promise.all(contending);
  });
}

describe.each<[string, Contest]>([
  ["the lock of elected-server", { contend: locking("elected-server"), maxMs: 150, isFair: true }],
  ["the lock of epoch-token-ring", { contend: locking("epoch-token-ring"), maxMs: 150, isFair: true }],
  ["the leadership of epoch-bully", { contend: leading("epoch-bully"), maxMs: 1_500, isFair: false }],
  ["the lock of the log", { contend: locking("raft"), maxMs: 150, isFair: true }],
  ["the leadership of the log", { contend: leading("raft"), maxMs: 1_500, isFair: true }],
])(
  "%s is certain for one at a time, and tokens grow, whatever fails; it is had again when that is mended",
  (_name, contest) => {
    test.each([1, 2])("seed %i", (seed) => contested(contest, seed));

    test("under more seeds", { tags: ["long"] }, async () => {
      for (let seed = 3; seed <= 12; seed++) await contested(contest, seed);
    });
  },
);

test.each([
  ["alone", false],
  ["with all others", true],
])(
  "a server that has stood still, %s, grants nothing, not even to itself, before it is elected anew",
  (_with, isEach) =>
    simulate({ members: 3, seed: 1 }).run(async (world) => {
      const members = world.members.map((id) => world.member(id));
      const lockAt = (member: Member) => member.mutex("certain", { algorithm: "elected-server" });
      const server = await lockServerOf(members, members.map(lockAt));
      const before = await lockAt(server).use(({ token }) => token);
      const still = isEach ? world.members : [server.id];
      for (const id of still) world.pause(id);
      await world.sleep(600); // Longer than its lease as a leader: others may have elected another meanwhile.
      for (const id of still) world.resume(id);
      const { token } = await lockAt(server).acquire();
      expect(epochOf(token)).toBeGreaterThan(epochOf(before));
    }),
);

/** The registry's replicated logs and their options in random runs. */
import type { Random } from "../../../src/core/random.ts";
import { replicatedLog } from "../../../src/protocols/family.ts";
import { protocolNamed, protocolNames } from "../../../src/protocols/index.ts";
import type { Drawn, LogUnderTest } from "./swarm.ts";

/** Clocks run between half and twice the normal speed, if safety does not depend on them. */
const wild: Drawn = { log: {}, clocks: [0.5, 2] };

/** The clock drift that leases allow for, if reads depend on leases. */
const DRIFT = 0.2;

/** Draws options for Raft. All limits are small enough for runs to reach them. */
function raft(chance: Random): Drawn {
  const checkQuorum = chance.below(4) > 0;
  const leaseReads = checkQuorum && chance.below(2) === 0;
  const log = {
    preVote: chance.below(4) > 0,
    checkQuorum,
    leaseReads,
    drift: DRIFT,
    maxBatchEntries: chance.pick([1, 3, 64]),
    maxInFlight: chance.pick([1, 2, 8]),
    maxUncommitted: chance.pick([2, 1_024]),
    maxWaiting: chance.pick([1, 64]),
    keptEntries: chance.pick([0, 2, 64]),
    handOverBeats: chance.pick([0, 0, 2, 5]),
    catchUpRounds: chance.pick([0, 0, 1, 10]),
    priorities: chance.below(2) === 0 ? [] : [0, 1, 2].map((node) => ({ node, behind: chance.below(4) })),
  };
  const machine = { snapshotBytes: chance.pick([20, 65_536]) };
  // A paused leader cannot end its lease, so the property of reads is violated until it resumes.
  const drawn = { log, machine };
  return leaseReads ? { ...drawn, clocks: [1 - DRIFT, 1 + DRIFT], pauses: false } : { ...drawn, clocks: wild.clocks };
}

/**
 * Draws options for Multi-Paxos and protocols built on it. If reads depend on its lease, no node is paused, because a
 * paused leader cannot end its lease.
 */
function multiPaxos(chance: Random): Drawn {
  const log = {
    window: chance.pick([1, 2, 16]),
    keep: chance.pick([0, 2, 64]),
    maxWaiting: chance.pick([1, 64]),
    announces: chance.below(2) === 0,
  };
  if (chance.below(3) > 0) return { log, clocks: wild.clocks };
  return { log: { ...log, reads: "lease", drift: DRIFT }, clocks: [1 - DRIFT, 1 + DRIFT], pauses: false };
}

const settings: Readonly<Record<string, Partial<Omit<LogUnderTest, "name" | "make">>>> = {
  "cheap-paxos": { draw: multiPaxos, replicas: 3 }, // The other nodes are auxiliaries without clients.
  "multi-paxos": { draw: multiPaxos },
  raft: { draw: raft },
};

export const logs: readonly LogUnderTest[] = protocolNames
  .filter((name) => protocolNamed(name).family === replicatedLog)
  .map((name) => ({
    name,
    make: protocolNamed(name).model as never,
    nodes: 5,
    draw: (_chance: Random) => wild,
    ...settings[name],
  }));

/** The replicated logs of the registry, and what each is given in random runs. */
import type { Random } from "../../../src/core/random.ts";
import { replicatedLog } from "../../../src/protocols/family.ts";
import { protocolNamed, protocolNames } from "../../../src/protocols/index.ts";
import type { Drawn, LogUnderTest } from "./swarm.ts";

/** Between half and twice the speed, where nothing rests on clocks. */
const wild: Drawn = { log: {}, clocks: [0.5, 2] };

/** What leases allow for, where reads rest on them. */
const DRIFT = 0.2;

/** With little room for everything, so that runs come to every bound. */
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
  // A paused leader cannot end its lease, so the property of reads does not hold of it until it continues.
  const drawn = { log, machine };
  return leaseReads ? { ...drawn, clocks: [1 - DRIFT, 1 + DRIFT], pauses: false } : { ...drawn, clocks: wild.clocks };
}

/** The same of Multi-Paxos and what is built on it. Where reads rest on its lease, nobody is paused: a leader that is cannot let go of it. */
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
  "cheap-paxos": { draw: multiPaxos, replicas: 3 }, // The others are auxiliaries, at which nobody asks for anything.
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

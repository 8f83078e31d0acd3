/**
 * Writes docs/learn/consensus.md and the pages it links to: consensus algorithms compared, with every number from a
 * run.
 */
import { type Agreement, agreements, costsOf } from "../../bench/table/consensus.ts";
import { measured } from "../../bench/table/cost.ts";
import { roundsCosts } from "../../bench/table/rounds.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { DELAY_MS, figure16, published, TRIALS } from "./election-timeouts.ts";

const NODES = 5;

/** When to use each algorithm. Only this content does not come from a run. */
const uses: Readonly<Record<string, string>> = {
  paxos: "one value, once; any node may propose",
  "multi-paxos": "a log under a stable leader; members change without a joint phase",
  "cheap-paxos": "a log for which f of the machines may be idle or small",
  "fast-paxos": "a log with one delay less for clients that are not on the leader, if commands are rarely concurrent",
  "generalized-paxos": "the same, if concurrent commands rarely interfere",
  pbft: "a log among organizations; fewer than a third may be Byzantine",
  raft: "a log for production: membership changes, snapshots, reads, leadership transfer",
  "two-phase-commit": "all or nothing among parties that may vote no; blocks if the coordinator crashes",
  "replicated-commit": "the same without blocking: the coordinator's decisions are in a replicated log",
  "byzantine-generals": "one order from one commander, with Byzantine generals",
  "flood-set": "one value, once, in synchronous rounds; any number of crashes",
  "interactive-consistency": "the same vector of one value per node at all correct nodes, with Byzantine nodes",
  lockstep: "turns of a game: no node sees another's action before its own is fixed, and cheating can be proved",
};

/** The conditions for an eventual decision, as stated on the page of each algorithm. */
const liveness: Readonly<Record<string, string>> = {
  paxos: "a quorum alive, reliable links",
  "multi-paxos": "a majority alive, reliable links, eventually bounded delay",
  "cheap-paxos": "a majority alive, reliable links, eventually bounded delay",
  "fast-paxos": "a classic quorum alive, reliable links",
  "generalized-paxos": "a classic quorum alive, reliable links",
  raft: "a majority alive and connected to a common leader, reliable links, eventually bounded delay",
  pbft: "message delays that do not keep growing as fast as the timeouts",
  "two-phase-commit": "crashed nodes that restart, reliable links",
};

/** Throws unless every agreement algorithm of the registry has a row in a table. */
function requireAllListed(): void {
  const listed = [...agreements.map(({ name }) => name), ...roundsCosts.map(({ protocol }) => baseOf(protocol))];
  // The cost of an assembly is the sum of its parts, and is given on its page.
  const missing = protocolNames.filter(
    (name) => protocolNamed(name).family.name === "consensus" && name !== "replicated-commit" && !listed.includes(name),
  );
  if (missing.length > 0) throw new Error(`expected rows for all agreements, and there are none for ${missing}`);
}
const baseOf = (name: string): string => name.split(",")[0] as string;

/** The figures come from the latest long runs. */
const tested = `# How the logs were tested

Part of [choosing a consensus algorithm](../learn/consensus.md).

Every log runs under [random faults](../../test/protocols/logs/swarm.ts): crashes that lose unsynced data, also within a step, partitions of every shape, one-way cuts, pauses, wrong clocks, lossy, slow and reordering links, snapshots, and changes of members and leaders. Clients at all nodes record a history.

- The history must be linearizable, and all properties must hold after every step.
- Once all faults are repaired, every client must be answered within 10 s of virtual time, and all state machines must be equal.

A failing seed prints the command that repeats it. \`npm run soak -- 3 200\` does the same with [real processes](../../test/e2e/log-soak.test.ts) that are killed, paused and cut off.

The table shows the last long runs, with five nodes each and no violation (\`COTERIE_SEEDS=10000 npx vitest run test/protocols/logs/swarm.test.ts -t 'COTERIE_SEEDS'\`). Options are random too, including Raft's transfer of leadership and catch-up of new voters:

| algorithm | seeds | commands answered | crashes | leaders | changes of members | snapshots sent | unsynced records lost | recovered within |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| raft | 10,000 | 406,086 of 446,138 | 60,081 | 24,847 | 7,943 | 11,444 | 4,158 | 4.5 s |
| multi-paxos | 12,000 | 731,111 of 769,452 | 71,999 | 41,703 | 13,253 | 24,585 | 24,151 | 3.8 s |
| cheap-paxos | 6,000 | 178,547 of 190,035 | 36,643 | 17,321 | 12,395 | 4,198 | 4,488 | 8.0 s |
| fast-paxos | 4,000 | 154,443 of 172,777 | 26,910 | 13,004 | – | 8,986 | 1,412 | 3.7 s |
| generalized-paxos | 2,000 | 117,290 of 125,265 | 13,249 | 6,568 | – | 301 | 1,114 | 2.3 s |

Earlier runs found two faults: in Multi-Paxos a candidate that never continued (seed 879), and in Cheap Paxos a wrong property, which mistook a leader that was still taking over members for one that reads by its lease (seed 2255).

On real processes, each configuration ran 200 faults with five clients, on two processors with other load:

| algorithm | kills: any, the leader, all | pauses: any, the leader | cuts: any, the leader | answered | answered again after, median | at most |
| --- | --- | --- | --- | --- | --- | --- |
| raft, 3 members | 24, 28, 29 | 27, 27 | 30, 35 | 7,472 of 7,787 | 23 ms | 0.6 s |
| raft, 5 members | 21, 23, 30 | 34, 34 | 28, 30 | 6,098 of 6,482 | 28 ms | 0.7 s |
| multi-paxos, 3 members | 35, 23, 28 | 34, 27 | 27, 26 | 6,118 of 6,643 | 50 ms | 0.9 s |
| multi-paxos, 5 members | 30, 31, 24 | 31, 23 | 29, 32 | 6,656 of 7,197 | 58 ms | 1.3 s |

All histories are linearizable, including those from 600 more faults of Multi-Paxos with five members. Unanswered commands were sent to a member that was stopped, paused or cut off.
`;

const inRounds = (): string => `## Algorithms in rounds

These algorithms have no stable leader. All nodes go through rounds or phases together, and a round lasts longer than any message delay. The counts are from one run. m is the largest number of Byzantine nodes that N generals can tolerate: 1 of 4, and 2 of 7. [Agreement](agreement.md) explains how the problems are related.

| algorithm | use it for | messages | N = 4 | N = 7 |
| --- | --- | --- | --- | --- |
${roundsCosts.map(roundsRow).join("\n")}
`;

/** Returns the pages, keyed by path. */
export const consensusPages = (): ReadonlyMap<string, string> =>
  new Map([
    ["docs/learn/consensus.md", consensusPage()],
    ["docs/internals/consensus-outages.md", outagesPage()],
    ["docs/internals/consensus-tested.md", tested],
  ]);

function consensusPage(): string {
  requireAllListed();
  return `# Choosing a consensus algorithm

This page compares when to use each consensus algorithm, its requirements and its cost. \`npm run pages -- consensus\` generates the page from runs.

All algorithms in the first two tables journal their promises. They stay safe under crashes with recovery, delay, loss, duplication, reordering and partitions. Their safety does not depend on clocks, except for lease reads, if you enable them. [Consensus algorithms](families/consensus.md#replicated-logs) describes the interface of a log.

| algorithm | use it for | needed to decide |
| --- | --- | --- |
${agreements.map(useRow).join("\n")}

See also how these algorithms behave [when the leader crashes or links fail](../internals/consensus-outages.md), and [how the logs were tested](../internals/consensus-tested.md) with random faults.

## Cost of one decision without faults

Each cell has the formula and the value measured in a run with ${NODES} nodes. \`coterie bench table consensus --nodes 3,4,5,7,9\` prints the values for other sizes. *Delays* is the number of message delays from the proposal until the proposer learns the decision. *Durable writes* counts how often any node waits for its disk. *Crashes tolerated* is how many other nodes can crash without preventing a decision (for two-phase commit, a commit).

| algorithm | messages | delays | durable writes | crashes tolerated |
| --- | --- | --- | --- | --- |
${agreements.map(costRow).join("\n")}

- **Paxos** is leaderless here: each decision has its own first phase, and acceptors notify all nodes.
- **Multi-Paxos and Raft** are measured at the leader. A command from another node takes one more message and one more delay. Other nodes learn the decision from the next message or heartbeat or, with Multi-Paxos's \`announces\` option, immediately, at the cost of N − 1 more messages.
- **Fast and Generalized Paxos** are measured without collisions. Acceptors answer clients directly, which saves one delay for clients that are not on the leader, but takes more messages.

${inRounds()}`;
}

function outagesPage(): string {
  const [least, most] = DELAY_MS;
  return `# Outages: time without a leader, and partial link failures

Part of [choosing a consensus algorithm](../learn/consensus.md).

## Time without a leader

This repeats figure 16 of the Raft paper in the simulator. The leader of five servers crashes at a random time between two heartbeats, and the others have logs of different lengths. Each row has ${TRIALS} trials (100 without randomness). Messages take ${least} to ${most} ms.

| election timeouts | median, ms | mean, ms | worst, ms | the paper |
| --- | --- | --- | --- | --- |
${figure16().map(downtimeRow).join("\n")}

Some randomness is necessary. With 5 ms a series of split votes ends soon, and with 50 ms there is hardly any. In the paper, 150–150 ms consistently took longer than 10 s. Here the message delays are more random, which ends some splits.

The message delay is fitted, because the paper does not give its distribution. It names "a broadcast time of roughly 15 ms", the mean time to send to all servers and receive their answers (§5.6). If every round trip takes 15 ms, all rows take longer than in the paper. The range above fits all four published figures within 15 %, with a broadcast time of 9.4 ms.

## Partial link failures

Some links fail, and every node can still reach some others. The names are from Ng, Haridi & Carbone, "Omni-Paxos", EuroSys 2023. [Tests](../../src/protocols/consensus/raft/partial-connectivity.test.ts) measure how long Raft commits nothing, and the scenarios show it.

- **Quorum loss**: one of five nodes has links to all others; the leader has a link to that node only. With check-quorum the leader steps down, and the connected node is elected ([scenario](../../scenarios/raft-quorum-loss.yaml)). Without check-quorum but with pre-vote, that node keeps following its leader, and nothing commits again ([scenario](../../scenarios/raft-quorum-loss-unchecked.yaml)).
- **Constrained election**: the same, but the leader has no links, and the connected node lacks an entry. Raft elects no leader until links are repaired, because a leader needs both the newest log and a majority ([scenario](../../scenarios/raft-constrained-election.yaml)). In Multi-Paxos that node learns the missing entry from the promises, and leads ([scenario](../../scenarios/multi-paxos-constrained-election.yaml)).
- **Chained**: the leader of three nodes has lost its link to one of them. Pre-vote and check-quorum both keep the leader in place. Without them, the ends of the chain depose each other until the node in the middle leads ([scenario](../../scenarios/raft-chained.yaml)).
`;
}

function useRow({ name }: Agreement): string {
  return `| [${name}](protocols/${name}.md) | ${uses[name] ?? ""} | ${liveness[name] ?? ""} |`;
}

function costRow(agreement: Agreement): string {
  const cells = costsOf(agreement).map((cost) => {
    const { formula } = cost;
    const figure = measured(cost, NODES);
    if (figure === null || !figure.fits) throw new Error(`expected ${agreement.name}, ${cost.unit} to fit ${formula}`);
    const [found] = figure.measured;
    return formula === String(found) ? formula : `${formula} = ${found}`;
  });
  return `| ${[agreement.name, ...cells].join(" | ")} |`;
}

function roundsRow(cost: (typeof roundsCosts)[number]): string {
  const counts = [4, 7].map((nodes) => {
    const figure = measured(cost, nodes);
    if (figure === null || !figure.fits) throw new Error(`expected ${cost.protocol} to fit ${cost.formula}`);
    return figure.measured[0];
  });
  const base = baseOf(cost.protocol);
  const use = cost.protocol === base ? (uses[base] ?? "") : "the same";
  const name = cost.protocol.replace(base, `[${base}](protocols/${base}.md)`);
  return `| ${[name, use, cost.formula, ...counts].join(" | ")} |`;
}

function downtimeRow({ timeouts, median, mean, worst }: ReturnType<typeof figure16>[number]): string {
  const inPaper = published.filter((each) => each.timeouts === timeouts).map(({ what, ms }) => `${what} ${ms}`);
  const cells = [median, mean, worst].map((ms) => ms.toFixed(0));
  return `| ${[timeouts, ...cells, inPaper.join(", ")].join(" | ")} |`;
}

/** docs/learn/consensus.md and its pages: agreements under crashes beside each other, every number from a run. */
import { type Agreement, agreements, costsOf } from "../../bench/table/consensus.ts";
import { measured } from "../../bench/table/cost.ts";
import { roundsCosts } from "../../bench/table/rounds.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { DELAY_MS, figure16, published, TRIALS } from "./election-timeouts.ts";

const NODES = 5;

/** When to use which: the one thing here that no run says. */
const uses: Readonly<Record<string, string>> = {
  paxos: "one value, once; any node may propose",
  "multi-paxos": "a log under a leader that stays; members that change without a joint phase",
  "cheap-paxos": "a log where f of the machines should be idle, or small",
  "fast-paxos": "one delay less for clients that are no leaders, where commands seldom meet",
  "generalized-paxos": "the same where commands that meet seldom interfere",
  pbft: "a log among organisations of which fewer than a third may lie",
  raft: "a log for production: membership changes, snapshots, reads, transfer of leadership",
  "two-phase-commit": "all or nothing over parties that may say no; a coordinator's crash blocks",
  "replicated-commit": "the same where the coordinator's crash must not block: its decisions are in a replicated log",
  "byzantine-generals": "one order of one commander, among traitors",
  "flood-set": "one value, once, where rounds are synchronous: any number of crashes",
  "interactive-consistency": "a value of everybody, among liars: one vector at all",
  lockstep: "turns of a game: nobody sees an action before its own is fixed, and a cheat is proved",
};

/** An agreement of the registry that stands in no table would be missed here, not there. */
function requireAllListed(): void {
  const listed = [...agreements.map(({ name }) => name), ...roundsCosts.map(({ protocol }) => baseOf(protocol))];
  // What it costs is the sum of its parts, and stands on its page.
  const missing = protocolNames.filter(
    (name) => protocolNamed(name).family.name === "consensus" && name !== "replicated-commit" && !listed.includes(name),
  );
  if (missing.length > 0) throw new Error(`expected rows for all agreements, and there are none for ${missing}`);
}
const baseOf = (name: string): string => name.split(",")[0] as string;

/** The figures are those of the last long runs. */
const tested = `# How the logs were tested

Part of [agreement under crashes](../learn/consensus.md).

Every log runs under [random faults](../../test/protocols/logs/swarm.ts): crashes that lose what was not synced, in the middle of steps too, partitions of every shape, one-way cuts, pauses, wrong clocks, lossy, slow and reordering links, snapshots, changes of members and leaders. Clients at all nodes keep
a history, which has to be linearizable; all properties hold after every step; once all is mended everybody is answered within 10 s of virtual time, and all state machines are equal. A seed that fails prints the command that repeats it. The same with [real processes](../../test/e2e/log-soak.test.ts) that are killed, paused and cut off: \`npm run soak -- 3 200\`.

What long runs came to, five nodes each, with no violation (\`COTERIE_SEEDS=10000 npx vitest run test/protocols/logs/swarm.test.ts -t 'COTERIE_SEEDS'\`). Options are drawn too, those of Raft that hand leadership over and let new voters catch up among them:

| | seeds | commands answered | crashes | leaders | changes of members | snapshots sent | unsynced records lost | well again within |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| raft | 10,000 | 406,086 of 446,138 | 60,081 | 24,847 | 7,943 | 11,444 | 4,158 | 4.5 s |
| multi-paxos | 12,000 | 731,111 of 769,452 | 71,999 | 41,703 | 13,253 | 24,585 | 24,151 | 3.8 s |
| cheap-paxos | 6,000 | 178,547 of 190,035 | 36,643 | 17,321 | 12,395 | 4,198 | 4,488 | 8.0 s |
| fast-paxos | 4,000 | 154,443 of 172,777 | 26,910 | 13,004 | – | 8,986 | 1,412 | 3.7 s |
| generalized-paxos | 2,000 | 117,290 of 125,265 | 13,249 | 6,568 | – | 301 | 1,114 | 2.3 s |

Before them seed 879 of Multi-Paxos had found a candidate that stood still for good, and seed 2255 of Cheap Paxos a property that took a leader with members to take over for one that answers reads by its lease. On real processes 200 faults each, with five clients all the time, on two processors with other work:

| | kills: any, the leader, all | pauses: any, the leader | cuts: any, the leader | answered | then answered again, median | at worst |
| --- | --- | --- | --- | --- | --- | --- |
| raft, 3 members | 24, 28, 29 | 27, 27 | 30, 35 | 7,472 of 7,787 | 23 ms | 0.6 s |
| raft, 5 members | 21, 23, 30 | 34, 34 | 28, 30 | 6,098 of 6,482 | 28 ms | 0.7 s |
| multi-paxos, 3 members | 35, 23, 28 | 34, 27 | 27, 26 | 6,118 of 6,643 | 50 ms | 0.9 s |
| multi-paxos, 5 members | 30, 31, 24 | 31, 23 | 29, 32 | 6,656 of 7,197 | 58 ms | 1.3 s |

All histories are linearizable, as are those of 600 faults more of Multi-Paxos with five members. What was not answered had been asked of a member that was down, standing still or cut off.
`;

const inRounds = (): string => `## In rounds, in which everybody takes part

These have no leader that stays: nodes go through rounds or phases together, which last longer than any message travels. What each is good for, and what a run measures; m is the most traitors that N generals stand, 1 of 4 and 2 of 7. What the forms of agreement have to do with each other: [agreement](agreement.md).

| | use it for | messages | N = 4 | 7 |
| --- | --- | --- | --- | --- |
${roundsCosts.map(roundsRow).join("\n")}
`;

/** By path. */
export const consensusPages = (): ReadonlyMap<string, string> =>
  new Map([
    ["docs/learn/consensus.md", consensusPage()],
    ["docs/internals/consensus-outages.md", outagesPage()],
    ["docs/internals/consensus-tested.md", tested],
  ]);

function consensusPage(): string {
  requireAllListed();
  return `# Agreement under crashes: which to use

All journal what they promise, and survive any crashes with recovery, delay, loss, duplication, reordering and partition: safety rests on no clock, but for reads by lease where they are asked for. They differ in what an agreement costs and in what has to work for it to come.
What a log must offer: [families/consensus.md](families/consensus.md#replicated-logs). \`npm run pages -- consensus\` writes this page anew.

When the leader crashes or links break: [outages](../internals/consensus-outages.md). Random faults, by the thousand: [how the logs were tested](../internals/consensus-tested.md).

| | use it for | liveness needs |
| --- | --- | --- |
${agreements.map(useRow).join("\n")}

## What one undisturbed agreement costs

The formula, and what a run with ${NODES} nodes measures; \`coterie bench table consensus --nodes 3,4,5,7,9\` has more. Time is in message delays from the proposal to when the proposer knows. Writes are steps in which a node waits for its disk, all nodes together.
Crashes: the most, of other nodes, with which it still decides (two-phase commit: still commits).

| algorithm | messages | delays | durable writes | crashes tolerated |
| --- | --- | --- | --- | --- |
${agreements.map(costRow).join("\n")}

Paxos here is leaderless: each decision has its own first phase, and acceptors tell everybody. Multi-Paxos and Raft are measured at the leader; a command given to another node takes one message and one delay more, and others hear of the decision with the next message or heartbeat, or at once
for N − 1 more messages (\`announces\` of Multi-Paxos). Fast and Generalized Paxos are measured without collision: acceptors answer clients straight, which saves a delay for everybody but the leader, and costs messages.

${inRounds()}`;
}

function outagesPage(): string {
  const [least, most] = DELAY_MS;
  return `# Outages: time without a leader, and links that break in part

Part of [agreement under crashes](../learn/consensus.md).

## Time without a leader

The Raft paper's figure 16 in the simulator: five servers, the leader crashes at some time between two heartbeats, the others have logs of different lengths. ${TRIALS} trials for each row (100 where nothing is random). Messages take ${least} to ${most} ms.

| election timeouts | median, ms | mean, ms | worst, ms | the paper |
| --- | --- | --- | --- | --- |
${figure16().map(downtimeRow).join("\n")}

Some randomness is necessary: with 5 ms a series of split votes ends soon, and with 50 ms there is hardly one. In the paper 150–150 ms consistently took longer than 10 s. Here message delays are more random, and end some splits.

The message delay is fitted, not known. The paper names "a broadcast time of roughly 15 ms", the mean time to send to all servers and receive their answers (§5.6), but not its distribution. If every round trip takes 15 ms, all rows take longer than in the paper. The range above fits all four published figures within 15 %, with a broadcast time of 9.4 ms.

## Links that break in part

Some links are down, and every node can reach some others. The names are from Ng, Haridi & Carbone, "Omni-Paxos", EuroSys 2023. [Tests](../../src/protocols/consensus/raft/partial-connectivity.test.ts) measure how long Raft commits nothing, and the scenarios show it.

- **Quorum loss**: of five nodes one has links to all, the leader to that one alone. With check-quorum the leader steps down, and the node that all reach is elected ([scenario](../../scenarios/raft-quorum-loss.yaml)). Without check-quorum, but with pre-vote, that node keeps following its leader, and nothing is committed again ([scenario](../../scenarios/raft-quorum-loss-unchecked.yaml)).
- **Constrained election**: the same, but the leader has no link at all and the node that all reach lacks an entry. Raft elects no leader until links are mended: a leader needs both the newest log and a majority ([scenario](../../scenarios/raft-constrained-election.yaml)). In Multi-Paxos that node learns the missing entry from the promises, and leads ([scenario](../../scenarios/multi-paxos-constrained-election.yaml)).
- **Chained**: of three nodes the leader has lost its link to one. Both leave the leader alone. Without pre-vote and check-quorum the ends of the chain depose each other until the node in the middle leads ([scenario](../../scenarios/raft-chained.yaml)).
`;
}

function useRow({ name, make }: Agreement): string {
  const { assumes } = make();
  const liveness =
    assumes.find((each) => each.startsWith("for liveness: "))?.slice("for liveness: ".length) ?? "nothing";
  return `| [${name}](protocols/${name}.md) | ${uses[name] ?? ""} | ${liveness} |`;
}

function costRow(agreement: Agreement): string {
  const cells = costsOf(agreement).map((cost) => {
    const { formula } = cost;
    const figure = measured(cost, NODES);
    if (figure === null || !figure.fits) throw new Error(`expected ${agreement.name}, ${cost.unit} to fit ${formula}`);
    const [found] = figure.measured;
    return formula === String(found) ? formula : `${formula}: ${found}`;
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
  const use = cost.protocol === base ? (uses[base] ?? "") : "";
  const name = cost.protocol.replace(base, `[${base}](protocols/${base}.md)`);
  return `| ${[name, use, cost.formula, ...counts].join(" | ")} |`;
}

function downtimeRow({ timeouts, median, mean, worst }: ReturnType<typeof figure16>[number]): string {
  const inPaper = published.filter((each) => each.timeouts === timeouts).map(({ what, ms }) => `${what} ${ms}`);
  const cells = [median, mean, worst].map((ms) => ms.toFixed(0));
  return `| ${[timeouts, ...cells, inPaper.join(", ")].join(" | ")} |`;
}

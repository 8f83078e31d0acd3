/**
 * Recreates the book's tables from runs: the costs of algorithms in the simulator, and the checker's verdicts on their
 * promises.
 */

import { type Cost, type Figure, measured, span } from "../../bench/table/cost.ts";
import { electionCosts } from "../../bench/table/election.ts";
import { mutexCosts } from "../../bench/table/mutex.ts";
import { explore } from "../../src/check/explore.ts";
import { isReached, type Reach } from "../../src/check/reach.ts";
import { walk } from "../../src/check/search/walks.ts";
import { type SystemSpec, systemFor } from "../../src/check/suite.ts";
import { type Family, protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { voteCount, votingSetsProblem } from "../../src/protocols/mutex/parts/voting-sets.ts";
import { multicastSection } from "./multicasts.ts";

const NODES = 13;
const MAX_STATES = 100_000;

const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  `${row(head)}${row(head.map(() => "---"))}${rows.map(row).join("")}`;

const link = (name: string): string => `[${name}](protocols/${name}.md)`;

/** Formats a cost as `2(N − 1) = 24`, or only the formula if it is a number. */
function costOf(costs: readonly Cost[], protocol: string, what: string, unit: Cost["unit"]): string {
  const cost = costs.find((each) => each.protocol === protocol && each.what === what && each.unit === unit);
  if (cost === undefined) return "";
  const { formula, measured: figure, fits } = measured(cost, NODES) as Figure;
  if (!fits) return `**${span(figure)}**`;
  return span(figure) === formula ? formula : `${formula}: ${span(figure)}`;
}

type Spec = Omit<SystemSpec, "nodes"> & Partial<SystemSpec>;

/**
 * Returns the checker's verdict on all properties whose names begin with a prefix: the worst one, and the extent of the
 * search.
 */
function verdictOf(spec: Spec, ...prefixes: readonly string[]): string {
  const whole = systemFor({ maxStates: MAX_STATES, nodes: [0, 1, 2], ...spec });
  const properties = (whole.properties ?? []).filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix)));
  const { verdict, states, path, reach } = explore({ ...whole, properties });
  if (verdict === "violated") return `**no**: ${path.length} steps`;
  requireReached(spec.protocol, reach);
  return verdict === "holds" ? `yes: ${number.format(states)} states` : `none found in ${number.format(states)} states`;
}

/** Throws if a search reached no work of the algorithm. Such a search proves nothing, and must not be in a table. */
function requireReached(protocol: string, reach: Reach): void {
  const { done } = protocolNamed(protocol).family;
  if (done === null || !isReached(reach, done.event))
    throw new Error(`the search of ${protocol} reached too little: ${done?.none}`);
}

/** Returns the verdicts on two promises. If both hold, one search proves both. */
function verdictsOf(spec: Spec, safety: string, liveness: string): [safety: string, liveness: string] {
  const both = verdictOf(spec, safety, liveness);
  return both.startsWith("yes") ? [both, both] : [verdictOf(spec, safety), verdictOf(spec, liveness)];
}

/**
 * Returns the algorithms of a family, in the registry's order. Algorithms whose timers never end are compared by random
 * runs.
 */
const namesOf = (family: Family["name"], isEndless: boolean): string[] =>
  protocolNames.filter((name) => {
    const entry = protocolNamed(name);
    return entry.family.name === family && (entry.check.maxTimeouts !== undefined) === isEndless;
  });

/** Only two nodes request. If all of them did, there would be too many runs. */
const two: Partial<SystemSpec> = { initiators: [0, 1] };
/** Four nodes, because with three, two voting sets share only one of the two requesters. */
const twoOfFour: Partial<SystemSpec> = { nodes: [0, 1, 2, 3], initiators: [0, 3] };

/** The nodes that request while the order is checked. By default all nodes do. */
const orders: Readonly<Record<string, Partial<SystemSpec>>> = {
  "ricart-agrawala": two,
  maekawa: twoOfFour,
  "maekawa-sanders": twoOfFour,
};

/** Costs that are not a single figure. */
const bandwidths: Readonly<Record<string, string>> = {
  "token-ring": "N a round; 0 while one is inside",
  "epoch-token-ring": "N a round; 0 while one is inside",
};

const costsOf = (name: string): string[] => [
  link(name),
  costOf(mutexCosts, name, "entry", "messages"),
  costOf(mutexCosts, name, "client delay", "message times"),
  costOf(mutexCosts, name, "hand-over", "message times"),
  costOf(mutexCosts, name, "bandwidth", "messages") || (bandwidths[name] ?? ""),
];

const PROBED = "causality-probe";

/**
 * Returns the order that holds, or nothing if the registry has no such variant. The table claims that the order holds
 * only if all nodes request.
 */
function orderOf(name: string): string {
  if (!Object.hasOwn(protocolNamed(name).variants, PROBED)) return "";
  const setting = orders[name] ?? {};
  const verdict = verdictOf({ protocol: name, variant: PROBED, ...setting }, "ME3 happened-before");
  return setting.initiators === undefined ? verdict : verdict.replace(/^yes:/, "no violation with two:");
}

const mutexRow = (name: string): string[] => [
  ...costsOf(name),
  ...verdictsOf({ protocol: name }, "ME1", "ME2"),
  orderOf(name),
  ...verdictsOf({ protocol: name, crashes: 1 }, "ME1", "ME2"),
];

/**
 * The number of random runs. Two nodes request. Runs do not end, and a search of all short runs reaches no
 * grant.
 */
const RUNS = 300;
const endless: Partial<SystemSpec> = { initiators: [0, 1], maxTimeouts: 20, times: 2 };

function foundAtRandom(spec: Spec, property: string): string {
  const system = systemFor({ nodes: [0, 1, 2], property, ...spec });
  const { verdict, path, reach } = walk({ ...system, strategy: "swarm", seed: 1, runs: RUNS, stepsPerRun: 200 });
  if (verdict === "violated") return `**no**: ${path.length} steps`;
  requireReached(spec.protocol, reach);
  return `none found in ${number.format(RUNS)} random runs with grants in ${number.format(grants(reach))} situations`;
}

const grants = ({ events }: Reach): number =>
  Object.entries(events).reduce((sum, [event, times]) => sum + (event.endsWith("entered") ? times : 0), 0);

/** The properties that hold with any clocks. */
const costs: Readonly<Record<string, string>> = {
  "elected-server": "tokens are unique",
  "epoch-token-ring": "one token an epoch",
};

function hardenedRow(name: string): string[] {
  const cost = costs[name] ?? "tokens grow";
  return [
    ...costsOf(name),
    cost,
    foundAtRandom({ protocol: name, ...endless }, cost),
    foundAtRandom({ protocol: name, ...endless, crashes: 1, recoveries: 1, losses: 1 }, cost),
  ];
}

interface Election {
  /** The names of claims in `coterie bench table election`. */
  readonly best: string;
  readonly worst: string;
  /** With these options, timers expire when no message is in transit, and crashes are detected. */
  readonly quiet: Partial<SystemSpec>;
  readonly knows: string;
}

const noticed: Partial<SystemSpec> = { timers: "quiet", crashNotifications: "last" };

const cases: Readonly<Record<string, Partial<Election>>> = {
  bully: {
    best: "the second-highest node detects the crash",
    worst: "the lowest node starts the election after the highest crashed",
    knows: "all nodes, and their ids",
  },
  "chang-roberts": {
    best: "the highest node starts the election",
    worst: "the node after the highest starts the election",
    quiet: {},
    knows: "the next node on the ring",
  },
  ring: {
    best: "one election",
    worst: "two concurrent elections",
    quiet: { ...noticed, initiators: [0] },
    knows: "the order of the ring",
  },
};

/**
 * Elections that can be called when idle. Those that must be started have leases, regions or tokens, and are compared
 * on their pages.
 */
const elections = namesOf("election", false).filter((name) => !protocolNamed(name).mustStart);

/** Returns the case of an algorithm without its own entry: its first and last claim, with all nodes calling. */
function caseOf(name: string): Election {
  const own = electionCosts.filter(({ protocol, unit }) => protocol === name && unit === "messages");
  const quiet = protocolNamed(name).check.crashNotification === undefined ? {} : noticed;
  return { best: own[0]?.what ?? "", worst: own.at(-1)?.what ?? "", quiet, knows: "", ...cases[name] };
}

function electionRow(name: string): string[] {
  const { best, worst, quiet, knows } = caseOf(name);
  const cost = (what: string, unit: Cost["unit"]): string => costOf(electionCosts, name, what, unit);
  const free = { protocol: name, maxStates: 200_000 };
  const bounded = { protocol: name, ...quiet };
  return [
    link(name),
    cost(best, "messages"),
    cost(worst, "messages"),
    cost(`${worst}: turnaround`, "message times") || cost(`${best}: turnaround`, "message times"),
    ...verdictsOf(bounded, "E1", "E2"),
    ...verdictsOf({ ...bounded, crashes: 1 }, "E1", "E2"),
    ...verdictsOf({ ...bounded, crashes: 1, recoveries: 1 }, "E1", "E2"),
    verdictOf(free, "E1"),
    knows,
  ];
}

const MOST_NODES = 1_000;

/** Returns the note for five nodes, for which the construction for any N is not the smallest. */
function fiveNote(): string {
  const neighbours = [0, 1, 2, 3, 4].map((i) => [i, (i + 1) % 5, (i + 2) % 5]);
  if (votingSetsProblem(neighbours) !== null) throw new Error("three neighbours of five do not meet pairwise");
  return " (the sets of three neighbors { i, i + 1, i + 2 } would need 6 messages for N = 5, against 8)";
}

/** Returns the cost of an entry and exit by votes, 3(K − 1), and by replies of all others, 2(N − 1), for every N. */
function votesAgainstReplies(): string {
  const sizes = Array.from({ length: MOST_NODES - 1 }, (_, i) => i + 2);
  const votes = (nodes: number): number => 3 * (voteCount(nodes) - 1);
  const replies = (nodes: number): number => 2 * (nodes - 1);
  const where = (holds: (difference: number) => boolean): number[] =>
    sizes.filter((nodes) => holds(votes(nodes) - replies(nodes)));
  const rows = [2, 3, 4, 5, 6, 7, 13, 31, 100, MOST_NODES].map((nodes) =>
    [nodes, voteCount(nodes), votes(nodes), replies(nodes)].map((each) => number.format(each)),
  );
  return `Is Maekawa cheaper than Ricart–Agrawala? A common statement is that it "improves if N > 4". With the voting sets that Coterie computes, and every N from 2
to ${number.format(MOST_NODES)}, Maekawa needs fewer messages for ${where((difference) => difference < 0).length} of them, starting with N = ${where((difference) => difference < 0)[0]}. It needs as many for N = ${where((difference) => difference === 0).join(", ")}, and more for N = ${where((difference) => difference > 0).join(", ")}${fiveNote()}.

${table(["N", "K", "Maekawa, 3(K − 1)", "Ricart–Agrawala, 2(N − 1)"], rows)}`;
}

const exclusions = (): string => `## Mutual exclusion

Every node enters once.

- **ME1 safety**: at most one node is inside.
- **ME2 liveness**: a waiting node eventually enters.
- **ME3 ordering**: nodes enter in the order of happened-before between their requests. For this check, nodes also announce their requests
  (\`--variant causality-probe\`).

The last two columns add one crash at any moment.

${table(
  [
    "algorithm",
    "entry, messages",
    "client delay, message times",
    "hand-over, message times",
    "bandwidth, messages",
    "ME1",
    "ME2",
    "ME3",
    "ME1, one crash",
    "ME2, one crash",
  ],
  namesOf("mutual exclusion", false).map(mutexRow),
)}
Maekawa and Sanders order their queues by \`(T, p)\`, but a voter may receive the later request first. So ME3 does not hold.

${votesAgainstReplies()}`;

const hardenedExclusions = (): string => `### Hardened

These algorithms have an election, leases and a journal. Their ME1 depends on clocks within a margin; simulated runs check that. This table checks a
property that holds for any clocks: tokens differ, so a resource that compares tokens stays safe.

Two nodes request two entries each, and timers run out at any time, at most twenty times per run. The runs are random, with 200 moves each
(\`--strategy swarm\`), because a search of all short runs never reaches a grant.

${table(
  [
    "algorithm",
    "entry, messages",
    "client delay, message times",
    "hand-over, message times",
    "bandwidth, messages",
    "always",
    "without faults",
    "one crash, one recovery, one lost message",
  ],
  namesOf("mutual exclusion", true).map(hardenedRow),
)}
`;

const electionsTable = (): string => `## Election

- **E1 safety**: a node elects only the highest alive node, and eventually all participants follow it.
- **E2 liveness**: every election ends, and every participant knows the leader.

If the algorithm assumes bounded delay, the check does too: timers run out only when no message is in flight, and every node is notified of a crash after the
last message of the crashed node. The column "E1, time unbounded" drops that bound. One node calls on the ring with a list, and all nodes elsewhere.

${table(
  [
    "algorithm",
    "best, messages",
    "worst, messages",
    "turnaround of the worst, message times",
    "E1",
    "E2",
    "E1, one crash",
    "E2, one crash",
    "E1, one crash and its recovery",
    "E2, one crash and its recovery",
    "E1, time unbounded",
    "a node knows",
  ],
  elections.map(electionRow),
)}`;

export const comparisonPage = (): string => `# Comparison

These tables extend the ones in Coulouris et al., chapter 15. Every number comes from a run. \`npm run pages -- comparison\` generates this page.

Costs are measured in the simulator with ${NODES} nodes and compared with the formula next to them. \`coterie bench table\` prints more sizes. Guarantees are
checked with three nodes, as \`coterie check\` does:

- \`yes\`: the property holds in all states, with their number
- \`**no**\`: a run violates it, with the length of the shortest one
- \`none found\`: no violation, but the search stopped before it had seen all states

${exclusions()}
${hardenedExclusions()}
${electionsTable()}
${multicastSection()}`;

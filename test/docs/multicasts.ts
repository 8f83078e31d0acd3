/**
 * Creates the table of multicasts: their costs in the simulator, and the checker's verdicts on their orders and on
 * agreement.
 */
import { type Cost, type Figure, measured } from "../../bench/table/cost.ts";
import { multicastCosts } from "../../bench/table/multicast.ts";
import { type ExploreOptions, explore } from "../../src/check/explore.ts";
import { isReached } from "../../src/check/reach.ts";
import type { Property, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { multicast as family } from "../../src/protocols/family.ts";
import {
  agreement,
  fifoOrder,
  happenedBeforeOrder,
  type MulticastWorkload,
  multicastWithWorkload,
  protocolNamed,
  protocolNames,
  totalOrder,
} from "../../src/protocols/index.ts";
import { evenly } from "../../src/protocols/multicast/ip-multicast/vocabulary.ts";

interface Row {
  readonly name: string;
  readonly protocol: Protocol<Vocabulary>;
  /** Whether runs of the protocol do not end, so they are bounded as in the registry. */
  readonly isEndless: boolean;
  readonly unit: Cost["unit"];
  readonly what: string;
}

const messages = { unit: "messages", what: "a multicast" } as const;
const datagrams = { unit: "datagrams", what: "a multicast, until all have delivered" } as const;

/** Options with evenly spaced retries, so that runs repeat states. */
const options: Readonly<Record<string, object>> = { "ip-multicast": evenly };

/** All multicasts that can be used from idle. The page of `view-synchrony` covers groups with views. */
const rows: readonly Row[] = protocolNames.flatMap((name) => {
  const { family, node, mustStart, check } = protocolNamed(name);
  if (family.name !== "multicast" || mustStart) return [];
  const isByDatagram = multicastCosts.some((cost) => cost.protocol === name && cost.unit === "datagrams");
  return [
    {
      name,
      protocol: node(options[name]),
      isEndless: check.maxInFlight !== undefined,
      ...(isByDatagram ? datagrams : messages),
    },
  ];
});

const NODES = 13;
const MAX_STATES = 100_000;
const number = new Intl.NumberFormat("en-US");

function costOf(protocol: string, what: string, unit: Cost["unit"]): string {
  const cost = multicastCosts.find((each) => each.protocol === protocol && each.what === what && each.unit === unit);
  if (cost === undefined) return "";
  const { formula, measured: figure, fits } = measured(cost, NODES) as Figure;
  const [least] = figure;
  if (!fits) return `**${number.format(least)}**`;
  return number.format(least) === formula ? formula : `${formula}: ${number.format(least)}`;
}

type Setting = Partial<ExploreOptions<Vocabulary>>;

/** Returns the verdict for three members over links without order. Some members send. */
function verdictOf({ protocol, isEndless }: Row, property: Property<MulticastWorkload>, setting: Setting): string {
  const used = multicastWithWorkload(protocol, [property]) as unknown as Protocol<Vocabulary>;
  const properties = used.properties.filter(({ name }) => name === `workload: ${property.name}`);
  const bounds = isEndless ? { maxInFlight: 3 } : {};
  const system = { protocol: used, nodes: [0, 1, 2], network: "bag", timers: "free", begin: "idle" } as const;
  const found = explore<Vocabulary>({ ...system, ...bounds, ...setting, properties, maxStates: MAX_STATES });
  const states = number.format(found.states);
  if (found.verdict === "violated") return `**no**: ${found.path.length} steps`;
  if (!isReached(found.reach, "delivered")) throw new Error("nothing was delivered, so the search shows nothing");
  return found.verdict === "holds" ? `yes: ${states} states` : `none found in ${states} states`;
}

const asking =
  (...times: readonly number[]) =>
  (node: number): never[] =>
    times[node] === undefined ? [] : ([family.ask(node, times[node])] as never[]);

/**
 * The messages that can break each order. For FIFO, node 0 sends two messages. For causal order, node 1 sends one as
 * well. For total order, each node sends one.
 */
const settings = { fifo: { asks: asking(2) }, causal: { asks: asking(2, 1) }, total: { asks: asking(1, 1) } };
const struck: Setting = { asks: asking(1), crashes: 1, withinStep: true };

const cells = (row: Row): string[] => [
  `[${row.name}](protocols/${row.name}.md)`,
  `${costOf(row.name, row.what, row.unit)}${row.unit === "messages" ? "" : " datagram"}`,
  costOf(row.name, "until all have delivered", "message times") ||
    costOf(row.name, "a multicast, until all have delivered", "message times"),
  verdictOf(row, fifoOrder, settings.fifo),
  verdictOf(row, happenedBeforeOrder, settings.causal),
  verdictOf(row, totalOrder, settings.total),
  verdictOf(row, agreement, { asks: asking(1) }),
  verdictOf(row, agreement, struck),
];

const table = (lines: readonly (readonly string[])[]): string =>
  lines.map((each) => `| ${each.join(" | ")} |\n`).join("");

const head = [
  "algorithm",
  "messages",
  "until all have delivered, message times",
  "C4 FIFO",
  "C5 happened-before",
  "C6 total",
  "agreement",
  "agreement, one crash",
];

export const multicastSection = (): string => `## Multicast

The costs are for one message to all ${NODES} members, and the time until the last member has delivered it. Orders are checked on links without an order. For C4
one node sends two messages, for C5 another node sends one more, and for C6 two nodes send one each.

Agreement: if one correct node delivers a message, all correct nodes do. The last column adds one crash at any point, also between two sends of one step
(\`--within-step\`).

${table([head, head.map(() => "---"), ...rows.map(cells)])}
Here \`fifo\`, \`causal\` and \`isis\` run on [\`basic-multicast\`](protocols/basic-multicast.md), so a sender that crashes while it sends breaks agreement in all of
them. \`ip-multicast\` is explored with at most three messages in flight. If all members send, its acknowledgements need no messages of their own. To keep the
orders when members crash and the group changes, use a lower layer with views: [\`view-synchrony\`](protocols/view-synchrony.md).
`;

/**
 * Drops every assumption of every protocol of the registry in turn, and shows the checker's verdict on the properties
 * within bounds and the shortest run that violates one. The command of each cell drops the assumption by its options,
 * so each cell can be run separately.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { explore as everyRun } from "../../src/check/explore.ts";
import { isReached } from "../../src/check/reach.ts";
import { walk } from "../../src/check/search/walks.ts";
import { shrink } from "../../src/check/shrink/shrink.ts";
import { systemFor } from "../../src/check/suite.ts";
import { slotsOf } from "../../src/core/journal-slots.ts";
import type { Property, Vocabulary } from "../../src/core/protocol.ts";
import { type CheckRequest, requestFrom } from "../../src/experiment/check-request.ts";
import type { Experiment } from "../../src/experiment/experiment.ts";
import { parseScenario, runScenario } from "../../src/experiment/scenario/index.ts";
import { simulate } from "../../src/experiment/simulate.ts";
import { flagOf } from "../../src/experiment/written-values.ts";
import { type AnyProtocol, protocolNamed } from "../../src/protocols/index.ts";

/**
 * The bounds of a search. It first explores every run within this number of states, then random runs, and then seeds in
 * virtual time.
 */
interface Effort {
  readonly states: number;
  readonly runs: number;
  /**
   * The number of seeds for runs with a Byzantine node. Random runs in virtual time show more of its behaviors than all
   * short runs.
   */
  readonly seeds: number;
}

const WHOLE: Effort = { states: 6_000, runs: 40, seeds: 40 };
/** A tenth of the effort, to check the cells that the full search left empty. */
const TENTH: Effort = { states: 600, runs: 4, seeds: 4 };

const STEPS = 100;
const LIAR_RUN_MS = 1_000;

type Words = Partial<Experiment>;

/** `✓₂` means that the property holds with two nodes, and is not known for the usual number. */
export type Symbol = "✓" | "✓₂" | "✗" | "◌" | "?" | "–";
export interface Cell {
  readonly symbol: Symbol;
  /** The violated property, the extent of the search, or the reason for a missing result. */
  readonly words: string;
  /** The command that shows the result, or null if nothing is run. */
  readonly command: string | null;
}

export interface Column {
  readonly name: string;
  readonly title: string;
  /** Returns the options that drop the assumption from the undisturbed run, or a sentence if it cannot be dropped. */
  drop(protocol: string): Words | string;
  /** Whether the protocol declares that it does not need the assumption. */
  isTolerated(assumes: readonly string[]): boolean;
}

const has = (assumes: readonly string[], pattern: RegExp): boolean => assumes.some((each) => pattern.test(each));
/** Leaves out assumptions that only liveness needs. */
const forSafety = (assumes: readonly string[]): readonly string[] =>
  assumes.filter((each) => !/^for (liveness|ME2)/.test(each) && !/, for ME2$/.test(each));
const assumesLinks = (assumes: readonly string[]): boolean =>
  has(forSafety(assumes), /reliable|delivered to its next run/);
const assumesCrashes = (assumes: readonly string[]): boolean =>
  has(assumes, /no crashes|does not crash|a holder and its (?:heir|successor)/);
const assumesTime = (assumes: readonly string[]): boolean =>
  has(forSafety(assumes), /bounded delay|synchronous|partial synchrony|moveRounds|within half of its deadline/);

/** Returns the number of nodes. With fewer than four, none may be Byzantine. */
const nodesOf = (protocol: string): number => (has(assumptionsOf(protocol), /3[mf] \+ 1/) ? 4 : 3);
const tells = (protocol: string): Words =>
  protocolNamed(protocol).check.crashNotification === undefined ? {} : { failureDetector: "last" };

const columns: readonly Column[] = [
  { name: "nothing", title: "nothing", drop: () => ({}), isTolerated: () => true },
  {
    name: "loss",
    title: "loss",
    drop: () => ({ losses: 1 }),
    isTolerated: (assumes) => !assumesLinks(assumes),
  },
  {
    name: "reordering",
    title: "reordering",
    drop: () => ({ network: "bag" }),
    isTolerated: (assumes) => !has(assumes, /FIFO/) && !assumesTime(assumes),
  },
  {
    name: "duplication",
    title: "duplication",
    drop: () => ({ duplications: 1 }),
    isTolerated: (assumes) => !assumesLinks(assumes),
  },
  {
    name: "delay",
    title: "unbounded delay",
    drop: () => ({ timers: "free" }),
    isTolerated: (assumes) => !assumesTime(assumes),
  },
  {
    name: "crash",
    title: "crash",
    drop: (protocol) => ({ crashes: 1, ...tells(protocol) }),
    isTolerated: (assumes) => !assumesCrashes(assumes) && !assumesTime(assumes),
  },
  {
    name: "recovery",
    title: "crash and recovery",
    drop: (protocol) => ({ crashes: 1, recoveries: 1, ...tells(protocol) }),
    isTolerated: (assumes) =>
      has(assumes, /crash-recovery|journals are kept/) && !assumesTime(assumes) && !assumesCrashes(assumes),
  },
  {
    name: "journal",
    title: "lost journal",
    drop: (protocol) =>
      slotsOf(modelOf(protocol)).length === 0
        ? "the protocol keeps no journal"
        : { crashes: 1, recoveries: 1, journal: "lost", ...tells(protocol) },
    isTolerated: (assumes) => !has(assumes, /journal/),
  },
  {
    name: "liar",
    title: "Byzantine node",
    drop: (protocol) => ({ byzantine: { [nodesOf(protocol) - 1]: "adversary" } }),
    isTolerated: (assumes) => has(assumes, /traitors|Byzantine|liars|faulty|\blies?\b/),
  },
  {
    name: "clocks",
    title: "clock outside its drift",
    drop: () => ({ timers: "free" }),
    isTolerated: (assumes) => !has(assumes, /\bclocks?\b/) && !assumesTime(assumes),
  },
];

function modelOf(protocol: string): AnyProtocol {
  const { check, variants, model } = protocolNamed(protocol);
  return (check.variant === undefined ? model : (variants[check.variant]?.model ?? model))(undefined);
}

const assumptionsOf = (protocol: string): readonly string[] => modelOf(protocol).assumes;

/**
 * Protocols whose leases depend on clocks. The checker lets timers expire at any time, so it checks only properties
 * that hold with any clocks.
 */
const withoutClocks: Readonly<Record<string, string>> = {
  "elected-server": "tokens are unique",
  "epoch-token-ring": "one token an epoch",
};

/** Protocols whose nodes all have an initial value. If links preserve order, every run ends within the bounds. */
const narrowed: Readonly<Record<string, Words>> = {
  "interactive-consistency": { propose: 0, begin: "together", network: "inbox" },
};

/**
 * Returns options that satisfy all assumptions: delays are bounded if the protocol needs that, and every node that
 * can receive a command receives one.
 */
function undisturbed(protocol: string): Words {
  const { check } = protocolNamed(protocol);
  const isTimed = assumesTime(assumptionsOf(protocol));
  return {
    nodes: nodesOf(protocol),
    ...(check.timers === undefined && isTimed ? { timers: "quiet" } : {}),
    ...narrowed[protocol],
    ...(withoutClocks[protocol] === undefined ? {} : { property: withoutClocks[protocol] }),
  };
}

/** Whether a property is a liveness property. */
const isLiveness = ({ name, when }: Pick<Property<Vocabulary>, "name" | "when">): boolean =>
  when === "leadsTo" || when === "sometimes" || when === "eventually" || /liveness|termination/.test(name);

/** Returns the command as typed. */
function commandOf(experiment: Experiment, verb: "check" | "sim" = "check"): string {
  const { protocol, ...words } = experiment;
  const written = Object.entries(words).flatMap(([word, value]) => {
    if (value === undefined) return [];
    if (value === true) return [flagOf(word)];
    if (word === "byzantine")
      return [
        flagOf(word),
        Object.entries(value as object)
          .map(([node, how]) => `${node}=${how}`)
          .join(","),
      ];
    const text = Array.isArray(value) ? value.join("..") : `${value as string | number}`;
    return [flagOf(word), /[^\w.-]/.test(text) ? `"${text}"` : text];
  });
  return ["coterie", verb, protocol, ...written].join(" ");
}

const number = new Intl.NumberFormat("en-US");

type Found = {
  readonly verdict: "holds" | "violated" | "unknown";
  readonly property: Property<Vocabulary> | null;
  readonly steps: number;
  readonly states: number;
  /** The length of the longest explored runs, in moves. */
  readonly depth: number;
  readonly isReached: boolean;
};

function search(experiment: Experiment, only: (property: Property<Vocabulary>) => boolean): Found {
  const request: CheckRequest = requestFrom(experiment);
  const whole = systemFor(request.spec);
  const properties = (whole.properties ?? whole.protocol.properties).filter(only);
  const system = { ...whole, properties };
  const found =
    request.strategy === "bfs"
      ? everyRun(system)
      : walk({
          ...system,
          strategy: request.strategy as "swarm",
          seed: request.seed,
          runs: request.runs,
          stepsPerRun: request.steps,
        });
  const { done } = protocolNamed(experiment.protocol).family;
  const small =
    request.strategy !== "bfs" && found.property !== null && found.loop === null
      ? shrink({ ...system, mayGoOn: () => true }, found.path, found.property)
      : null;
  return {
    verdict: found.verdict,
    property: found.property,
    steps: (small ?? found).path.length,
    states: found.states,
    depth: "depth" in found ? found.depth : 0,
    isReached: done !== null && isReached(found.reach, done.event),
  };
}

function cell(protocol: string, column: Column, effort: Effort = WHOLE): Cell {
  const dropped = column.drop(protocol);
  if (typeof dropped === "string") return { symbol: "–", words: dropped, command: null };
  if (column.name === "clocks") return slowClock(protocol) ?? explored(protocol, dropped, effort);
  return column.name === "liar" ? besideLiar(protocol, dropped, effort) : explored(protocol, dropped, effort);
}

function explored(protocol: string, dropped: Words, effort: Effort): Cell {
  const { states, runs } = effort;
  const experiment: Experiment = { protocol, ...undisturbed(protocol), ...dropped };
  const inOrder: Experiment = { ...experiment, maxStates: states };
  const all = search(inOrder, () => true);
  if (all.verdict === "holds")
    return { symbol: "✓", words: `holds in all ${number.format(all.states)} states`, command: commandOf(inOrder) };
  const unsafe =
    all.property !== null && !isLiveness(all.property) ? all : search(inOrder, (property) => !isLiveness(property));
  if (unsafe.verdict === "violated") return broken("✗", inOrder, unsafe);
  const atRandom: Experiment = { ...experiment, strategy: "swarm", runs, steps: STEPS, seed: 1, workers: 1 };
  const drawn = unsafe.verdict === "holds" ? null : search(atRandom, (property) => !isLiveness(property));
  if (drawn?.verdict === "violated") return broken("✗", atRandom, drawn);
  if (all.verdict === "violated") return broken("◌", inOrder, all);
  return (effort === WHOLE ? ofTwo(inOrder) : null) ?? notFound(inOrder, all, drawn);
}

/** Returns the result of an unfinished search without a violation. */
function notFound(inOrder: Experiment, all: Found, drawn: Found | null): Cell {
  const isCutOff = all.states >= WHOLE.states;
  const searched = `${isCutOff ? "" : "all "}${number.format(all.states)} states ${isCutOff ? "" : "within the bounds of `coterie check` "}(runs of up to ${all.depth} moves)`;
  const further = drawn === null ? "" : `, nor in ${WHOLE.runs} random runs`;
  const isIdle = !all.isReached && drawn?.isReached !== true;
  const words = `none found in ${searched}${further}${isIdle ? "; no run reaches the goal of the protocol" : ""}`;
  return { symbol: "?", words, command: commandOf(inOrder) };
}

/**
 * Returns the result for two nodes, for which all runs may be explored. Null if faulty nodes need more than two nodes,
 * since that would be a different question.
 */
function ofTwo(inOrder: Experiment): Cell | null {
  if (inOrder.nodes !== 3) return null;
  const experiment: Experiment = { ...inOrder, nodes: 2 };
  const all = search(experiment, () => true);
  if (all.verdict === "holds" && all.isReached)
    return {
      symbol: "✓₂",
      words: `holds in all ${number.format(all.states)} states of two nodes`,
      command: commandOf(experiment),
    };
  if (all.verdict !== "violated" || all.property === null) return null;
  return broken(isLiveness(all.property) ? "◌" : "✗", experiment, all);
}

/** Options that only runs with Byzantine nodes need. */
const besideLiars: Readonly<Record<string, Words>> = { lockstep: { variant: "echo" } };

/** Runs seeds in virtual time with a Byzantine node. */
function besideLiar(protocol: string, dropped: Words, { seeds }: Effort): Cell {
  const { byzantine = {} } = dropped;
  const lively = protocolNamed(protocol)
    .model()
    .properties.filter(isLiveness)
    .map(({ name }) => name);
  let stuck: Cell | null = null;
  for (let seed = 1; seed <= seeds; seed++) {
    const experiment: Experiment = {
      protocol,
      ...besideLiars[protocol],
      nodes: nodesOf(protocol),
      byzantine,
      delay: [1, 10],
      until: LIAR_RUN_MS,
      seed,
    };
    const violated = simulate(experiment).properties.filter(({ verdict }) => verdict === "violated");
    const found = (symbol: "✗" | "◌", name: string): Cell => ({
      symbol,
      words: name,
      command: commandOf(experiment, "sim"),
    });
    const unsafe = violated.find(({ name }) => !lively.includes(name));
    if (unsafe !== undefined) return found("✗", unsafe.name);
    if (violated[0] !== undefined) stuck ??= found("◌", violated[0].name);
  }
  return (
    stuck ?? {
      symbol: "?",
      words: `none found in ${WHOLE.seeds} runs, with seeds from 1`,
      command: commandOf(
        {
          protocol,
          ...besideLiars[protocol],
          nodes: nodesOf(protocol),
          byzantine,
          delay: [1, 10],
          until: LIAR_RUN_MS,
          seed: 1,
        },
        "sim",
      ),
    }
  );
}

/**
 * Returns the result with a slow clock. A protocol that depends on clocks has a scenario for it. For the others, the
 * checker lets any timer expire at any time.
 */
function slowClock(protocol: string): Cell | null {
  if (!has(forSafety(assumptionsOf(protocol)), /\bclocks?\b/)) return null;
  const path = `scenarios/${protocol}-slow-clock.yaml`;
  const file = fileURLToPath(new URL(`../../${path}`, import.meta.url));
  if (!existsSync(file)) return null;
  const { scenario } = parseScenario(readFileSync(file, "utf8"), path);
  const violated = runScenario(scenario).properties.find(({ verdict }) => verdict === "violated");
  const command = `coterie sim ${path}`;
  return violated === undefined
    ? { symbol: "?", words: "none found in one run", command }
    : { symbol: "✗", words: violated.name, command };
}

function broken(symbol: "✗" | "◌", experiment: Experiment, { property, steps }: Found): Cell {
  const { name } = property as Property<Vocabulary>;
  const words = `${name}: ${steps} steps`;
  return { symbol, words, command: commandOf({ ...experiment, property: name }) };
}

export type Row = Readonly<Record<string, Cell>>;

export const rowOf = (protocol: string): Row =>
  Object.fromEntries(columns.map((column) => [column.name, cell(protocol, column)]));

const HOLDS: readonly Symbol[] = ["✓", "✓₂", "?"];

/**
 * Computes the row. Cells without a violation on the page are searched only a tenth as far, and are unchanged if that
 * search finds none either.
 */
export function rowLike(protocol: string, page: string): Row {
  const cells = columns.map((column): [string, Cell] => {
    const listed = listedCell(protocol, column, page);
    if (listed === null || !HOLDS.includes(listed.symbol)) return [column.name, cell(protocol, column)];
    const found = cell(protocol, column, TENTH);
    return [column.name, HOLDS.includes(found.symbol) ? listed : found];
  });
  return Object.fromEntries(cells);
}

/** Returns the cell on the page of the protocol's family. */
function listedCell(protocol: string, { name, title }: Column, page: string): Cell | null {
  const start = `<a id="${protocol}-${name}"></a>`;
  const text = page.split("\n").find((each) => each.includes(start)) ?? "";
  const [, symbol, words, command] = /<\/a>(\S+) \*\*.*?\*\*: (.*?)(?:\. `(coterie .*)`)?$/.exec(text) ?? [];
  if (symbol === undefined || words === undefined || !text.includes(`**${title}**`)) return null;
  return { symbol: symbol as Symbol, words, command: command ?? null };
}

/**
 * Returns cells that are unsafe although the protocol declares that it does not need the assumption. This is a mistake
 * in the algorithm or in its declaration.
 */
export const brokenThoughTolerated = (protocol: string, row: Row): string[] =>
  columns.flatMap(({ name, isTolerated }) => {
    const { symbol, words, command } = row[name] as Cell;
    const isSaidToHold = isTolerated(assumptionsOf(protocol));
    return isSaidToHold && symbol === "✗" ? [`${protocol}, ${name}: ${words}. ${command}`] : [];
  });

/**
 * Returns the index, which has a cell for each protocol and assumption, and a page for each family with the command of
 * each cell.
 */
export function pagesOf(rows: ReadonlyMap<string, Row>): ReadonlyMap<string, string> {
  const byFamily = new Map<string, (readonly [string, Row])[]>();
  for (const row of rows) {
    const folder = folderOf(row[0]);
    byFamily.set(folder, [...(byFamily.get(folder) ?? []), row]);
  }
  return new Map([
    ["docs/verify/assumptions.md", indexOf(rows)],
    ...[...byFamily].map(([folder, own]) => [`docs/internals/assumptions/${folder}.md`, familyPage(own)] as const),
  ]);
}

const familyOf = (protocol: string): string => protocolNamed(protocol).family.name;
const folderOf = (protocol: string): string => familyOf(protocol).replace("mutual exclusion", "mutex");
/** Returns the link from the index to the details of a protocol's cells. */
const pageOf = (protocol: string): string => `../internals/assumptions/${folderOf(protocol)}.md`;

function indexOf(rows: ReadonlyMap<string, Row>): string {
  const heads = ["Protocol", ...columns.map(({ title }) => title)];
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const table = [
    line(heads),
    line(heads.map((_head, at) => (at === 0 ? "---" : ":-:"))),
    ...[...rows].map(([protocol, row]) =>
      line([
        `[\`${protocol}\`](${pageOf(protocol)}#${protocol})`,
        ...columns.map(({ name }) => `[${row[name]?.symbol}](${pageOf(protocol)}#${protocol}-${name})`),
      ]),
    ),
  ];
  return `${INTRODUCTION}\n${table.join("\n")}\n\n${LEGEND}`;
}

function familyPage(rows: readonly (readonly [string, Row])[]): string {
  const family = familyOf(rows[0]?.[0] ?? "");
  return `# Assumptions and what breaks without them: ${family}

[The table of all protocols](../../verify/assumptions.md) explains the marks and the bounds of the searches.

${rows.map(sectionOf).join("\n")}`;
}

function sectionOf([protocol, row]: readonly [string, Row]): string {
  const assumes = assumptionsOf(protocol);
  const items = columns.map(({ name, title }) => {
    const { symbol, words, command } = row[name] as Cell;
    const run = command === null ? "" : `. \`${command}\``;
    return `- <a id="${protocol}-${name}"></a>${symbol} **${title}**: ${words}${run}`;
  });
  return [
    `## ${protocol}`,
    "",
    `[The protocol](../../learn/protocols/${protocol}.md). It assumes: ${assumes.length === 0 ? "nothing" : assumes.join("; ")}.`,
    "",
    ...items,
    "",
  ].join("\n");
}

const INTRODUCTION = `# Assumptions and what breaks without them

This page shows what happens to each protocol's properties if one assumption is dropped. Each mark links to the result and to the command that reproduces it.

| Mark | Meaning |
| :-: | --- |
| ✓ | holds: every run with this fault was explored |
| ✓₂ | holds with two nodes; with three, no violation was found within the bounds |
| ✗ | a safety property is violated |
| ◌ | no safety violation was found, but something that should eventually happen never does |
| ? | no violation was found within the bounds, which is not a proof |
| – | does not apply |

It is not a mistake if a protocol breaks without something that it assumes. Only the marks for faults that it claims to tolerate matter, and a test checks that none of those is ✗.
`;

const LEGEND = `## How the table is made

\`npm run pages -- assumptions\` writes the table, and a test compares it with new runs.

**Bounds.** Each cell uses three nodes (four if the protocol assumes N ≥ 3f + 1), one fault of the given kind, and the default workload of \`coterie check\`. The search first covers every run in up to ${number.format(WHOLE.states)} states, shortest first, so the first violation found is as short as possible. It then covers ${WHOLE.runs} random runs of at most ${STEPS} moves, whose violations are shrunk, and finally every run of two nodes.

For a ?, the linked line gives the number of states or runs that were searched. Logs, services and failure detectors have timers that never end, so their searches never finish. Each protocol's page has longer searches with more nodes. Interactive consistency with four nodes handles messages in the order they were sent (\`--network inbox\`). Each message carries one value of one path, so the order does not matter.

**Crashes.** Protocols that handle crash notifications are notified as late as possible.

**Delays.** For protocols that assume bounded delay, timers expire only when no message is in flight. "Unbounded delay" removes this limit.

**Byzantine node.** The node with the highest id behaves as \`adversary\`, in up to ${WHOLE.seeds} seeded runs of one second of virtual time. The first violation is shown. Here, \`lockstep\` runs with echoes, as it assumes if nodes may be Byzantine.

**Clocks.** Protocols that depend on leases (${Object.keys(withoutClocks)
  .map((protocol) => `\`${protocol}\``)
  .join(
    ", ",
  )} and \`epoch-bully\`) have a scenario with a lock holder whose clock is too slow. For all others, the checker lets every timer expire at any time, which is the effect of unbounded clocks. In the other columns, ${Object.entries(
  withoutClocks,
)
  .map(([protocol, claim]) => `\`${protocol}\` is checked only for “${claim}”`)
  .join(", and ")}.
`;

/** The simulated run of an experiment, spelled out as a scenario. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { type Family, hasToStart, protocolNamed, variantNamed } from "../protocols/index.ts";
import type { Delay } from "../sim/delay.ts";
import {
  type Experiment,
  idsOf,
  liarsOf,
  optionsOf,
  requireFamilyOptions,
  requireKnown,
  timesOf,
} from "./experiment.ts";
import type { Point, RecordedPoint } from "./recording.ts";
import { cast } from "./scenario/run.ts";
import { type Scenario, type ScenarioSource, scenarioSchema } from "./scenario/schema.ts";

/** All but the protocol, where that is known. */
type Words = Omit<Experiment, "protocol">;

const DEFAULT_NODES = 5;
/** What has periodic timers never comes to rest: a run that begins with starting nodes ends here. */
const DEFAULT_UNTIL_MS = 10_000;
/** What waits for nodes that are down may send again for ever: a run that could come to rest ends here if it has not. */
const RESTS_WITHIN_MS = 600_000;
/** Of a large ring or of slow links more is waited for: so many delays for each node and each time it is used. */
const DELAYS_PER_USE = 10;
const DEFAULT_DELAY_MS = 10;

/** @throws UsageError that names the word. */
export function scenarioOf(words: Experiment): Scenario {
  const { protocol } = words;
  const entry = protocolNamed(protocol);
  if (words.variant !== undefined) variantNamed(protocol, words.variant);
  requireFamilyOptions(words);
  const ids = idsOf(words, entry, DEFAULT_NODES);
  const down = [...new Set(words.crash)];
  for (const node of down) requireKnown("--crash", ids, node);
  if (down.length >= ids.length)
    throw new UsageError("bad-argument", unexpected("--crash", "some of the nodes, not all", down.join(",")));
  const isStarted = words.started === true || hasToStart(protocol, words.variant);
  const source: ScenarioSource = {
    name: protocol,
    protocol,
    ...(words.variant === undefined ? {} : { variant: words.variant }),
    options: optionsOf(words),
    byzantine: { ...liarsOf(words) },
    nodes: words.ring === undefined ? ids.length : [...words.ring],
    seed: words.seed ?? 1,
    network: networkOf(words),
    begin: { nodes: isStarted ? "started" : "idle", down },
    steps: workload(entry.family, words, ids, words.started === true),
    until:
      words.until ??
      (isStarted ? DEFAULT_UNTIL_MS : restsWithin(words, ids.length * (timesOf(entry.family, words) ?? 1))),
  };
  const scenario = scenarioSchema.parse(source);
  cast(scenario); // Which refuses options that the protocol does not know.
  return scenario;
}

/**
 * The scenario of a recording that continues from some point: the nodes of `crash` crash there, and initiators begin there.
 * @throws UsageError that names the word
 */
export function continuationOf(
  { header, snapshot }: Pick<RecordedPoint, "header" | "snapshot">,
  words: Words,
): Scenario {
  const { family } = protocolNamed(header.protocol);
  requireFamilyOptions({ ...words, protocol: header.protocol });
  const ids = header.nodes;
  const alive = new Set(snapshot.nodes.filter(({ state }) => state !== null).map(({ id }) => id));
  for (const node of words.crash ?? []) {
    requireKnown("--crash", ids, node);
    if (!alive.has(node))
      throw new UsageError("bad-argument", unexpected("--crash", "nodes that are alive there", node));
  }
  return scenarioSchema.parse({
    name: header.protocol,
    protocol: header.protocol,
    ...(header.variant === null ? {} : { variant: header.variant }),
    nodes: [...ids],
    seed: words.seed ?? 1,
    network: networkOf(words),
    steps: [
      ...(words.crash === undefined ? [] : [{ crash: [...new Set(words.crash)] }]),
      ...(workload(family, words, ids, true) ?? []),
    ],
    until: snapshot.at + (words.for ?? DEFAULT_UNTIL_MS),
  } satisfies ScenarioSource);
}

/** Where a run ends that begins at time 0. @throws UsageError for a number of entries, which a recording has */
export function endOf(until: Point | undefined): { until?: number } {
  if (until === undefined) return {};
  if ("ms" in until && until.ms > 0) return { until: until.ms };
  if ("ms" in until) throw new UsageError("bad-argument", unexpected("--until", "milliseconds above 0", until.ms));
  const expected = "milliseconds: a number of entries goes with --from";
  throw new UsageError("bad-argument", unexpected("--until", expected, `#${until.entries}`));
}

function restsWithin({ delay = DEFAULT_DELAY_MS, processing = 0 }: Words, uses: number): number {
  return Math.max(RESTS_WITHIN_MS, uses * DELAYS_PER_USE * (usualMs(delay) + usualMs(processing)));
}

function usualMs(delay: Delay): number {
  if (typeof delay === "number") return delay;
  if ("normal" in delay) return delay.normal.meanMs + delay.normal.deviationMs;
  return "logNormal" in delay ? delay.logNormal.medianMs : delay[1];
}

function networkOf({ delay, loss, duplicate, reorder, processing }: Words): NonNullable<ScenarioSource["network"]> {
  return {
    ...(delay === undefined ? {} : { delayMs: asWritten(delay) }),
    ...(loss === undefined ? {} : { lossRate: loss }),
    ...(duplicate === undefined ? {} : { duplicateRate: duplicate }),
    ...(reorder === undefined ? {} : { order: "none" }),
    ...(processing === undefined ? {} : { processingMs: asWritten(processing) }),
  };
}

type WrittenDelay = NonNullable<NonNullable<ScenarioSource["network"]>["delayMs"]>;
const asWritten = (delay: Delay): WrittenDelay => delay as WrittenDelay;

function workload(family: Family, words: Words, ids: readonly NodeId[], isBusy: boolean): ScenarioSource["steps"] {
  const { verb } = family;
  if (verb === null) return [];
  const down = new Set(words.crash);
  const given = words[verb];
  const times = timesOf(family, words);
  if (given === undefined && times === undefined && isBusy) return []; // They have something to do as it is.
  requireUp(`--${verb}`, given, ids, down);
  requireUp("--vote-no", words.voteNo, ids, down);
  const lowest = ids.reduce((low, id) => (down.has(id) || id > low ? low : id), Number.POSITIVE_INFINITY);
  const nodes = given ?? (family.initiators === "all" ? "all" : lowest);
  return [
    ...(words.voteNo === undefined ? [] : [{ voteNo: words.voteNo }]),
    { [verb]: nodes, ...(times === undefined ? {} : { times }) },
  ];
}

function requireUp(word: string, nodes: Words["voteNo"], ids: readonly NodeId[], down: ReadonlySet<NodeId>): void {
  for (const node of typeof nodes === "object" ? nodes : []) {
    requireKnown(word, ids, node);
    if (down.has(node))
      throw new UsageError("bad-argument", unexpected(word, "nodes that are not down by --crash", node));
  }
}

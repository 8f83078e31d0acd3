/** The words of `coterie sim`, and the scenario that they spell. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { type Nodes, type Scenario, type ScenarioSource, scenarioSchema } from "../experiment/scenario/schema.ts";
import { cast } from "../experiment/scenario/soundness.ts";
import { type Family, hasToStart, protocolNamed, type RegistryEntry, variantNamed } from "../protocols/index.ts";
import { type Delay, requireDelay } from "../sim/delay.ts";
import type { RecordedPoint } from "./recording.ts";

const DEFAULT_NODES = 5;
/** What has periodic timers never comes to rest: a run that begins with starting nodes ends here. */
const DEFAULT_UNTIL_MS = 10_000;

export interface SimWords {
  readonly nodes?: number;
  readonly ring?: readonly NodeId[];
  readonly crash?: readonly NodeId[];
  readonly started?: true;
  readonly call?: Nodes;
  readonly request?: Nodes;
  readonly send?: Nodes;
  readonly propose?: Nodes;
  readonly entries?: number;
  readonly messages?: number;
  readonly variant?: string;
  readonly options?: object;
  readonly delay?: Delay;
  readonly loss?: number;
  readonly duplicate?: number;
  readonly reorder?: true;
  readonly processing?: Delay;
  readonly seed?: number;
  readonly until?: number;
  readonly for?: number;
}

/** What is asked of nodes, and how often. */
export type FamilyWords = Pick<SimWords, "call" | "request" | "send" | "propose" | "entries" | "messages">;

const verbs = ["call", "request", "send", "propose"] as const;
const counts = ["entries", "messages"] as const;

/** @throws UsageError that names the word. */
export function scenarioOf(protocol: string, words: SimWords): Scenario {
  const entry = protocolNamed(protocol);
  if (words.variant !== undefined) variantNamed(protocol, words.variant);
  requireFamilyWords(protocol, entry.family, words);
  const ids = idsOf(protocol, entry, words);
  const down = words.crash ?? [];
  for (const node of down) requireKnown("--crash", ids, node);
  if (new Set(down).size >= ids.length)
    throw new UsageError("bad-argument", unexpected("--crash", "some of the nodes, not all", down.join(",")));
  const isStarted = words.started === true || hasToStart(protocol, words.variant);
  const source: ScenarioSource = {
    name: protocol,
    protocol,
    ...(words.variant === undefined ? {} : { variant: words.variant }),
    options: { ...words.options },
    nodes: words.ring === undefined ? ids.length : [...words.ring],
    seed: words.seed ?? 1,
    network: networkOf(words),
    begin: { nodes: isStarted ? "started" : "idle", down: [...down] },
    steps: asked(entry.family, words, ids, words.started === true),
    ...untilOf(words, isStarted),
  };
  const scenario = scenarioSchema.parse(source);
  cast(scenario); // Which refuses options that the protocol does not know.
  return scenario;
}

/**
 * The scenario of a recording that goes on from some point otherwise than it did: whom `--crash` names crashes there, and
 * whoever is asked is asked there.
 * @throws UsageError that names the word
 */
export function continuationOf(
  { header, snapshot }: Pick<RecordedPoint, "header" | "snapshot">,
  words: SimWords,
): Scenario {
  const { family } = protocolNamed(header.protocol);
  requireFamilyWords(header.protocol, family, words);
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
      ...(words.crash === undefined ? [] : [{ crash: [...words.crash] }]),
      ...(asked(family, words, ids, true) ?? []),
    ],
    until: snapshot.at + (words.for ?? DEFAULT_UNTIL_MS),
  } satisfies ScenarioSource);
}

function untilOf({ until }: SimWords, isStarted: boolean): { until?: number } {
  if (until !== undefined) return { until };
  return isStarted ? { until: DEFAULT_UNTIL_MS } : {};
}

/** What is asked, and how often, has a word in each family: that of another one is refused with the right one. */
export function requireFamilyWords(protocol: string, { name, verb, count }: Family, words: FamilyWords): void {
  const refuse = (word: string, right: string | null): never => {
    const instead = right === null ? "it has no such word" : `the word is --${right}`;
    throw new UsageError(
      "bad-argument",
      `expected --${word} to be absent: ${protocol} is a protocol for ${name}, where ${instead}`,
    );
  };
  for (const word of verbs) if (words[word] !== undefined && word !== verb) refuse(word, verb);
  for (const word of counts) if (words[word] !== undefined && word !== count) refuse(word, count);
}

export function idsOf(
  protocol: string,
  { onRing }: RegistryEntry,
  { nodes, ring }: Pick<SimWords, "nodes" | "ring">,
): readonly NodeId[] {
  if (ring === undefined) return Array.from({ length: nodes ?? DEFAULT_NODES }, (_, id) => id);
  if (onRing === null)
    throw new UsageError("bad-argument", `expected --ring to be absent: ${protocol} does not run on a ring`);
  if (nodes !== undefined && nodes !== ring.length)
    throw new UsageError("bad-argument", unexpected("--nodes", `${ring.length}, as in --ring, or absent`, nodes));
  if (new Set(ring).size < ring.length)
    throw new UsageError("bad-argument", unexpected("--ring", "every node once", ring.join(",")));
  return ring;
}

export function requireKnown(word: string, ids: readonly NodeId[], node: NodeId): void {
  if (ids.includes(node)) return;
  const known = ids.every((id, place) => id === place) ? `from 0 to ${ids.length - 1}` : `among ${ids.join(", ")}`;
  throw new UsageError("bad-argument", unexpected(word, `nodes ${known}`, node));
}

function networkOf({ delay, loss, duplicate, reorder, processing }: SimWords): NonNullable<ScenarioSource["network"]> {
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

function asked(family: Family, words: SimWords, ids: readonly NodeId[], isBusy: boolean): ScenarioSource["steps"] {
  const { verb, count } = family;
  if (verb === null) return [];
  const down = new Set(words.crash);
  const given = words[verb];
  const times = count === null ? undefined : words[count];
  if (given === undefined && times === undefined && isBusy) return []; // They have something to do as it is.
  for (const node of typeof given === "object" ? given : []) {
    requireKnown(`--${verb}`, ids, node);
    if (down.has(node))
      throw new UsageError("bad-argument", unexpected(`--${verb}`, "nodes that are not down by --crash", node));
  }
  const lowest = ids.reduce((low, id) => (down.has(id) || id > low ? low : id), Number.POSITIVE_INFINITY);
  const nodes = given ?? (family.initiators === "all" ? "all" : lowest);
  return [{ [verb]: nodes, ...(times === undefined ? {} : { times }) }];
}

/** `7` or `1,15,9`. */
export function nodeList(word: string) {
  return (text: string): NodeId[] => {
    const ids = text.split(",").map((part) => (/^\s*\d{1,15}\s*$/.test(part) ? Number(part) : null));
    const known = ids.filter((id) => id !== null);
    if (known.length === ids.length) return known;
    throw new UsageError("bad-argument", unexpected(word, "node ids such as 1,15,9", text));
  };
}

/** The same, or `all`. */
export function nodesOrAll(word: string) {
  return (text: string): Nodes => {
    if (text === "all") return "all";
    if (/^[\d,\s]+$/.test(text)) return nodeList(word)(text);
    throw new UsageError("bad-argument", unexpected(word, "node ids such as 1,2, or all", text));
  };
}

export function rate(word: string) {
  return (text: string): number => {
    const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= 0 && value <= 1) return value;
    throw new UsageError("bad-argument", unexpected(word, "a rate from 0 to 1", text));
  };
}

export function milliseconds(word: string) {
  return (text: string): number => {
    const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value > 0) return value;
    throw new UsageError("bad-argument", unexpected(word, "milliseconds above 0", text));
  };
}

/** `10`, `1..10`, `normal:10,2` (mean, deviation) or `lognormal:10,0.5` (median, sigma). */
export function delay(word: string) {
  return (text: string): Delay => {
    const [, normal, from, to] = /^(normal:|lognormal:|)(\d*\.?\d+)(?:(?:\.\.|,)(\d*\.?\d+))?$/.exec(text) ?? [];
    const [first, second] = [Number(from), to === undefined ? null : Number(to)];
    const made = delayFrom(normal, first, second, text.includes(".."));
    if (made === null)
      throw new UsageError(
        "bad-argument",
        unexpected(word, "such as 10, 1..10, normal:10,2 or lognormal:10,0.5, in milliseconds", text),
      );
    requireDelay(made, word);
    return made;
  };
}

function delayFrom(kind: string | undefined, first: number, second: number | null, isRange: boolean): Delay | null {
  if (kind === "" && second === null) return first;
  if (kind === "" && second !== null && isRange) return [first, second];
  if (second === null || isRange) return null;
  if (kind === "normal:") return { normal: { meanMs: first, deviationMs: second } };
  return kind === "lognormal:" ? { logNormal: { medianMs: first, sigma: second } } : null;
}

export function jsonObject(word: string) {
  return (text: string): object => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined;
    }
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
    throw new UsageError("bad-argument", unexpected(word, 'a JSON object such as {"maxDelayMs":10}', text));
  };
}

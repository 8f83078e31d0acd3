/** Runs a scenario: the same scenario gives the same run, to the byte. */
import { UsageError } from "../../core/errors.ts";
import type { NodeId, Tagged, Vocabulary } from "../../core/protocol.ts";
import type { ByzantineBehaviour } from "../../protocols/byzantine.ts";
import {
  type AnyProtocol,
  type Emitted,
  type Family,
  hasToStart,
  protocolNamed,
  variantNamed,
} from "../../protocols/index.ts";
import type { Draws } from "../../sim/draws.ts";
import { patience, type Simulation, simulation } from "../../sim/simulation.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { mergeInto } from "../../trace/replay-node.ts";
import type { Snapshot } from "../../trace/snapshot.ts";
import { addressed, isTimer, typeOf } from "./names.ts";
import { fieldName, type Path } from "./problem.ts";
import { type Judged, type Result, resultOf } from "./result.ts";
import { askWords, type Condition, type Nodes, type Scenario, type Step } from "./schema.ts";

export interface RunHooks {
  /** Receives every entry of the trace. */
  readonly trace?: (entry: TraceEntry) => void;
  /** Told of each step that is taken, and when. */
  readonly took?: (step: Step, atMs: number) => void;
  /** Where a field stands, for errors that come up only in the run. */
  readonly place?: (path: Path) => string;
  /** Where the run goes on from, instead of beginning anew, and what runs: all nodes are as they were at that moment. */
  readonly from?: { readonly protocol: AnyProtocol; readonly snapshot: Snapshot<Vocabulary> };
  /** Keeps what is drawn, and has what another run drew. */
  readonly draws?: Draws;
  /** Who plays, where it is known already: many runs of one scenario share its protocol. */
  readonly cast?: Cast;
  /** `at the end` is faster with many nodes, and says less. */
  readonly properties?: "every step" | "at the end";
}

/** What a scenario's protocol is, once its name, variant and options are known to be sound. */
export interface Cast {
  readonly protocol: AnyProtocol;
  readonly family: Family;
  /** As the scenario has them: the order of the ring. */
  readonly ids: readonly NodeId[];
  /** With the order of the ring, if there is one. */
  readonly options: object;
  /** How those begin who are up: as the scenario says, or as the protocol needs it. */
  readonly begin: "idle" | "started";
}

/** How far a run has come. */
export interface Progress {
  readonly timeMs: number;
  readonly messages: number;
}

/** After so many happenings a run can be looked at, and stopped. */
const SLICE = 20_000;

type AnySimulation = Simulation<Vocabulary>;
type Slices<T> = Generator<Progress, T>;

/** @throws UsageError for a deed that cannot be done, such as the crash of a node that is down. */
export function runScenario(scenario: Scenario, hooks: RunHooks = {}): Result {
  const slices = playScenario(scenario, hooks);
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return value;
  }
}

/** The same in slices: it stops now and then to say how far it has come, and goes on when asked to. */
export function* playScenario(scenario: Scenario, hooks: RunHooks = {}): Slices<Result> {
  const made = hooks.cast ?? cast(scenario, hooks.from?.protocol);
  const events: Emitted[] = [];
  const awaited = new Watch();
  const { properties = "every step" } = hooks;
  const isTraced = hooks.trace !== undefined || scenario.steps.some(({ when }) => when !== undefined);
  const sim = simulation<Vocabulary>({
    protocol: made.protocol,
    nodes: made.ids,
    seed: scenario.seed,
    ...networkOf(scenario),
    properties,
    ...byzantineOf(scenario),
    onEvent: (at, node, event: Tagged) => void events.push({ at, node, event }),
    ...(isTraced ? { trace: observe } : {}),
    ...(hooks.draws === undefined ? {} : { draws: hooks.draws }),
  });
  function observe(entry: TraceEntry<Vocabulary>): void {
    hooks.trace?.(entry);
    awaited.see(entry);
  }
  const run: Run = { sim, scenario, made, awaited, hooks, lastMs: 0 };
  waitFor(run, scenario.steps[0]);
  begin(run);
  const missed = yield* takeSteps(run);
  yield* advance(run, scenario.until ?? Number.POSITIVE_INFINITY);
  const { protocol, family } = made;
  const watched = properties === "every step";
  return resultOf({ sim, scenario, protocol, family, timeMs: run.lastMs, events, missed, watched });
}

/** What belongs to one run. */
interface Run {
  readonly sim: AnySimulation;
  readonly scenario: Scenario;
  readonly made: Cast;
  readonly awaited: Watch;
  readonly hooks: RunHooks;
  /** When the last thing happened. The simulator's clock goes on to when a cancelled timer would have fired. */
  lastMs: number;
}

const FEW_NODES = 1_000;

/**
 * @param given what runs instead of the model, which is then not made
 * @throws UsageError for an unknown protocol, variant or option
 */
export function cast({ protocol: name, variant, options, nodes, begin }: Scenario, given?: AnyProtocol): Cast {
  const entry = protocolNamed(name);
  const { model } = variant === undefined ? entry : variantNamed(name, variant);
  const ids = typeof nodes === "number" ? Array.from({ length: nodes }, (_, id) => id) : nodes;
  // Many nodes would each look for their neighbour among all: they are told, though it is the default.
  const isTold = typeof nodes !== "number" || nodes > FEW_NODES;
  const ring = isTold && entry.onRing !== null ? entry.onRing(ids) : {};
  const all = { ...ring, ...options };
  const begins = begin.nodes ?? (hasToStart(name, variant) ? "started" : "idle");
  return { protocol: given ?? model(all), family: entry.family, ids, options: all, begin: begins };
}

/** Goes on until nothing is left to happen, or that time, or until what is awaited has happened. */
function* advance(run: Run, untilMs: number, isDone: () => boolean = () => false): Slices<void> {
  const { sim, made } = run;
  const happened = patience(made.ids.length, untilMs);
  for (let done = 1; !isDone() && sim.step(untilMs); done++) {
    run.lastMs = sim.now;
    if (done % SLICE === 0) yield { timeMs: sim.now, messages: sim.messages.total };
    happened();
  }
}

function byzantineOf({ byzantine }: Scenario): { byzantine?: ReadonlyMap<NodeId, ByzantineBehaviour> } {
  const liars = Object.entries(byzantine).map(([id, behaviour]) => [Number(id), behaviour] as const);
  return liars.length === 0 ? {} : { byzantine: new Map(liars) };
}

function networkOf({ network }: Scenario) {
  const { delayMs = 10, links = [], processingMs, syncMs, ...rest } = network;
  return {
    delayMs,
    link: rest,
    links: links.map(({ delayMs: delay, ...link }) => ({ ...link, ...(delay === undefined ? {} : { delay }) })),
    ...(processingMs === undefined ? {} : { processingMs }),
    ...(syncMs === undefined ? {} : { syncMs }),
  };
}

function begin(run: Run): void {
  const { sim, hooks, made } = run;
  const { down, states } = run.scenario.begin;
  if (hooks.from !== undefined) {
    run.lastMs = hooks.from.snapshot.at;
    return sim.adopt(hooks.from.snapshot);
  }
  const isDown = new Set(down);
  for (const id of made.ids.toSorted((a, b) => a - b)) {
    if (isDown.has(id)) continue;
    if (made.begin === "started") sim.start(id);
    else sim.wake(id);
  }
  for (const [id, differing] of Object.entries(states)) mergeInto(sim.world.state(Number(id)), differing);
}

/** Returns the first step that was not taken, as what it waited for never happened or came too late. */
function* takeSteps(run: Run): Slices<Judged[]> {
  const { sim, awaited, scenario } = run;
  const { steps, until = Number.POSITIVE_INFINITY } = scenario;
  for (const [i, step] of steps.entries()) {
    const { at, when, after = 0 } = step;
    if (when !== undefined) {
      yield* advance(run, until, () => awaited.hasHappened);
      if (!awaited.hasHappened)
        return [{ what: `steps[${i}].when`, expected: conditionText(when), actual: awaited.inVain, passed: false }];
    }
    const now = run.lastMs;
    const due = at ?? now + after;
    if (due < now)
      return [{ what: `steps[${i}].at`, expected: due, actual: `the step before was taken at ${now}`, passed: false }];
    if (due > now) {
      yield* advance(run, due);
      sim.run(due);
      run.lastMs = due;
    }
    waitFor(run, steps[i + 1]); // What this deed brings about at once counts already.
    run.hooks.took?.(step, run.lastMs);
    if (step.withinStep !== true) blaming(["steps", i], run.hooks, () => take(sim, step, run.made));
  }
  return [];
}

/** A crash within a step strikes at the very moment that is awaited. */
function waitFor({ sim, awaited, made }: Run, step: Step | undefined): void {
  awaited.lookFor(step?.when, step?.withinStep === true ? () => take(sim, step, made) : undefined);
}

/** An error of the simulator is one of the scenario, and says of which step. */
function blaming(path: Path, { place }: RunHooks, deed: () => void): void {
  try {
    deed();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const where = place === undefined ? "" : `${place(path)}: `;
    throw new UsageError(error.code, `${where}${fieldName(path)}: ${error.message}`);
  }
}

function take(sim: AnySimulation, step: Step, { protocol, family, ids }: Cast): void {
  const { alive } = sim.world;
  const each = (nodes: Nodes | undefined, among: readonly NodeId[], deed: (node: NodeId) => void): void => {
    if (nodes !== undefined) for (const node of listed(nodes, among)) deed(node);
  };
  const give = (node: NodeId, command: Tagged | null): void => {
    if (command !== null) sim.command(node, addressed(protocol, command) as never);
  };
  for (const word of askWords)
    each(step[word], alive, (node) =>
      give(node, word === "voteNo" ? (family.refuse?.() ?? null) : family.ask(node, step.times ?? 1)),
    );
  const { command, clock, partition, cut, mend, link } = step;
  each(command?.node, alive, (node) => give(node, command?.command ?? null));
  each(step.crash, alive, (node) => sim.crash(node, { journal: step.journal ?? "kept" }));
  const isAlive = new Set(alive);
  each(
    step.start,
    ids.filter((id) => !isAlive.has(id)),
    (node) => sim.start(node),
  );
  each(step.pause, alive, (node) => sim.pause(node));
  each(step.resume, alive, (node) => sim.resume(node));
  each(clock?.node, ids, (node) => sim.clockRate(node, clock?.rate ?? 1));
  if (cut !== undefined) eachLink(cut, ids, (from, to) => sim.cut(from, to));
  if (mend !== undefined) eachLink(mend, ids, (from, to) => sim.mend(from, to));
  if (link !== undefined) {
    const { from: _from, to: _to, delayMs, ...model } = link;
    const conditions = delayMs === undefined ? model : { ...model, delay: delayMs };
    eachLink(link, ids, (from, to) => sim.setLink(from, to, conditions));
  }
  if (partition !== undefined) split(sim, partition);
  if (step.heal !== undefined) sim.heal();
}

function split(sim: AnySimulation, partition: NonNullable<Step["partition"]>): void {
  if ("oneWay" in partition) sim.partitionShape({ shape: "one-way", ...partition.oneWay });
  else if ("bridge" in partition) sim.partitionShape({ shape: "bridge", bridge: partition.bridge });
  else if ("majorityRing" in partition) sim.partitionShape({ shape: "majority-ring" });
  else sim.partition(partition);
}

function listed(nodes: Nodes, among: readonly NodeId[]): readonly NodeId[] {
  if (nodes === "all") return among;
  return typeof nodes === "number" ? [nodes] : nodes;
}

function eachLink(
  { from, to }: { readonly from: Nodes; readonly to: Nodes },
  ids: readonly NodeId[],
  deed: (from: NodeId, to: NodeId) => void,
): void {
  for (const a of listed(from, ids)) for (const b of listed(to, ids)) if (a !== b) deed(a, b);
}

/** Counts how often a condition came true since it is looked for. */
class Watch {
  #awaited: Condition | undefined;
  #left = 0;
  #met: () => void = () => undefined;
  readonly #emitted = new Set<string>();
  readonly #roles = new Set<string>();

  /** It has happened as often as it should. */
  get hasHappened(): boolean {
    return this.#left === 0;
  }

  /** What to say of it if it never came: which events or roles there were, as no protocol lists its own. */
  get inVain(): string {
    const { emits, becomes } = this.#awaited ?? {};
    if (emits !== undefined) return neverWas(emits, "the events were", this.#emitted);
    if (becomes !== undefined) return neverWas(becomes, "the roles were", this.#roles);
    return NEVER;
  }

  /** From now on this is looked for; undefined: nothing is. @param then what is done at the very moment in which it is met */
  lookFor(condition: Condition | undefined, then: () => void = () => undefined): void {
    this.#awaited = condition;
    this.#met = then;
    this.#left = condition?.occurrence ?? 0;
  }

  see(entry: TraceEntry): void {
    if (entry.kind === "event") this.#emitted.add(typeOf(entry.event));
    if (entry.kind === "view") this.#roles.add(entry.view.role);
    if (this.#left === 0 || this.#awaited === undefined || !matches(this.#awaited, entry)) return;
    this.#left -= 1;
    if (this.#left === 0) this.#met();
  }
}

const NEVER = "it never happened";

function neverWas(word: string, verb: string, words: ReadonlySet<string>): string {
  if (words.has(word)) return NEVER;
  return `${NEVER}: ${verb} ${words.size === 0 ? "none" : [...words].join(", ")}`;
}

function matches(condition: Condition, entry: TraceEntry): boolean {
  const { node, to, from } = condition;
  if (node !== undefined && node !== entry.node) return false;
  switch (entry.kind) {
    case "send":
      return condition.sends === typeOf(entry.message) && (to === undefined || to === entry.to);
    case "receive":
      return condition.receives === typeOf(entry.message) && (from === undefined || from === entry.from);
    case "event":
      return condition.emits === typeOf(entry.event);
    case "timeout":
      return condition.timesOut !== undefined && isTimer(entry.timer, condition.timesOut);
    case "view":
      return condition.becomes === entry.view.role;
    default:
      return false;
  }
}

/** `node 5 sends answer to 4, for the second time`, for people. */
function conditionText({ node, occurrence, ...rest }: Condition): string {
  const who = node === undefined ? "any node" : `node ${node}`;
  const what = [
    ...(rest.sends === undefined ? [] : [`sends ${rest.sends}`, rest.to === undefined ? "" : `to ${rest.to}`]),
    ...(rest.receives === undefined
      ? []
      : [`receives ${rest.receives}`, rest.from === undefined ? "" : `from ${rest.from}`]),
    ...(rest.emits === undefined ? [] : [`emits ${rest.emits}`]),
    ...(rest.timesOut === undefined ? [] : [`times out: ${rest.timesOut}`]),
    ...(rest.becomes === undefined ? [] : [`becomes ${rest.becomes}`]),
  ].filter((part) => part !== "");
  return [who, ...what, ...(occurrence > 1 ? [`(occurrence ${occurrence})`] : [])].join(" ");
}

/** Runs scenarios. Equal scenarios give exactly equal runs, byte for byte. */
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

/** Options and callbacks of a run. */
export interface RunHooks {
  /** Called for every entry of the trace. */
  readonly trace?: (entry: TraceEntry) => void;
  /** Called for each step that is taken, with the virtual time. */
  readonly took?: (step: Step, atMs: number) => void;
  /** Returns the position of a field in the file. Used for errors that occur only during the run. */
  readonly place?: (path: Path) => string;
  /** The snapshot to continue from, and its protocol. Default: start from the beginning. */
  readonly from?: { readonly protocol: AnyProtocol; readonly snapshot: Snapshot<Vocabulary> };
  /** Stores the random draws of the run, and may reuse draws from another run. */
  readonly draws?: Draws;
  /** The cast, if already created, so that many runs of one scenario can share it. */
  readonly cast?: Cast;
  /**
   * When to check properties. `at the end` is faster if there are many nodes, but misses violations before the end.
   * Default: `every step`.
   */
  readonly properties?: "every step" | "at the end";
}

/** The protocol and nodes of a scenario, after the protocol's name, variant and options have been validated. */
export interface Cast {
  /** The protocol with its options. */
  readonly protocol: AnyProtocol;
  /** The family of the protocol, which defines its commands and outcomes. */
  readonly family: Family;
  /** The node ids, in ring order. */
  readonly ids: readonly NodeId[];
  /** The protocol's options, including the ring order if it has one. */
  readonly options: object;
  /** Whether nodes begin idle or start at time 0, as specified by the scenario or required by the protocol. */
  readonly begin: "idle" | "started";
}

/** The progress of a run. */
export interface Progress {
  /** The virtual time of the run, in milliseconds. */
  readonly timeMs: number;
  /** The number of messages sent so far. */
  readonly messages: number;
}

/** The number of simulated events between two progress reports. */
const SLICE = 20_000;

type AnySimulation = Simulation<Vocabulary>;
type Slices<T> = Generator<Progress, T>;

/**
 * Runs a scenario to the end and returns the result.
 * @throws UsageError if a step is impossible, such as crashing a node that has already crashed
 */
export function runScenario(scenario: Scenario, hooks: RunHooks = {}): Result {
  const slices = playScenario(scenario, hooks);
  for (;;) {
    const { done, value } = slices.next();
    if (done === true) return value;
  }
}

/** Runs a scenario in slices: yields its progress from time to time and continues when the caller calls `next()`. */
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

interface Run {
  readonly sim: AnySimulation;
  readonly scenario: Scenario;
  readonly made: Cast;
  readonly awaited: Watch;
  readonly hooks: RunHooks;
  /** The time of the last event. The simulator's clock may be later, if the last timer to become due was canceled. */
  lastMs: number;
}

const FEW_NODES = 1_000;

/**
 * Creates a scenario's protocol and its list of nodes.
 * @param given a protocol to run instead of the model
 * @throws UsageError if the protocol, variant or an option is unknown
 */
export function cast({ protocol: name, variant, options, nodes, begin }: Scenario, given?: AnyProtocol): Cast {
  const entry = protocolNamed(name);
  const { model } = variant === undefined ? entry : variantNamed(name, variant);
  const ids = typeof nodes === "number" ? Array.from({ length: nodes }, (_, id) => id) : nodes;
  // If there are many nodes, pass them the ring order even if it is the default. Otherwise, each node would search all
  // nodes for its neighbor.
  const isTold = typeof nodes !== "number" || nodes > FEW_NODES;
  const ring = isTold && entry.onRing !== null ? entry.onRing(ids) : {};
  const all = { ...ring, ...options };
  const begins = begin.nodes ?? (hasToStart(name, variant) ? "started" : "idle");
  return { protocol: given ?? model(all), family: entry.family, ids, options: all, begin: begins };
}

/** Advances the run until it is idle, until `untilMs`, or until `isDone` returns true. */
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

/** Takes the steps. If the condition of a step never came true, or its time had already passed, returns that step. */
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
    waitFor(run, steps[i + 1]); // Immediate effects of this step count toward the next condition.
    run.hooks.took?.(step, run.lastMs);
    if (step.withinStep !== true) blaming(["steps", i], run.hooks, () => take(sim, step, run.made));
  }
  return [];
}

/** Waits for a step's condition. A crash within a step happens at the moment when the condition comes true. */
function waitFor({ sim, awaited, made }: Run, step: Step | undefined): void {
  awaited.lookFor(step?.when, step?.withinStep === true ? () => take(sim, step, made) : undefined);
}

/** Adds the step that caused it to the beginning of a UsageError from the simulator. */
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

/** Watches the trace for a condition and counts its occurrences. */
class Watch {
  #awaited: Condition | undefined;
  #left = 0;
  #met: () => void = () => undefined;
  readonly #emitted = new Set<string>();
  readonly #roles = new Set<string>();

  /** Whether the condition has occurred as many times as required. */
  get hasHappened(): boolean {
    return this.#left === 0;
  }

  /**
   * The explanation of an unmet condition. It lists the events or roles that were observed, because protocols do not
   * declare theirs.
   */
  get inVain(): string {
    const { emits, becomes } = this.#awaited ?? {};
    if (emits !== undefined) return neverWas(emits, "the events were", this.#emitted);
    if (becomes !== undefined) return neverWas(becomes, "the roles were", this.#roles);
    return NEVER;
  }

  /**
   * Starts watching for a condition, or stops watching if there is none. @param then called when the condition is met
   */
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

/** Describes a condition, such as `node 5 sends answer to 4 (occurrence 2)`. */
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

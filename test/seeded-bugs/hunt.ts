/** Runs one search of a protocol. Returns the findings and the amount of work. */
import { explore } from "../../src/check/explore.ts";
import type { ModelOptions } from "../../src/check/model.ts";
import type { Taken } from "../../src/check/path.ts";
import { exploreDepthFirst } from "../../src/check/search/dfs.ts";
import { walk } from "../../src/check/search/walks.ts";
import { shrink } from "../../src/check/shrink/shrink.ts";
import { shrinkTrace } from "../../src/check/shrink/trace.ts";
import type { NodeId, Property, Vocabulary } from "../../src/core/protocol.ts";
import { random } from "../../src/core/random.ts";
import { simulation } from "../../src/sim/simulation.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import type { SeededBug, Subject } from "./seeded-bug.ts";
import type { Setting } from "./settings.ts";
import { type AnyProtocol, exploredWith } from "./subjects.ts";

export interface Catch {
  readonly property: string;
  /** The length of the run that found it, in moves. */
  readonly foundLength: number;
  /** The number of states, of runs and moves, or of seeds that were tried. */
  readonly effort: string;
  readonly path: readonly Taken<Vocabulary>[];
  /** The options of the model that compares the shrunk run with the shortest one. */
  readonly options: ModelOptions<Vocabulary>;
  /** Whether the run ends in a loop that can repeat forever, which violates liveness. */
  readonly goesRound: boolean;
}

/** A range of the simulator's seeds. */
export interface Seeds {
  readonly first: number;
  readonly count: number;
}

/** The number of runs of a randomized strategy. */
const RUNS = 1_000;
const ALL_SEEDS: Seeds = { first: 1, count: 400 };

export function hunt(
  protocol: AnyProtocol,
  { by, protocol: subject }: Pick<SeededBug, "by" | "protocol">,
  setting: Setting,
  seeds: Seeds = ALL_SEEDS,
): Catch | null {
  if (by === "simulator") return simulated(protocol, setting, seeds);
  const options = modelOf(protocol, subject, setting);
  if (by === "bfs" || by === "dfs") {
    const found = (by === "bfs" ? explore : exploreDepthFirst)(options);
    if (found.verdict !== "violated") return null;
    const effort = `${found.states} states`;
    // A run that loops forever is not shrunk.
    const { loop, path, property } = found;
    if (property !== null && loop !== null && loop < path.length)
      return { property: property.name, foundLength: path.length, effort, path, options, goesRound: true };
    return caught(options, property, path, effort);
  }
  const found = walk({ ...options, strategy: by, seed: 1, runs: RUNS });
  if (found.verdict !== "violated") return null;
  return caught(options, found.property, found.path, `run ${found.runs}, ${found.transitions} moves in all`);
}

function caught(
  options: ModelOptions<Vocabulary>,
  property: Property<Vocabulary> | null,
  path: readonly Taken<Vocabulary>[],
  effort: string,
): Catch | null {
  if (property === null) return null;
  const shrunk = shrink(options, path, property);
  if (shrunk === null) throw new Error(`the run that violates ${property.name} does not when it is replayed`);
  return { property: property.name, foundLength: path.length, effort, path: shrunk.path, options, goesRound: false };
}

const range = (count: number): NodeId[] => Array.from({ length: count }, (_, i) => i);

function modelOf(protocol: AnyProtocol, subject: Subject, setting: Setting): ModelOptions<Vocabulary> {
  const { summary: _, nodes, asks, areSuspected, safetyOnly, adversity: _ofTheSimulator, ...bounds } = setting;
  return {
    begin: "idle",
    ...bounds,
    protocol,
    nodes: range(nodes),
    ...(areSuspected === true
      ? { crashNotification: (node) => ({ type: "mutex", body: { type: "suspect", node } }) as never }
      : {}),
    ...(safetyOnly === true ? { properties: protocol.properties.filter(({ when }) => when === "always") } : {}),
    asks: (node) => (asks[node] ?? []) as never[],
    ...exploredWith(subject, protocol),
  };
}

/** Runs the simulator. The seed decides when nodes receive commands, crash and restart, and how links behave. */
function simulated(protocol: AnyProtocol, setting: Setting, { first, count }: Seeds): Catch | null {
  for (let seed = first; seed < first + count; seed++) {
    const { entries, property } = simulatedRun(protocol, setting, seed);
    if (property === null) continue;
    const asks = (node: NodeId) => (setting.asks[node] ?? []) as never[];
    const shrunk = shrinkTrace({ protocol, nodes: range(setting.nodes), asks, commands: () => [] }, entries, property);
    if (shrunk === null)
      throw new Error(`the checker cannot follow seed ${seed} to where it violates ${property.name}`);
    const { path, originalLength, options } = shrunk;
    return {
      property: property.name,
      foundLength: originalLength,
      effort: `seed ${seed}`,
      path,
      options,
      goesRound: false,
    };
  }
  return null;
}

const END_MS = 20_000;

function simulatedRun(protocol: AnyProtocol, setting: Setting, seed: number) {
  const nodes = range(setting.nodes);
  const entries: TraceEntry<Vocabulary>[] = [];
  const sim = simulation<Vocabulary>({
    protocol,
    nodes,
    seed,
    delayMs: [1, 40],
    link: { duplicateRate: setting.duplications > 0 ? 0.1 : 0, order: setting.network === "bag" ? "none" : "fifo" },
    trace: (entry) => void entries.push(entry),
  });
  for (const node of nodes) sim.wake(node);
  const script = random(seed).stream("script");
  const spanMs = script.between(10, 200); // Some seeds send commands quickly.
  const deeds: { at: number; act: () => void }[] = [];
  for (const node of nodes) {
    for (const command of setting.asks[node] ?? []) {
      const act = () => sim.world.alive.includes(node) && sim.command(node, command as never);
      deeds.push({ at: script.between(0, spanMs), act });
    }
  }
  for (let fault = 0; fault < setting.crashes; fault++) {
    const node = script.pick(nodes);
    const at = script.between(0, spanMs);
    deeds.push({ at, act: () => sim.world.alive.includes(node) && sim.crash(node) });
    if (fault >= setting.recoveries) continue;
    const back = at + script.between(0, spanMs);
    deeds.push({ at: back, act: () => !sim.world.alive.includes(node) && sim.start(node) });
  }
  for (const { at, act } of deeds.sort((a, b) => a.at - b.at)) {
    sim.run(at);
    act();
  }
  sim.run(END_MS);
  const [violation] = sim.violations;
  const property = protocol.properties.find(({ name }) => name === violation?.property) ?? null;
  return { entries: entries.filter(({ at }) => violation === undefined || at <= violation.at), property };
}

/**
 * Runs protocols in virtual time that depend on time or never finish: leases, detectors, groups. Clocks and links
 * misbehave as far as the protocol allows. The checker has no clock and would shrink such a run until a clock stops.
 * Therefore runs are shrunk here, by leaving out commands and faults as long as the same property is violated.
 */
import { movesOf } from "../../src/check/shrink/trace.ts";
import { InvariantViolation } from "../../src/core/errors.ts";
import type { NodeId, Vocabulary } from "../../src/core/protocol.ts";
import { type Random, random } from "../../src/core/random.ts";
import type { Violation } from "../../src/sim/simulation.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import type { Delay } from "../../src/trace/link-model.ts";
import type { Setting } from "./settings.ts";
import type { AnyProtocol } from "./subjects.ts";

/** Faults that may occur in a run, with equal probability. List a fault repeatedly to draw it more often. */
export type Mishap =
  /** A node crashes and restarts after a while. */
  | "restart"
  /** A node crashes and never restarts. */
  | "end"
  /** One direction of a link loses everything for a while. */
  | "cut"
  /** A node is disconnected from all others for a while. */
  | "isolation"
  /** One direction of a link is slow for a while. */
  | "slow link"
  /** All links of a node become slow, and then the node is isolated. Messages in transit still arrive. */
  | "slow isolation";

export interface Adversity {
  /** The number of tried seeds, beginning with `firstSeed`, which defaults to 1. */
  readonly seeds: number;
  readonly firstSeed?: number;
  /** Commands and faults occur within this time. Temporary faults have ended by then. */
  readonly spanMs: number;
  /** How long the run continues without faults before liveness is checked. With 0, liveness is not checked. */
  readonly calmMs: number;
  readonly mishaps: readonly Mishap[];
  /** The number of faults in a run. */
  readonly count: number;
  /** The duration of a temporary fault. */
  readonly lastingMs: readonly [number, number];
  /** How long a restarting node stays down. Defaults to `lastingMs`. */
  readonly downMs?: readonly [number, number];
  /** The delay of a message. */
  readonly delayMs?: Delay;
  /** The delay of a slow link. */
  readonly slowMs?: readonly [number, number];
  /** The largest error of a clock's speed, as a fraction. */
  readonly drift?: number;
  /** The probability that a message is lost during `spanMs`. */
  readonly lossRate?: number;
}

interface Deed {
  readonly at: number;
  act(sim: Simulation<Vocabulary>): void;
}

/** The unit of shrinking. Its parts are kept or left out together. */
type Piece = readonly Deed[];

export interface Found {
  readonly property: string;
  readonly effort: string;
  /** The length of the original run, in moves up to the violation. */
  readonly foundLength: number;
  readonly shrunkLength: number;
}

/** Finds the first seed that violates a property, and shrinks its run. */
export function endure(protocol: AnyProtocol, setting: Setting, adversity: Adversity): Found | null {
  const { firstSeed = 1 } = adversity;
  for (let seed = firstSeed; seed < firstSeed + adversity.seeds; seed++) {
    const property = endureSeed(protocol, setting, adversity, seed);
    if (property === null) continue;
    const all = drawn(setting, adversity, seed);
    const foundLength = told(protocol, setting, adversity, seed, all)?.length ?? 0;
    let [kept, shrunkLength] = [all, foundLength];
    for (const piece of all) {
      const fewer = kept.filter((other) => other !== piece);
      const trial = told(protocol, setting, adversity, seed, fewer);
      if (trial?.property === property && trial.length <= shrunkLength) [kept, shrunkLength] = [fewer, trial.length];
    }
    return { property, effort: `seed ${seed}`, foundLength, shrunkLength };
  }
  return null;
}

/** Returns the property that this seed's run violates, or null. Does not shrink the run. */
export function endureSeed(protocol: AnyProtocol, setting: Setting, adversity: Adversity, seed: number): string | null {
  const run = watched(protocol, setting, adversity, seed, drawn(setting, adversity, seed));
  return violation(run, adversity)?.property ?? null;
}

const range = (count: number): NodeId[] => Array.from({ length: count }, (_, i) => i);

function drawn(setting: Setting, adversity: Adversity, seed: number): readonly Piece[] {
  const source = random(seed).stream("adversity");
  const nodes = range(setting.nodes);
  const commands = nodes.flatMap((node) =>
    (setting.asks[node] ?? []).map((command): Piece => {
      const act = (sim: Simulation<Vocabulary>) =>
        sim.world.alive.includes(node) && sim.command(node, command as never);
      return [{ at: source.between(0, adversity.spanMs), act }];
    }),
  );
  const mishaps = range(adversity.count).map(() => mishap(nodes, adversity, source));
  const drift = adversity.drift ?? 0;
  const clocks = nodes.map((node): Piece => {
    const rate = source.pick([1 - drift, 1, 1 + drift]);
    return drift === 0 ? [] : [{ at: 0, act: (sim) => sim.clockRate(node, rate) }];
  });
  return [...clocks, ...commands, ...mishaps];
}

function mishap(nodes: readonly NodeId[], adversity: Adversity, source: Random): Piece {
  const kind = source.pick(adversity.mishaps);
  const [node, other] = [source.pick(nodes), source.pick(nodes)];
  const lasting = source.between(...adversity.lastingMs);
  const at = source.between(0, Math.max(0, adversity.spanMs - lasting));
  const downMs = source.between(...(adversity.downMs ?? adversity.lastingMs));
  const delay = source.between(...(adversity.slowMs ?? ([0, 0] as const)));
  const others = nodes.filter((each) => each !== node);
  const crash = (sim: Simulation<Vocabulary>) => sim.world.alive.includes(node) && sim.crash(node);
  const both = (each: (from: NodeId, to: NodeId) => void) => {
    for (const peer of others) {
      each(node, peer);
      each(peer, node);
    }
  };
  const until = (act: Deed["act"], undo: Deed["act"], lastsMs = lasting): Piece => [
    { at, act },
    { at: at + lastsMs, act: undo },
  ];
  if (kind === "end") return [{ at, act: crash }];
  if (kind === "restart") return until(crash, (sim) => !sim.world.alive.includes(node) && sim.start(node), downMs);
  if (kind === "isolation")
    return until(
      (sim) => both((from, to) => sim.cut(from, to)),
      (sim) => both((from, to) => sim.mend(from, to)),
    );
  if (kind === "slow isolation") {
    const slow = (delayMs: Delay) => (sim: Simulation<Vocabulary>) =>
      both((from, to) => sim.setLink(from, to, { delay: delayMs }));
    const isolated = at + Math.min(1.5 * delay, lasting / 2);
    return [
      { at, act: slow(delay) },
      { at: isolated, act: (sim) => both((from, to) => sim.cut(from, to)) },
      { at: at + lasting, act: slow(delayOf(adversity)) },
      { at: at + lasting, act: (sim) => both((from, to) => sim.mend(from, to)) },
    ];
  }
  if (node === other) return [];
  if (kind === "cut")
    return until(
      (sim) => sim.cut(node, other),
      (sim) => sim.mend(node, other),
    );
  return until(
    (sim) => sim.setLink(node, other, { delay }),
    (sim) => sim.setLink(node, other, { delay: delayOf(adversity) }),
  );
}

const delayOf = ({ delayMs = [1, 10] }: Adversity): Delay => delayMs;

type Run = readonly [AnyProtocol, Setting, Adversity, seed: number, readonly Piece[]];

interface Watched {
  readonly sim: Simulation<Vocabulary>;
  /** The assertion of the protocol that failed and stopped the run, or null. */
  readonly breach: InvariantViolation | null;
}

function watched(
  protocol: AnyProtocol,
  setting: Setting,
  adversity: Adversity,
  seed: number,
  pieces: readonly Piece[],
  trace?: (entry: TraceEntry<Vocabulary>) => void,
): Watched {
  const nodes = range(setting.nodes);
  const order = setting.network === "bag" ? "none" : "fifo";
  const lossRate = adversity.lossRate ?? 0;
  const link = { duplicateRate: setting.duplications > 0 ? 0.1 : 0, order, lossRate } as const;
  const traced = trace === undefined ? {} : { trace };
  const sim = simulation<Vocabulary>({ protocol, nodes, seed, delayMs: delayOf(adversity), link, ...traced });
  let breach: InvariantViolation | null = null;
  try {
    live(sim, setting, adversity, pieces);
  } catch (error) {
    if (!(error instanceof InvariantViolation)) throw error;
    breach = error;
  }
  return { sim, breach };
}

function live(sim: Simulation<Vocabulary>, setting: Setting, adversity: Adversity, pieces: readonly Piece[]): void {
  const nodes = range(setting.nodes);
  for (const node of nodes) setting.begin === "together" ? sim.start(node) : sim.wake(node);
  for (const { at, act } of pieces.flat().sort((a, b) => a.at - b.at)) {
    sim.run(at);
    if (sim.violations.length > 0) return;
    act(sim);
  }
  sim.run(adversity.spanMs);
  if (adversity.lossRate !== undefined)
    for (const from of nodes) for (const to of nodes) if (from !== to) sim.setLink(from, to, { lossRate: 0 });
  if (sim.violations.length === 0) sim.run(adversity.spanMs + adversity.calmMs);
}

/**
 * Returns the first violation: a failed assertion of the protocol, otherwise a safety property, otherwise an overdue
 * liveness property.
 */
function violation(
  { sim, breach }: Watched,
  { spanMs, calmMs }: Adversity,
): { readonly property: string; readonly at: number } | null {
  if (breach !== null) return { property: `invariant ${breach.code}`, at: sim.now };
  const isLong = ({ waiting }: Violation): boolean => calmMs > 0 && (waiting?.since ?? 0) <= spanMs + calmMs / 2;
  const found = sim.violations[0] ?? sim.verdict().find(isLong);
  return found === undefined ? null : { property: found.property, at: found.at };
}

/** Returns the violated property and the number of moves up to the violation. */
function told(...run: Run): { readonly property: string; readonly length: number } | null {
  const entries: TraceEntry<Vocabulary>[] = [];
  const found = violation(
    watched(...run, (entry) => void entries.push(entry)),
    run[2],
  );
  if (found === null) return null;
  const moves = movesOf(entries.filter(({ at }) => at <= found.at));
  return { property: found.property, length: moves.filter(({ move }) => move.kind !== "lose").length };
}

/**
 * Discrete time for `timers: "timed"`. Messages in flight and armed timers carry the number of time units until they
 * can, and must, take effect. These numbers are relative to the present, so states that differ only in when they occur
 * are equal, and the state space stays finite.
 *
 * The clock is discrete because that loses nothing here. Every constraint is a closed interval between two events, with
 * bounds that are whole numbers of units. A run in dense time can then be moved to whole units with all its events in
 * the same order (Henzinger, Manna & Pnueli, "What Good Are Digital Clocks?", ICALP 1992), and properties see only
 * states and their order. Zones would need no unit, but their sets of clock values are not plain data that can be
 * interned with a node's messages.
 */
import type { Duration, NodeId } from "../core/protocol.ts";
import { type Delivery, type Network, type NetworkKind, network, semantics } from "./network.ts";
import { interner, PairTable } from "./state-store.ts";

/** The bounds on time. Durations are rounded outward to whole units, so a model never excludes a possible run. */
export interface TimeBounds {
  /** The unit of the discrete clock, in milliseconds. Coarser units give fewer states. */
  readonly unitMs: number;
  /** The minimum and the maximum delay of every message, in milliseconds. */
  readonly delayMs: readonly [min: number, max: number];
  /**
   * The maximum drift of each node's clock: with 0.05, its rate stays between 0.95 and 1.05 and may change within that
   * range. A record sets the drift of individual nodes; other nodes then have exact clocks. Default: 0.
   */
  readonly drift?: number | Readonly<Record<NodeId, number>>;
  /** The maximum duration of a pause, in milliseconds. Default: 0. */
  readonly pauseMs?: number;
}

type Range = readonly [min: number, max: number];

/** When an event can take effect at the earliest, and must at the latest, in units from the present. */
interface Window {
  readonly earliest: number;
  readonly latest: number;
}

interface RunningTimer extends Window {
  readonly timer: string;
  /**
   * For other timers of the node: the most by which this timer's remaining time can exceed theirs, in milliseconds of
   * the node's clock. All timers of a node run by one clock, so drift does not change the difference. Bounds that
   * cannot be exceeded in any case are left out.
   */
  readonly excess: Readonly<Record<string, number>>;
}

/** Everything that will reach a node: its messages in flight, its armed timers, and the end of its pause. */
interface Agenda {
  readonly messages: readonly (Window & { readonly envelope: number })[];
  /** Timers in alphabetical order. */
  readonly timers: readonly RunningTimer[];
  /** The remaining units of the node's pause. Null if it is not paused. */
  readonly pause: number | null;
}

/** The changes that a step makes to the timers of its node. */
export interface TimerChanges {
  /** The timer that fires, if the step is a timeout. */
  readonly fired: string | null;
  /** The timers that are armed after the step. */
  readonly timers: readonly string[];
  /** The timers that the step armed or rearmed, and their durations. No two steps share the same map. */
  readonly armed: ReadonlyMap<string, Duration>;
}

/** A network whose contents also hold the timers and the pause of the node that they belong to. */
export interface TimedNetwork extends Network {
  readonly unitMs: number;
  /** Returns the content after the given number of units, in which nothing happened. */
  later(content: number, units: number): number;
  /** Returns how many units can pass before something must happen. Infinity if nothing is due. */
  deadline(content: number, accepts: boolean): number;
  /** Whether a timer can fire now: its time has come, and no other timer of the node must fire before it. */
  canFire(content: number, timer: string): boolean;
  /** Returns the content after a step of its node. */
  stepped(content: number, node: NodeId, step: TimerChanges): number;
  isPaused(content: number): boolean;
  paused(content: number): number;
  resumed(content: number): number;
}

const onset = (ms: number, unitMs: number): number => Math.floor(ms / unitMs + TOLERANCE);
const limit = (ms: number, unitMs: number): number => Math.ceil(ms / unitMs - TOLERANCE);
/** Absorbs rounding errors of divisions, so that 300 ms / 0.75 are exactly 4 units of 100 ms. */
const TOLERANCE = 1e-9;

const passed = <W extends Window>(window: W, units: number): W => ({
  ...window,
  earliest: Math.max(0, window.earliest - units),
  latest: Math.max(0, window.latest - units),
});

/** Creates the network. Contents without messages, timers and pause have number 0. */
export function timedNetwork(kind: NetworkKind, bounds: TimeBounds): TimedNetwork {
  const { unitMs, delayMs, drift = 0, pauseMs = 0 } = bounds;
  const { place, heads } = semantics[kind];
  const plain = network(kind);
  const agendas = interner<Agenda>(keyOf);
  const afterSteps = new PairTable();
  const numbers = new WeakMap<object, number>();
  let steps = 0;
  const laterContents = new PairTable();
  const sums = new PairTable();
  const headsOf: (readonly Delivery[])[] = [];
  const deliveriesOf: (readonly Delivery[])[] = [];
  const transit: Window = { earliest: onset(delayMs[0], unitMs), latest: limit(delayMs[1], unitMs) };
  const of = (content: number): Agenda => agendas.valueOf(content);
  agendas.idOf({ messages: [], timers: [], pause: null });

  function placed(messages: Agenda["messages"], message: Agenda["messages"][number]): Agenda["messages"] {
    const ids = messages.map(({ envelope }) => envelope);
    return messages.toSpliced(place(ids, message.envelope, plain.envelopeOf), 0, message);
  }

  const driftOf = (node: NodeId): number => (typeof drift === "number" ? drift : (drift[node] ?? 0));

  /** Returns when a clock that may drift has advanced by a time between two bounds. */
  const windowOf = (node: NodeId, [minMs, maxMs]: Range): Window => ({
    earliest: Math.max(0, onset(minMs / (1 + driftOf(node)), unitMs)),
    latest: Math.max(0, limit(maxMs / (1 - driftOf(node)), unitMs)),
  });

  /** Returns the least and the greatest time that remains on the node's clock. */
  const remaining = (node: NodeId, { earliest, latest }: Window): Range => [
    earliest * unitMs * (1 + driftOf(node)),
    latest * unitMs * (1 - driftOf(node)),
  ];

  /**
   * Whole units differ from dense time by less than one between any two events, so bounds that are derived from the
   * time that has passed are looser by one unit.
   */
  const loosened = ({ earliest, latest }: Window): Window => ({
    earliest: Math.max(0, earliest - 1),
    latest: latest + 1,
  });

  /** Leaves out bounds that a timer keeps to in any case, so that equal states meet. */
  function normalized(node: NodeId, timers: readonly RunningTimer[]): readonly RunningTimer[] {
    if (driftOf(node) === 0) return timers.map((timer) => ({ ...timer, excess: {} }));
    const names = timers.map(({ timer }) => timer);
    return timers.map((each) => {
      const [, most] = remaining(node, each);
      const kept = names.flatMap((other) => {
        const bound = each.excess[other];
        return bound !== undefined && bound < most - TOLERANCE ? [[other, bound]] : [];
      });
      return { ...each, excess: Object.fromEntries(kept) };
    });
  }

  /** Returns the other timers, whose remaining time is known better when a timer fires, because its own is then 0. */
  function fired(timers: readonly RunningTimer[], node: NodeId, timer: string): readonly RunningTimer[] {
    const firing = timers.find((other) => other.timer === timer) as RunningTimer;
    return timers
      .filter((other) => other !== firing)
      .map((other) => {
        const bounds = windowOf(node, [
          -(firing.excess[other.timer] ?? 0),
          other.excess[timer] ?? Number.POSITIVE_INFINITY,
        ]);
        const earliest = Math.max(other.earliest, bounds.earliest);
        return { ...other, earliest, latest: Math.max(earliest, Math.min(other.latest, bounds.latest)) };
      });
  }

  function rearmed(
    before: readonly RunningTimer[],
    node: NodeId,
    { timers, armed }: TimerChanges,
  ): readonly RunningTimer[] {
    const running = new Map(before.filter(({ timer }) => !armed.has(timer)).map((each) => [each.timer, each]));
    const rangeAt = (timer: string): Range => {
      const known = running.get(timer);
      return known === undefined ? rangeOf(armed.get(timer) as Duration) : remaining(node, loosened(known));
    };
    const ranges = new Map(timers.map((timer) => [timer, rangeAt(timer)]));
    const after = timers.map((timer): RunningTimer => {
      const range = ranges.get(timer) as Range;
      const known = running.get(timer) ?? { timer, ...windowOf(node, range), excess: {} };
      const isNew = (other: string): boolean => other !== timer && (!running.has(timer) || !running.has(other));
      const bounds = timers.filter(isNew).map((other) => [other, range[1] - (ranges.get(other) as Range)[0]]);
      return { ...known, excess: { ...known.excess, ...Object.fromEntries(bounds) } };
    });
    return normalized(node, after);
  }

  function remembered(table: PairTable, content: number, other: number, compute: () => Agenda): number {
    const known = table.get(content, other);
    if (known >= 0) return known;
    const id = agendas.idOf(compute());
    table.add(content, other, id);
    return id;
  }

  function allHeads(content: number): readonly Delivery[] {
    headsOf[content] ??= heads(
      of(content).messages.map(({ envelope }) => envelope),
      plain.envelopeOf,
    ).map((at) => ({
      envelope: (of(content).messages[at] as Agenda["messages"][number]).envelope,
      rest: agendas.idOf({ ...of(content), messages: of(content).messages.toSpliced(at, 1) }),
    }));
    return headsOf[content];
  }

  return {
    unitMs,
    envelopeOf: plain.envelopeOf,
    envelopeId: plain.envelopeId,
    add: (content, envelope) =>
      remembered(sums, content, envelope, () => ({
        ...of(content),
        messages: placed(of(content).messages, { envelope, ...transit }),
      })),
    heads: allHeads,
    deliveries(content) {
      deliveriesOf[content] ??= allHeads(content).filter(
        ({ envelope }) => of(content).messages.find((message) => message.envelope === envelope)?.earliest === 0,
      );
      return deliveriesOf[content];
    },
    size: (content) => of(content).messages.length,
    envelopes: (content) => of(content).messages.map(({ envelope }) => plain.envelopeOf(envelope)),
    rewritten: (content, rewrite) =>
      agendas.idOf({
        ...of(content),
        messages: of(content).messages.reduce<Agenda["messages"]>(
          (messages, message) => placed(messages, { ...message, envelope: rewrite(message.envelope) }),
          [],
        ),
      }),
    later: (content, units) =>
      remembered(laterContents, content, units, () => {
        const { messages, timers, pause } = of(content);
        return {
          messages: messages.map((message) => passed(message, units)),
          timers: timers.map((timer) => passed(timer, units)),
          pause: pause === null ? null : pause - units,
        };
      }),
    deadline(content, accepts) {
      const { messages, timers, pause } = of(content);
      if (pause !== null) return pause;
      const windows: readonly Window[] = accepts ? [...messages, ...timers] : timers;
      return windows.reduce((least, { latest }) => Math.min(least, latest), Number.POSITIVE_INFINITY);
    },
    canFire(content, timer) {
      const { timers } = of(content);
      const isDue = timers.some((other) => other.timer === timer && other.earliest === 0);
      return isDue && timers.every(({ excess }) => (excess[timer] ?? 0) >= 0);
    },
    stepped(content, node, step) {
      let number = numbers.get(step.armed);
      if (number === undefined) {
        number = ++steps;
        numbers.set(step.armed, number);
      }
      return remembered(afterSteps, content, number, () => ({
        ...of(content),
        timers: rearmed(
          step.fired === null ? of(content).timers : fired(of(content).timers, node, step.fired),
          node,
          step,
        ),
      }));
    },
    isPaused: (content) => of(content).pause !== null,
    paused: (content) => agendas.idOf({ ...of(content), pause: limit(pauseMs, unitMs) }),
    resumed: (content) => agendas.idOf({ ...of(content), pause: null }),
  };
}

const rangeOf = (duration: Duration): Range => (typeof duration === "number" ? [duration, duration] : duration);

function keyOf({ messages, timers, pause }: Agenda): string {
  const inFlight = messages.map(({ envelope, earliest, latest }) => `${envelope}.${earliest}.${latest}`);
  const running = timers.map(
    ({ timer, earliest, latest, excess }) => `${earliest}.${latest}.${timer} ${Object.entries(excess).join()}`,
  );
  return `${inFlight.join()};${running.join()};${pause ?? ""}`;
}

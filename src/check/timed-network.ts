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

/** When an event can take effect at the earliest, and must at the latest, in units from the present. */
interface Window {
  readonly earliest: number;
  readonly latest: number;
}

/** Everything that will reach a node: its messages in flight, its armed timers, and the end of its pause. */
interface Agenda {
  readonly messages: readonly (Window & { readonly envelope: number })[];
  /** Timers in alphabetical order. */
  readonly timers: readonly (Window & { readonly timer: string })[];
  /** The remaining units of the node's pause. Null if it is not paused. */
  readonly pause: number | null;
}

/** A network whose contents also hold the timers and the pause of the node that they belong to. */
export interface TimedNetwork extends Network {
  readonly unitMs: number;
  /** Returns the content after the given number of units, in which nothing happened. */
  later(content: number, units: number): number;
  /** Returns how many units can pass before something must happen. Infinity if nothing is due. */
  deadline(content: number, accepts: boolean): number;
  /** Whether a timer can fire now. */
  canFire(content: number, timer: string): boolean;
  /**
   * Returns the content after a step of its node.
   * @param timers the timers that are armed after the step
   * @param armed the timers that the step armed or rearmed, and their durations
   */
  stepped(content: number, node: NodeId, timers: readonly string[], armed: ReadonlyMap<string, Duration>): number;
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

  /** Clocks may drift, so a timer fires some time after its duration divided by the highest possible rate. */
  function windowOf(node: NodeId, duration: Duration): Window {
    const [minMs, maxMs] = typeof duration === "number" ? [duration, duration] : duration;
    const rate = typeof drift === "number" ? drift : (drift[node] ?? 0);
    return { earliest: onset(minMs / (1 + rate), unitMs), latest: limit(maxMs / (1 - rate), unitMs) };
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
    canFire: (content, timer) => of(content).timers.find((other) => other.timer === timer)?.earliest === 0,
    stepped(content, node, timers, armed) {
      const before = of(content).timers;
      const after = timers.map((timer) => {
        const duration = armed.get(timer);
        const running = before.find((other) => other.timer === timer);
        return duration === undefined && running !== undefined
          ? running
          : { timer, ...windowOf(node, duration as Duration) };
      });
      return agendas.idOf({ ...of(content), timers: after });
    },
    isPaused: (content) => of(content).pause !== null,
    paused: (content) => agendas.idOf({ ...of(content), pause: limit(pauseMs, unitMs) }),
    resumed: (content) => agendas.idOf({ ...of(content), pause: null }),
  };
}

function keyOf({ messages, timers, pause }: Agenda): string {
  const inFlight = messages.map(({ envelope, earliest, latest }) => `${envelope}.${earliest}.${latest}`);
  const running = timers.map(({ timer, earliest, latest }) => `${earliest}.${latest}.${timer}`);
  return `${inFlight.join()};${running.join()};${pause ?? ""}`;
}

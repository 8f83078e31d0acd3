/**
 * The deterministic simulator: the same handlers as on real processes, in virtual time. Equal options give equal runs,
 * to the byte. Links are reliable and FIFO unless cut; a crash loses the node's state, its timers and what is on its
 * way to it, and keeps its journal unless told otherwise. Properties are checked after every step and loss.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import { canonical, clone } from "../core/plain.ts";
import type {
  CommandOf,
  Context,
  Duration,
  EventOf,
  MessageOf,
  NodeId,
  Property,
  Protocol,
  RecordOf,
  StateOf,
  TimerOf,
  View,
  Vocabulary,
  World,
} from "../core/protocol.ts";
import { random } from "../core/random.ts";
import { dispatch, type Stimulus } from "../core/step.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { eventQueue } from "./event-queue.ts";

export interface SimulationOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  readonly nodes: readonly NodeId[];
  readonly seed: number;
  /** How long a message travels. */
  readonly delayMs: Duration;
  /** Receives every entry of the trace. Without it, none is made. */
  readonly trace?: (entry: TraceEntry<V>) => void;
}

export interface Violation {
  readonly property: string;
  readonly claim: string;
  readonly at: number;
}

export interface Simulation<V extends Vocabulary> {
  /** Virtual milliseconds since the beginning. */
  readonly now: number;
  readonly world: World<StateOf<V>>;
  /** Messages sent so far, self-sends not counted, messages to crashed nodes counted. */
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  /** The first violation of each property. */
  readonly violations: readonly Violation[];
  /** What a node has emitted since its last start. */
  events(node: NodeId): readonly EventOf<V>[];
  /** The violations so far, and the properties that should hold in the end and do not hold now. */
  verdict(): readonly Violation[];
  /** Makes a node alive without starting it, as if it had been running idly before the story begins. */
  wake(node: NodeId): void;
  /** Starts a node, or starts it again after a crash: its journal is replayed first. */
  start(node: NodeId): void;
  /** What a node has journalled is kept, unless its disk is lost with it. */
  crash(node: NodeId, fate?: { readonly journal: "kept" | "lost" }): void;
  command(node: NodeId, command: CommandOf<V>): void;
  /** From now on, messages from `from` to `to` are lost. */
  cut(from: NodeId, to: NodeId): void;
  mend(from: NodeId, to: NodeId): void;
  /** Runs until nothing is left to happen, or until `untilMs`; the clock then stands at `untilMs`. */
  run(untilMs?: number): void;
}

/** More steps than this without an end mean that a protocol without periodic timers does not come to rest. */
const MAX_STEPS = 10_000_000;

interface Node<V extends Vocabulary> {
  readonly ctx: Context<V>;
  /** Undefined while the node is down. */
  state: StateOf<V> | undefined;
  incarnation: number;
  /** Per timer the number of its last arming; an event that carries an older one is stale. */
  armed: Map<TimerOf<V>, number>;
  journal: RecordOf<V>[];
  events: EventOf<V>[];
  picture: string;
}

type Happening<V extends Vocabulary> =
  | { kind: "arrival"; id: string; from: NodeId; to: NodeId; incarnation: number; message: MessageOf<V> }
  | { kind: "timeout"; node: NodeId; timer: TimerOf<V>; arming: number };

export function simulation<V extends Vocabulary>(options: SimulationOptions<V>): Simulation<V> {
  const { protocol, trace } = options;
  const ids = [...options.nodes].sort((a, b) => a - b);
  const queue = eventQueue<Happening<V>>();
  const delays = random(options.seed).stream("delays");
  const timers = random(options.seed).stream("timers");
  const choices = random(options.seed).stream("choices");
  const nodes = new Map<NodeId, Node<V>>();
  const lastArrival = new Map<string, number>();
  const cuts = new Set<string>();
  const byType: Record<string, number> = {};
  const violations: Violation[] = [];
  let now = 0;
  let sent = 0;
  let armings = 0;
  let inFlight = 0;

  for (const [i, self] of ids.entries()) {
    nodes.set(self, {
      ctx: context(self, ids.toSpliced(i, 1)),
      state: undefined,
      incarnation: 0,
      armed: new Map(),
      journal: [],
      events: [],
      picture: "",
    });
  }

  const world: World<StateOf<V>> = {
    get alive() {
      return ids.filter((id) => node(id).state !== undefined);
    },
    state: (id) => alive(id).state,
  };

  function node(id: NodeId): Node<V> {
    const found = nodes.get(id);
    if (found === undefined)
      throw new UsageError("unknown-node", unexpected("the node", `one of ${ids.join(", ")}`, id));
    return found;
  }

  function alive(id: NodeId): Node<V> & { state: StateOf<V> } {
    const found = node(id);
    if (found.state === undefined)
      throw new UsageError("node-down", `expected node ${id} to be alive, but it has crashed`);
    return found as Node<V> & { state: StateOf<V> };
  }

  function record(entry: unknown): void {
    trace?.(entry as TraceEntry<V>);
  }

  function context(self: NodeId, peers: readonly NodeId[]): Context<V> {
    return {
      self,
      peers,
      send: (to, message) => send(self, to, message),
      broadcast: (message) => {
        for (const peer of peers) send(self, peer, message);
      },
      setTimer(timer, duration) {
        armings += 1;
        node(self).armed.set(timer, armings);
        queue.push(now + draw(duration, timers), {
          kind: "timeout",
          node: self,
          timer,
          arming: armings,
        });
      },
      cancelTimer: (timer) => void node(self).armed.delete(timer),
      persist: (entry) => void node(self).journal.push(clone(entry)),
      compact(entry) {
        node(self).journal = [clone(entry)];
      },
      emit(event) {
        node(self).events.push(event);
        record({ at: now, node: self, kind: "event", event });
      },
      choose: (_label, among) => choices.pick(among),
    };
  }

  function send(from: NodeId, to: NodeId, message: MessageOf<V>): void {
    sent += 1;
    const type = messageType(message);
    byType[type] = (byType[type] ?? 0) + 1;
    const id = `${from}-${sent}`;
    const link = `${from}>${to}`;
    record({ at: now, node: from, kind: "send", id, to, message });
    if (cuts.has(link)) return record({ at: now, node: from, kind: "lost", id, to, why: "cut" });
    const at = Math.max(now + draw(options.delayMs, delays), lastArrival.get(link) ?? 0);
    lastArrival.set(link, at);
    inFlight += 1;
    queue.push(at, {
      kind: "arrival",
      id,
      from,
      to,
      incarnation: node(to).incarnation,
      message,
    });
  }

  function happen(event: Happening<V>): void {
    if (event.kind === "arrival") {
      inFlight -= 1;
      const { id, from, to, message } = event;
      const receiver = node(to);
      if (receiver.state === undefined || receiver.incarnation !== event.incarnation) {
        record({ at: now, node: to, kind: "lost", id, to, why: "crashed" });
        return checkProperties(); // It may have been the last on its way.
      }
      record({ at: now, node: to, kind: "receive", id, from, message });
      return step(to, { kind: "receive", from, message });
    }
    const { timer, arming } = event;
    const owner = node(event.node);
    if (owner.armed.get(timer) !== arming) return; // Cancelled, re-armed, or its node has crashed.
    owner.armed.delete(timer);
    record({ at: now, node: event.node, kind: "timeout", timer });
    step(event.node, { kind: "timeout", timer });
  }

  function step(id: NodeId, stimulus: Stimulus<V>): void {
    const { ctx, state } = alive(id);
    dispatch(protocol, state, stimulus, ctx);
    if (trace !== undefined) recordView(id, state);
    checkProperties();
  }

  function recordView(id: NodeId, state: StateOf<V>): void {
    const view: View = protocol.view(state, id);
    const picture = canonical(view);
    if (picture === node(id).picture) return;
    node(id).picture = picture;
    record({
      at: now,
      node: id,
      kind: "view",
      view,
      state: JSON.parse(JSON.stringify(state)),
    });
  }

  function checkProperties(): void {
    for (const property of protocol.properties) {
      if (violations.some((known) => known.property === property.name)) continue;
      const due = property.when === "always" || (property.when === "atRest" && isAtRest(property.restless ?? []));
      if (due && !property.holds(world)) violations.push(violation(property));
    }
  }

  /** Of what should hold in the end, whether it does not hold now. */
  function isUnmet(property: Property<V>): boolean {
    if (property.when === "inTheEnd") return !property.holds(world);
    if (property.when !== "leadsTo") return false;
    return world.alive.some((id) => property.given(world, id) && !property.holds(world, id));
  }
  const violation = ({ name, claim }: Property<V>): Violation => ({
    property: name,
    claim,
    at: now,
  });

  function boot(id: NodeId): void {
    const booting = node(id);
    if (booting.state !== undefined) throw new UsageError("node-up", `expected node ${id} to be down, but it is alive`);
    const state = protocol.init(id, booting.ctx.peers);
    for (const entry of clone(booting.journal))
      dispatch(protocol, state, { kind: "replay", record: entry }, booting.ctx);
    booting.state = state;
    booting.events = [];
    record({ at: now, node: id, kind: "start" });
  }

  const isAtRest = (restless: readonly TimerOf<V>[]): boolean =>
    inFlight === 0 && world.alive.every((id) => !restless.some((timer) => node(id).armed.has(timer)));

  return {
    get now() {
      return now;
    },
    world,
    get messages() {
      return { total: sent, byType: { ...byType } };
    },
    violations,
    events: (id) => node(id).events,
    verdict: () => [...violations, ...protocol.properties.filter(isUnmet).map(violation)],
    wake: boot,
    start(id) {
      boot(id);
      step(id, { kind: "start" });
    },
    crash(id, { journal } = { journal: "kept" }) {
      const crashing = alive(id) as Node<V>;
      if (journal === "lost") crashing.journal = [];
      crashing.state = undefined;
      crashing.incarnation += 1;
      crashing.armed.clear();
      crashing.picture = "";
      record({ at: now, node: id, kind: "crash" });
      checkProperties();
    },
    command(id, command) {
      record({ at: now, node: id, kind: "command", command });
      step(id, { kind: "command", command });
    },
    cut: (from, to) => void cuts.add(`${from}>${to}`),
    mend: (from, to) => void cuts.delete(`${from}>${to}`),
    run(untilMs = Number.POSITIVE_INFINITY) {
      for (let steps = 0; queue.next() <= untilMs && queue.size > 0; steps++) {
        if (steps === MAX_STEPS)
          throw new UsageError(
            "no-rest",
            `expected ${protocol.name} to come to rest within ${MAX_STEPS} steps; give run() a time`,
          );
        now = queue.next();
        happen(queue.pop() as Happening<V>);
      }
      if (Number.isFinite(untilMs)) now = Math.max(now, untilMs);
    },
  };
}

function draw(duration: Duration, source: { between(min: number, max: number): number }): number {
  return typeof duration === "number" ? duration : source.between(duration[0], duration[1]);
}

/** The type that counts: of the message itself, or of the message that an assembly's part sent. */
function messageType(message: { type: string; body?: { type: string } }): string {
  return message.body?.type ?? message.type;
}

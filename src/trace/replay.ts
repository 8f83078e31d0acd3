/**
 * Replays a recording. Every node takes its recorded steps again, using the protocol's own handlers. Their effects are
 * compared with the recording, properties are evaluated after every step, and all states are known at any point. The
 * replay does not guess at missing entries: after a gap, the verdict is `unknown`.
 */
import type {
  CommandOf,
  EventOf,
  NodeId,
  Protocol,
  RecordOf,
  ReplyOf,
  RequestId,
  StateOf,
  TimerOf,
  Vocabulary,
  World,
} from "../core/protocol.ts";
import type { Stimulus } from "../core/step.ts";
import { requestFinder } from "../driver/requests.ts";
import type { MessageId, TraceEntry, TraceHeader } from "./entry.ts";
import { type Histories, historiesOf, type Remembered } from "./histories.ts";
import {
  type RecordedStep,
  type Recording,
  ReplayedNode,
  recordingOf,
  type SavedNode,
  stimulusOf,
} from "./replay-node.ts";
import type { MessageInFlight, Snapshot } from "./snapshot.ts";
import { findingsOf, overall, PropertyWatcher, type ReplayFinding, type ReplayVerdict } from "./watcher.ts";

export interface ReplayOptions {
  /** The number of entries to replay. Default: all entries. */
  readonly until?: number;
  /** Whether the signatures are real rather than simulated. Signatures that the trace does not mention were valid. */
  readonly hasRealSignatures?: boolean;
  /** For each node, the fields of its initial state that differ from the usual one. */
  readonly states?: States;
  /** The time of the snapshot. Default: the time of the last entry. */
  readonly at?: number;
}

export interface Replay<V extends Vocabulary> {
  /** The verdict. Never treat `unknown` as a pass. */
  readonly verdict: ReplayVerdict;
  /** The findings, one for each of the protocol's properties. */
  readonly findings: readonly ReplayFinding<V>[];
  /** Why the replay could not follow some nodes, in the order of the entries. */
  readonly doubts: readonly Doubt[];
  /** Nodes that are running at the end but whose state is unknown. */
  readonly lost: readonly NodeId[];
  /** The number of stimuli that were handled. */
  readonly steps: number;
  readonly snapshot: Snapshot<V>;
}

/** A point where the replay could not follow a node. */
export interface Doubt {
  readonly entry: number;
  readonly node: NodeId;
  /**
   * The reason. `mismatch`: the recording does not match this protocol with these options, or the protocol's handlers
   * are not deterministic.
   */
  readonly why: "gap" | "begins in the middle" | "mismatch";
  readonly sentence: string;
}

type States = NonNullable<TraceHeader["states"]>;

/**
 * Replays a recording.
 *
 * @param entries the entries in an order that preserves each node's own order and puts no receipt before its send
 */
export function replay<V extends Vocabulary>(
  protocol: Protocol<V>,
  nodes: readonly NodeId[],
  entries: readonly TraceEntry<V>[],
  options: ReplayOptions = {},
): Replay<V> {
  const run = new Replaying(protocol, nodes, entries, options);
  const until = Math.min(options.until ?? entries.length, entries.length);
  for (let index = 0; index < until; index++) run.walk(index);
  return run.conclude(options.at ?? entries[until - 1]?.at ?? 0);
}

interface Flight<V extends Vocabulary> extends MessageInFlight<V> {
  /** The number of copies. A duplicated message is in flight more than once. */
  copies: number;
}

/** The complete state after an entry, except for the findings about properties. */
export interface SavedReplay<V extends Vocabulary> {
  readonly nodes: ReadonlyMap<NodeId, SavedNode<V>>;
  readonly flights: readonly Flight<V>[];
  readonly unheard: readonly (readonly [NodeId, Unheard])[];
  readonly doubts: readonly Doubt[];
}

interface Unheard {
  readonly entry: number;
  readonly by: NodeId;
}

export class Replaying<V extends Vocabulary> {
  readonly #entries: readonly TraceEntry<V>[];
  readonly #recording: Recording<V>;
  readonly #nodes: ReadonlyMap<NodeId, ReplayedNode<V>>;
  readonly #world: World<StateOf<V>>;
  readonly #histories: Histories<V>;
  readonly #remembered = new Map<NodeId, Remembered>();
  readonly #watcher: PropertyWatcher<V>;
  #hasLooked = false;
  /** The first entry that is followed by an unknown state. Null if all states have always been known. */
  #isBlindSince: number | null = null;
  readonly #requestIn: ((command: CommandOf<V>) => RequestId | null) | null;
  readonly #flights = new Map<MessageId, Flight<V>>();
  #doubts: Doubt[] = [];
  /**
   * Senders of messages whose send is not recorded. Either the sender is about to crash and these entries were lost, or
   * entries are missing.
   */
  readonly #unheard = new Map<NodeId, Unheard>();
  #alive: readonly NodeId[] = [];
  #lost: readonly NodeId[] = [];
  /** Steps that differ from the recording. */
  readonly #mismatched = new Set<number>();
  #steps = 0;

  constructor(
    protocol: Protocol<V>,
    nodes: readonly NodeId[],
    entries: readonly TraceEntry<V>[],
    { hasRealSignatures = false, states = {} }: Pick<ReplayOptions, "hasRealSignatures" | "states">,
  ) {
    this.#entries = entries;
    const ids = [...nodes].sort((a, b) => a - b);
    this.#recording = recordingOf(entries);
    this.#nodes = new Map(
      ids.map((id) => [id, new ReplayedNode(protocol, id, ids, { hasRealSignatures, differing: states[id] ?? {} })]),
    );
    this.#histories = historiesOf(protocol.properties);
    this.#requestIn = requestFinder(protocol);
    for (const id of ids) this.#remembered.set(id, this.#histories.empty);
    this.#world = this.#worldOf();
    this.#watcher = new PropertyWatcher(this.#histories.shown(protocol.properties), this.#world, (pendingTimers) =>
      this.#isQuiescent(pendingTimers),
    );
    const begun = new Set<NodeId>();
    for (const [index, entry] of entries.entries()) {
      const { node, kind } = entry;
      const needsNobody = kind === "fault" || (kind === "lost" && entry.to === node);
      if (begun.has(node) || needsNobody) continue;
      begun.add(node);
      if (kind !== "start")
        this.#lose(
          index,
          node,
          "begins in the middle",
          `the recording does not contain the earlier steps of node ${node}`,
        );
    }
    this.#count();
  }

  /** Replays an entry. @param isKnown whether the entry has already been replayed, so that its effects are known */
  walk(index: number, isKnown = false): void {
    const entry = this.#entries[index] as TraceEntry<V>;
    const node = this.#nodes.get(entry.node);
    if (node === undefined)
      return this.#lose(index, entry.node, "mismatch", `node ${entry.node} is not one of this recording's nodes`);
    if (stimulusOf(entry) !== null) this.#step(index, node, entry, isKnown && !this.#mismatched.has(index));
    else if (entry.kind === "crash") this.#crash(node, entry.journal as readonly RecordOf<V>[] | undefined);
    else if (entry.kind === "lost") this.#land(entry.id);
    else if (entry.kind === "gap" && node.status !== "down")
      this.#lose(index, node.id, "gap", `at least ${entry.dropped} of its entries are missing`);
    else return;
    this.#look(index);
  }

  get doubts(): readonly Doubt[] {
    return this.#doubts;
  }

  get lost(): readonly NodeId[] {
    return this.#lost;
  }

  save(): SavedReplay<V> {
    return {
      nodes: new Map([...this.#nodes].map(([id, node]) => [id, node.save()])),
      flights: [...this.#flights.values()].map((flight) => ({ ...flight })),
      unheard: [...this.#unheard],
      doubts: [...this.#doubts],
    };
  }

  /** Returns to a saved state. Findings about properties are kept. */
  restore({ nodes, flights, unheard, doubts }: SavedReplay<V>): void {
    for (const [id, saved] of nodes) this.#nodes.get(id)?.restore(saved);
    this.#flights.clear();
    for (const flight of flights) this.#flights.set(flight.id, { ...flight });
    this.#unheard.clear();
    for (const [node, entry] of unheard) this.#unheard.set(node, entry);
    this.#doubts = [...doubts];
    this.#count();
  }

  conclude(at: number): Replay<V> {
    const findings = findingsOf(this.#watcher, { hasLooked: this.#hasLooked, isBlindSince: this.#isBlindSince });
    const verdict = overall(findings);
    return {
      verdict: verdict === "holds" && this.#doubts.length > 0 ? "unknown" : verdict,
      findings,
      doubts: this.#doubts,
      lost: this.#lost,
      steps: this.#steps,
      snapshot: this.snapshot(at),
    };
  }

  #step(index: number, node: ReplayedNode<V>, entry: TraceEntry<V>, isKnown: boolean): void {
    const { id } = node;
    const unheard = this.#unheard.get(id);
    if (unheard !== undefined)
      this.#lose(
        unheard.entry,
        id,
        "gap",
        `node ${unheard.by} received a message from it, but the recording does not contain the send`,
      );
    if (entry.kind === "receive") this.#receive(index, id, entry.id, entry.from);
    const recorded = this.#recording.steps.get(index);
    const stimulus = stimulusOf(entry);
    if (recorded === undefined || stimulus === null) return;
    for (const { id: message, to, message: said } of recorded.sends) this.#send(message, id, to, said);
    this.#remembered.set(id, this.#rememberedAfter(this.#world.history<Remembered>(id), stimulus, recorded));
    const isStart = entry.kind === "start";
    if (isStart && Array.isArray(entry.journal)) node.remember(entry.journal);
    if (isStart ? !node.canStart : node.status !== "up") return this.#refuse(index, node, entry);
    if (node.status === "lost") node.crash();
    const outcome = node.step(stimulus, entry.at, recorded, { isIdle: isStart && entry.idle === true, isKnown });
    this.#steps += 1;
    if (typeof outcome === "string") {
      this.#mismatched.add(index);
      return this.#lose(index, id, "mismatch", outcome);
    }
    if (isStart) this.#count();
    // The message was sent at the end of the recording, so it may be in flight.
    if (recorded.cut === "end")
      for (const [i, { to, what }] of outcome.entries()) this.#send(`${id}-${index}-${i}`, id, to, what);
  }

  #rememberedAfter(before: Remembered, stimulus: Stimulus<V>, { events, replies }: RecordedStep<V>): Remembered {
    const histories = this.#histories;
    let known = before;
    if (stimulus.kind === "command" && (this.#requestIn?.(stimulus.command) ?? null) !== null)
      known = histories.requested(known, stimulus.command);
    for (const { event } of events) known = histories.after(known, event as EventOf<V>);
    for (const { event, request } of replies)
      if (request !== undefined) known = histories.replied(known, request, event as ReplyOf<V>);
    return known;
  }

  #refuse(index: number, { id, canStart }: ReplayedNode<V>, { kind }: TraceEntry<V>): void {
    if (!canStart) return this.#lose(index, id, "gap", "the contents of its journal at the restart are unknown");
    this.#lose(index, id, "mismatch", `it is not running, but the recording has a ${kind} for it`);
  }

  #send(id: MessageId, from: NodeId, to: NodeId, message: Flight<V>["message"]): void {
    const receiver = this.#nodes.get(to)?.status;
    // A message to a stopped node is lost, unless it was received after the node started.
    if ((receiver === "down" || receiver === "new") && !this.#recording.received.has(id)) return;
    this.#flights.set(id, { id, from, to, message, copies: Math.max(1, this.#recording.ends.get(id) ?? 0) });
  }

  #receive(index: number, by: NodeId, id: MessageId, from: NodeId): void {
    this.#land(id);
    const sender = this.#nodes.get(from);
    if (sender?.status === "up" && !this.#recording.sent.has(id) && !this.#unheard.has(from))
      this.#unheard.set(from, { entry: index, by });
  }

  #land(id: MessageId): void {
    const flight = this.#flights.get(id);
    if (flight === undefined) return;
    flight.copies -= 1;
    if (flight.copies <= 0) this.#flights.delete(id);
  }

  /** Crashes a node. Messages in flight to it are lost, even if the sender learns of the loss only later. */
  #crash(node: ReplayedNode<V>, journal: readonly RecordOf<V>[] | undefined): void {
    node.crash(journal);
    this.#watcher.forget(node.id);
    this.#unheard.delete(node.id);
    for (const { id, to } of this.#flights.values())
      if (to === node.id && !this.#recording.received.has(id)) this.#flights.delete(id);
    this.#count();
  }

  #lose(entry: number, node: NodeId, why: Doubt["why"], sentence: string): void {
    const losing = this.#nodes.get(node);
    this.#unheard.delete(node);
    if (losing?.status === "lost") return;
    losing?.lose();
    this.#doubts.push({ entry, node, why, sentence });
    this.#count();
  }

  #look(index: number): void {
    if (this.#unheard.size > 0) return; // The sender has had effects that its state does not yet reflect.
    if (this.#lost.length > 0) {
      this.#isBlindSince ??= index;
      return;
    }
    this.#hasLooked = true;
    this.#watcher.look(index);
  }

  #isQuiescent(pendingTimers: readonly TimerOf<V>[]): boolean {
    const isArmed = (timer: TimerOf<V>): boolean =>
      this.#alive.some((id) => this.#nodes.get(id)?.timers.has(timer) === true);
    return this.#flights.size === 0 && !pendingTimers.some(isArmed);
  }

  snapshot(at: number): Snapshot<V> {
    return { ...this.standing(at), nodes: [...this.#nodes.values()].map((node) => node.snapshot(at)) };
  }

  /** Returns a snapshot. It is not a copy, so it changes with the next entry. */
  standing(at: number): Snapshot<V> {
    const inFlight = [...this.#flights.values()].flatMap(({ copies, ...message }) => Array(copies).fill(message));
    return { at, nodes: [...this.#nodes.values()].map((node) => node.standing(at)), inFlight };
  }

  #with(status: ReplayedNode<V>["status"]): NodeId[] {
    return [...this.#nodes.values()].filter((node) => node.status === status).map(({ id }) => id);
  }

  /** Caches the sets of alive and lost nodes, which change rarely but are read often. */
  #count(): void {
    this.#alive = this.#with("up");
    this.#lost = this.#with("lost");
  }

  #worldOf(): World<StateOf<V>> {
    const alive = (): readonly NodeId[] => this.#alive;
    return {
      get alive() {
        return alive();
      },
      nodes: [...this.#nodes.keys()],
      state: (node) => (this.#nodes.get(node) as ReplayedNode<V>).state,
      history: (node) => (this.#remembered.get(node) ?? this.#histories.empty) as never,
    };
  }
}

/** The state of a replay after one entry. */
export interface Moment<V extends Vocabulary> {
  readonly snapshot: Snapshot<V>;
  readonly doubts: readonly Doubt[];
  readonly lost: readonly NodeId[];
}

/** The maximum number of saved states. Each one contains the states of all nodes. */
const MAX_KEPT = 200;
/** The minimum number of entries between saved states. Replaying fewer entries takes no noticeable time. */
const LEAST_APART = 200;

/** Replays to any entry. States in between are saved so that going back is fast. */
export class ReplayMoments<V extends Vocabulary> {
  readonly #entries: readonly TraceEntry<V>[];
  readonly #walker: Replaying<V>;
  readonly #apart: number;
  readonly #kept: SavedReplay<V>[];
  /** The number of entries that the replay has reached. */
  #place = 0;
  /** The number of entries that have been compared with the recording. */
  #furthest = 0;
  #walked = 0;

  /** Creates the moments of a recording. Properties are not evaluated. */
  constructor(
    protocol: Protocol<V>,
    nodes: readonly NodeId[],
    entries: readonly TraceEntry<V>[],
    options: Pick<ReplayOptions, "hasRealSignatures" | "states"> = {},
  ) {
    this.#entries = entries;
    this.#walker = new Replaying({ ...protocol, properties: [] }, nodes, entries, options);
    this.#apart = Math.max(LEAST_APART, Math.ceil(entries.length / MAX_KEPT));
    this.#kept = [this.#walker.save()];
  }

  /** The total number of entries replayed. */
  get walked(): number {
    return this.#walked;
  }

  /** The maximum number of entries to replay for one moment, once the end has been reached. */
  get apart(): number {
    return this.#apart;
  }

  /** Returns the state after `count` entries. States are not copies: they change when another moment is requested. */
  after(count: number): Moment<V> {
    this.#goTo(Math.min(count, this.#entries.length));
    const { doubts, lost } = this.#walker;
    const at = this.#entries[this.#place - 1]?.at ?? 0;
    return { snapshot: this.#walker.standing(at), doubts: [...doubts], lost };
  }

  /** Advances to the end and reports progress regularly. */
  keepAll(onProgress: (entries: number) => void): void {
    for (let place = 0; place < this.#entries.length; place += this.#apart) {
      this.#goTo(place);
      onProgress(place);
    }
    this.#goTo(this.#entries.length);
  }

  #goTo(place: number): void {
    const last = Math.min(Math.floor(place / this.#apart), this.#kept.length - 1);
    if (place < this.#place || last * this.#apart > this.#place) {
      this.#walker.restore(this.#kept[last] as SavedReplay<V>);
      this.#place = last * this.#apart;
    }
    while (this.#place < place) {
      this.#walker.walk(this.#place, this.#place < this.#furthest);
      this.#place += 1;
      this.#walked += 1;
      this.#furthest = Math.max(this.#furthest, this.#place);
      if (this.#place === this.#kept.length * this.#apart) this.#kept.push(this.#walker.save());
    }
  }
}

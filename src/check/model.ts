/** The model of a system: the transitions of all its nodes and its network. */
import type { NodeId, StateOf, TimerOf, Vocabulary } from "../core/protocol.ts";
import { Histories } from "../trace/histories.ts";
import { endings } from "./failed-move.ts";
import { LocalSteps, type Outcome, type OwnStep } from "./local-steps.ts";
import { Budgets, type Counted, faultKinds, type ModelOptions } from "./model-options.ts";
import { type Move, ownMove } from "./move.ts";
import { type Network, network } from "./network.ts";
import { Representatives } from "./representative.ts";
import { type TimeBounds, type TimedNetwork, timedNetwork } from "./timed-network.ts";

export type { CrashNotificationTime, ModelOptions, TimerMode } from "./model-options.ts";
export type { Move } from "./move.ts";

/** Called with a move and its outcome. During the call, the successor is in `model.next`. Return true to stop. */
export type Visitor<V extends Vocabulary> = (move: () => Move<V>, outcome: Outcome<V> | null) => boolean;

/** Enumerates the moves that are possible in a global state. */
export class Model<V extends Vocabulary> {
  /**
   * The length of a tuple, which contains the local states of all nodes, the contents in flight to them, and the
   * budgets.
   */
  readonly width: number;
  /** The successor that is being visited. */
  readonly next: Int32Array;
  /** If the successor is the outcome of a step, the content that was still in flight to the node. */
  left = 0;
  readonly histories: Histories<V>;
  readonly steps: LocalSteps<V>;
  readonly network: Network;
  /** The network, if time is modeled. Otherwise null. */
  readonly #time: TimedNetwork | null;
  /**
   * The units that pass before the moves that are being visited. Crashes and losses are visited only before time
   * passes: a later one could as well have happened earlier, because it only removes events.
   */
  #units = 0;
  /** Whether a bound in the options has cut off a run. */
  isCut = false;
  /** Whether moves whose handlers throw are omitted. If not, `FailedMove` is thrown. */
  leavesOutFailures = false;
  readonly #count: number;
  readonly #budgets: Budgets;
  readonly #maxInFlight: number;
  /**
   * The index in a tuple of the next node at which the round ends. A value of 0 means that no round is ending. Null
   * without rounds.
   */
  readonly #roundAt: number | null;
  /**
   * The index in a tuple of the number of remaining delays. The next index holds the node whose turn it is. Null
   * without a fixed delivery order.
   */
  readonly #delaysAt: number | null;
  readonly #representatives: Representatives<V> | null;
  /** Whether nodes are ever notified of crashes. */
  readonly #tells: boolean;
  /** Whether crashes can also happen within steps. */
  readonly #crashesWithinSteps: boolean;
  /**
   * Whether to visit successors that bounds exclude, and not to replace states with representatives. Set while
   * retracing paths.
   */
  #isPlain = false;
  /** Selects the moves to visit. Null: all. */
  #wants: ((move: Move<V>) => boolean) | null = null;
  /** Properties of local states that every transition needs. */
  readonly #alive: boolean[] = [];
  readonly #reachable: boolean[] = [];
  readonly #accepting: boolean[] = [];

  /**
   * @param maxOutcomes if a step has more outcomes, only this many are drawn. For searches that follow only one
   * outcome.
   */
  constructor(
    readonly options: ModelOptions<V>,
    maxOutcomes = Number.POSITIVE_INFINITY,
  ) {
    const {
      protocol,
      nodes,
      maxInFlight,
      asks = () => [],
      commands = () => [],
      crashNotification = () => null,
    } = options;
    this.#count = nodes.length;
    this.#budgets = new Budgets(options, 2 * this.#count);
    this.#maxInFlight = maxInFlight ?? Number.POSITIVE_INFINITY;
    const budgetsEnd = 2 * this.#count + this.#budgets.width;
    this.#roundAt = options.timers === "rounds" ? budgetsEnd : null;
    const roundEnd = this.#roundAt === null ? budgetsEnd : budgetsEnd + 1;
    this.#delaysAt = options.delays === undefined ? null : roundEnd;
    this.width = this.#delaysAt === null ? roundEnd : roundEnd + 2;
    this.next = new Int32Array(this.width);
    this.#time = options.timers === "timed" ? timedNetwork(options.network, options.time as TimeBounds) : null;
    this.network = this.#time ?? network(options.network);
    this.#tells = options.crashNotification !== undefined && this.#budgets.has("crashes");
    const keepsJournal = this.#budgets.has("recoveries") && options.journal !== "lost";
    this.#crashesWithinSteps = options.withinStep === true && this.#budgets.has("crashes");
    const told = { asks, commands, crashNotification };
    const kept = { keepsJournal, crashesWithinSteps: this.#crashesWithinSteps };
    this.histories = new Histories(options.properties ?? protocol.properties);
    const { histories } = this;
    this.steps = new LocalSteps({ protocol, nodes, network: this.network, histories, maxOutcomes, ...kept, ...told });
    const { counters = [], rounds = [] } = options;
    const { steps } = this;
    this.#representatives =
      counters.length + rounds.length === 0
        ? null
        : new Representatives({
            steps,
            network: this.network,
            nodes,
            counters,
            rounds,
            mayReturn: this.#budgets.has("recoveries"),
          });
  }

  initial(): Int32Array {
    const { nodes, begin } = this.options;
    const tuple = new Int32Array(this.width);
    for (const [i, node] of nodes.entries())
      tuple[i] = begin === "idle" ? this.steps.idle(node) : this.steps.fresh(node);
    tuple.set(this.#budgets.full, 2 * this.#count);
    if (this.#delaysAt !== null) tuple[this.#delaysAt] = this.options.delays ?? 0;
    return tuple;
  }

  /** The maximum values of those components of a tuple that follow the local states and contents. */
  get mostBeyond(): readonly number[] {
    const { full } = this.#budgets;
    const rounds = this.#roundAt === null ? [] : [this.#count];
    return [...full, ...rounds, ...(this.#delaysAt === null ? [] : [this.options.delays ?? 0, this.#count])];
  }

  /** Whether all nodes have begun, no message is in flight and no crash notification is due. */
  isQuiet(tuple: Int32Array): boolean {
    for (let i = this.#count; i < 2 * this.#count; i++) if (!this.#isEmpty(tuple[i] as number)) return false;
    return !this.#isBeginning(tuple) && !this.#hasNotifications(tuple) && this.#turn(tuple) === null;
  }

  /**
   * Whether each node's steps depend only on its local state, the content in flight to it and whether anything is in
   * flight at all, and change only these and the contents in flight to other nodes. True once all nodes have begun and
   * no more faults can happen.
   */
  isLocal(tuple: Int32Array): boolean {
    const isPlain = this.#maxInFlight === Number.POSITIVE_INFINITY && this.#representatives === null;
    const isOrdered = this.#roundAt !== null || this.#delaysAt !== null;
    return isPlain && !isOrdered && this.#time === null && this.#budgets.areSpent(tuple) && !this.#isBeginning(tuple);
  }

  /** Whether faults can happen in any run. */
  get mayFail(): boolean {
    return faultKinds.some((kind) => this.#budgets.has(kind));
  }

  /** Whether nothing is in flight to a node: no messages and no crash notifications. */
  isUndisturbed(local: number, content: number): boolean {
    return this.#isEmpty(content) && (!this.#tells || this.steps.locals.valueOf(local).notifications.length === 0);
  }

  /** Whether no message is in flight. A timed content also holds timers. */
  #isEmpty(content: number): boolean {
    return content === 0 || (this.#time !== null && this.network.size(content) === 0);
  }

  /** Returns the content in flight to a node in a given local state after another envelope has been sent to it. */
  contentAfter(local: number, content: number, envelope: number): number {
    // Messages to a crashed node are lost.
    return this.#isReachable(local) ? this.network.add(content, envelope) : content;
  }

  isAlive(local: number): boolean {
    this.#alive[local] ??= this.steps.locals.valueOf(local).status === "up";
    return this.#alive[local];
  }

  /** Calls `visit` with every successor, or its representative, until `visit` returns true. */
  expand(tuple: Int32Array, visit: Visitor<V>): boolean {
    if (this.#isBeginning(tuple)) {
      const first = tuple.findIndex((local) => this.#statusOf(local) === "new");
      return this.#start(tuple, first, visit);
    }
    const turn = this.#turn(tuple);
    if (turn !== null) return this.#endRound(tuple, turn, visit);
    if (this.#time !== null) return this.#expandInTime(tuple, this.#time, visit);
    const timersMay = this.timersMay(() => this.isQuiet(tuple));
    for (let i = 0; i < this.#count; i++) if (this.#expandNode(tuple, i, timersMay, visit)) return true;
    return false;
  }

  /** Visits all moves at all times until the first message or timer that is due must take effect. */
  #expandInTime(tuple: Int32Array, time: TimedNetwork, visit: Visitor<V>): boolean {
    const deadline = this.#deadline(tuple);
    const units = Number.isFinite(deadline) ? deadline : 0; // If nothing is due, time makes no difference.
    const now = tuple.slice();
    try {
      for (this.#units = 0; this.#units <= units; this.#units++) {
        for (let i = this.#count; i < 2 * this.#count; i++) now[i] = time.later(tuple[i] as number, this.#units);
        for (let i = 0; i < this.#count; i++) if (this.#expandNode(now, i, true, visit)) return true;
      }
      return false;
    } finally {
      this.#units = 0;
    }
  }

  /** Returns the units that can pass before something must happen. Infinity if nothing is due. */
  #deadline(tuple: Int32Array): number {
    let units = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.#count && this.#time !== null; i++) {
      const local = tuple[i] as number;
      if (this.isAlive(local))
        units = Math.min(units, this.#time.deadline(tuple[this.#count + i] as number, this.#accepts(local)));
    }
    return units;
  }

  /** Whether time is modeled and something will happen when enough of it has passed. */
  isAwaitingTime(tuple: Int32Array): boolean {
    return Number.isFinite(this.#deadline(tuple));
  }

  /** Like `expand`, but only for the steps of node `i`. All nodes must have begun. */
  expandNode(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    const timersMay = this.timersMay(() => this.isQuiet(tuple));
    return this.#expandNode(tuple, i, timersMay, visit);
  }

  /** Whether an armed timer can fire in a state. `isQuiet` returns whether no message is in flight. */
  timersMay(isQuiet: () => boolean): boolean {
    const { timers } = this.options;
    return timers === "free" || timers === "timed" || (timers !== "never" && isQuiet());
  }

  /** Returns the next node whose timers fire at the end of the current round. Null if no round is ending. */
  #turn(tuple: Int32Array): number | null {
    const from = this.#roundAt === null ? 0 : (tuple[this.#roundAt] as number);
    return from === 0 ? null : this.#firstArmed(tuple, from);
  }

  #firstArmed(tuple: Int32Array, from: number): number | null {
    for (let i = from; i < this.#count; i++) {
      const { status, timers } = this.steps.locals.valueOf(tuple[i] as number);
      if (status === "up" && timers.length > 0) return i;
    }
    return null;
  }

  /**
   * Visits the timeouts of the next node at which the round ends, and crashes. Messages are delivered only after the
   * round has ended at all nodes.
   */
  #endRound(tuple: Int32Array, turn: number, visit: Visitor<V>): boolean {
    if (this.#ownSteps(tuple, turn, true, visit, ({ stimulus }) => stimulus.kind === "timeout")) return true;
    for (let i = 0; i < this.#count; i++)
      if (this.isAlive(tuple[i] as number) && this.#crash(tuple, i, visit)) return true;
    return false;
  }

  #expandNode(tuple: Int32Array, i: number, timersMay: boolean, visit: Visitor<V>): boolean {
    if (this.#time?.isPaused(tuple[this.#count + i] as number) === true) return this.#expandPaused(tuple, i, visit);
    if (this.#time !== null && this.isAlive(tuple[i] as number) && this.#pause(tuple, i, "pause", visit)) return true;
    const ended = this.isAlive(tuple[i] as number)
      ? this.#ownSteps(tuple, i, timersMay, visit) || this.#deliveries(tuple, i, visit) || this.#crash(tuple, i, visit)
      : this.#start(tuple, i, visit);
    return ended || this.#losses(tuple, i, visit);
  }

  /** Visits the moves of a paused node, which takes no steps. */
  #expandPaused(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    return this.#pause(tuple, i, "resume", visit) || this.#crash(tuple, i, visit) || this.#losses(tuple, i, visit);
  }

  #pause(tuple: Int32Array, i: number, kind: "pause" | "resume", visit: Visitor<V>): boolean {
    const move = (): Move<V> => this.#inTime({ kind, node: this.#node(i) });
    if (kind === "pause" && !this.#budgets.mayHappen(tuple, "pauses")) return false;
    if (!this.#isWanted(move)) return false;
    const at = this.#count + i;
    const { paused, resumed } = this.#time as TimedNetwork;
    this.next.set(tuple);
    this.next[at] = kind === "pause" ? paused(tuple[at] as number) : resumed(tuple[at] as number);
    if (kind === "pause") this.#budgets.spend(this.next, "pauses");
    return this.#show(move, null, visit);
  }

  /** Adds the time that passes before the move. */
  #inTime(move: Move<V>): Move<V> {
    return this.#units === 0 ? move : { ...move, afterMs: this.#units * (this.#time as TimedNetwork).unitMs };
  }

  /** Like `expand`, but does not use representatives, and includes successors that bounds cut off. */
  expandPlainly(tuple: Int32Array, visit: Visitor<V>): boolean {
    const { leavesOutFailures } = this;
    this.#isPlain = true;
    this.leavesOutFailures = true; // Handlers of moves that bounds cut off have not run yet.
    try {
      return this.expand(tuple, visit);
    } finally {
      this.#isPlain = false;
      this.leavesOutFailures = leavesOutFailures;
    }
  }

  /** Like `expandPlainly`, but only for the selected moves. The handlers of other moves do not run. */
  expandWanted(tuple: Int32Array, wants: (move: Move<V>) => boolean, visit: Visitor<V>): boolean {
    this.#wants = wants;
    try {
      return this.expand(tuple, visit);
    } finally {
      this.#wants = null;
    }
  }

  #isWanted(move: () => Move<V>): boolean {
    return this.#wants === null || this.#wants(move());
  }

  /** Replaces a state with its representative. */
  represent(tuple: Int32Array): void {
    this.#representatives?.represent(tuple);
  }

  /** Whether a node has yet to begin. Nodes that begin together do so in the order of `nodes`. */
  #isBeginning(tuple: Int32Array): boolean {
    return this.options.begin === "together" && this.#statusOf(tuple[this.#count - 1] as number) === "new";
  }

  #statusOf(local: number): "new" | "up" | "crashed" {
    return this.steps.locals.valueOf(local).status;
  }

  #hasNotifications(tuple: Int32Array): boolean {
    if (!this.#tells) return false;
    for (let i = 0; i < this.#count; i++)
      if (this.steps.locals.valueOf(tuple[i] as number).notifications.length > 0) return true;
    return false;
  }

  #ownSteps(
    tuple: Int32Array,
    i: number,
    timersMay: boolean,
    visit: Visitor<V>,
    isWanted: (step: OwnStep<V>) => boolean = () => true,
  ): boolean {
    const content = tuple[this.#count + i] as number;
    for (const step of this.steps.own(tuple[i] as number)) {
      if (!isWanted(step)) continue;
      if (step.stimulus.kind === "timeout" && !this.#mayFire(tuple, i, step.stimulus.timer, timersMay)) continue;
      if (step.crashed !== null && !this.#mayBeTold(step.crashed, content)) continue;
      const counted = step.stimulus.kind === "timeout" ? "timeouts" : null;
      const move = (): Move<V> => this.#inTime(ownMove(step, this.#node(i)));
      if (this.#step(tuple, i, content, () => step.outcomes, move, visit, counted)) return true;
    }
    return false;
  }

  #mayFire(tuple: Int32Array, i: number, timer: TimerOf<V>, timersMay: boolean): boolean {
    if (!timersMay || !this.#isFirst(tuple, i)) return false;
    const isDue = this.#time === null || this.#time.canFire(tuple[this.#count + i] as number, timer);
    return isDue && this.#mayTimeOut(tuple);
  }

  /** Whether, if timers fire in rounds, this is the next node at which the round ends. */
  #isFirst(tuple: Int32Array, i: number): boolean {
    return this.#roundAt === null || (this.#turn(tuple) ?? this.#firstArmed(tuple, 0)) === i;
  }

  /** Whether a node that has this content in flight to it can be notified of a crash. */
  #mayBeTold(crashed: NodeId, content: number): boolean {
    return (
      this.options.crashNotifications !== "last" ||
      !this.network.envelopes(content).some(({ from }) => from === crashed)
    );
  }

  #mayTimeOut(tuple: Int32Array): boolean {
    if (this.#isPlain || this.#budgets.mayHappen(tuple, "timeouts")) return true;
    this.isCut = true;
    return false;
  }

  #deliveries(before: Int32Array, i: number, visit: Visitor<V>): boolean {
    const local = before[i] as number;
    if (!this.#accepts(local)) return false;
    const content = before[this.#count + i] as number;
    const tuple = content === 0 ? null : this.#atTurnOf(before, i);
    if (tuple === null) return false;
    const mayRepeat = this.#budgets.mayHappen(tuple, "duplications");
    for (const { envelope, rest } of this.network.deliveries(content)) {
      const received = (): Move<V> => this.#envelopeMove("receive", i, envelope);
      const outcomes = (): readonly Outcome<V>[] => this.steps.receive(local, envelope);
      if (this.#step(tuple, i, rest, outcomes, received, visit)) return true;
      const repeated = (): Move<V> => this.#envelopeMove("duplicate", i, envelope);
      if (!mayRepeat || !this.#isWanted(repeated)) continue;
      const ways = endings(outcomes, repeated, this.leavesOutFailures);
      if (this.#outcomes(tuple, i, content, ways, repeated, visit, "duplications")) return true;
    }
    return false;
  }

  /**
   * Returns the state with the turn passed to node `i`, which has messages in flight. Null if that would exceed the
   * remaining delays.
   */
  #atTurnOf(tuple: Int32Array, i: number): Int32Array | null {
    const at = this.#delaysAt;
    if (at === null) return tuple;
    let left = tuple[at] as number;
    for (let k = tuple[at + 1] as number; k !== i; k = (k + 1) % this.#count) if (this.#mayTake(tuple, k)) left -= 1;
    if (left < 0) return null;
    const turned = tuple.slice();
    turned[at] = left;
    turned[at + 1] = i;
    return turned;
  }

  #mayTake(tuple: Int32Array, k: number): boolean {
    const local = tuple[k] as number;
    return tuple[this.#count + k] !== 0 && this.isAlive(local) && this.#accepts(local);
  }

  /** Visits the start of node `i`. The first start uses no budget. A start after a crash is a recovery. */
  #start(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    const local = tuple[i] as number;
    const isFirst = this.#statusOf(local) === "new";
    if (!isFirst && !this.#budgets.mayHappen(tuple, "recoveries")) return false;
    const move = (): Move<V> => this.#inTime({ kind: "start", node: this.#node(i) });
    const content = tuple[this.#count + i] as number;
    const outcomes = (): readonly Outcome<V>[] => this.steps.start(local);
    if (isFirst) return this.#step(tuple, i, content, outcomes, move, visit);
    return this.#step(this.#withoutNotifications(tuple, i), i, content, outcomes, move, visit, "recoveries");
  }

  /** Explores a crash of node `i`, which also discards the messages in flight to it. */
  #crash(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    const move = (): Move<V> => ({ kind: "crash", node: this.#node(i) });
    if (this.#units > 0 || !this.#budgets.mayHappen(tuple, "crashes") || !this.#isWanted(move)) return false;
    this.next.set(tuple);
    this.#strike(i, this.steps.crashed(tuple[i] as number));
    return this.#show(move, null, visit);
  }

  /** Crashes node `i` of the successor. @param local its local state after the crash */
  #strike(i: number, local: number): void {
    const { next } = this;
    next[i] = local;
    next[this.#count + i] = 0;
    if (this.#tells) {
      for (let k = 0; k < this.#count; k++)
        if (this.isAlive(next[k] as number)) next[k] = this.steps.notified(next[k] as number, this.#node(i));
    }
    this.#budgets.spend(next, "crashes");
  }

  /** Returns the state after node `i` recovers: nodes that were not notified of its crash will never be. */
  #withoutNotifications(tuple: Int32Array, i: number): Int32Array {
    if (!this.#tells) return tuple;
    const forgotten = tuple.slice();
    for (let k = 0; k < this.#count; k++) forgotten[k] = this.steps.withdrawn(tuple[k] as number, this.#node(i));
    return forgotten;
  }

  #losses(tuple: Int32Array, i: number, visit: Visitor<V>): boolean {
    if (this.#units > 0 || !this.#budgets.mayHappen(tuple, "losses")) return false;
    return this.network.heads(tuple[this.#count + i] as number).some(({ envelope, rest }) => {
      const move = (): Move<V> => this.#envelopeMove("lose", i, envelope);
      if (!this.#isWanted(move)) return false;
      this.next.set(tuple);
      this.next[this.#count + i] = rest;
      this.#budgets.spend(this.next, "losses");
      return this.#show(move, null, visit);
    });
  }

  /** Visits one step of node `i`, with `content` still in flight to it, and the same step with a crash within it. */
  #step(
    tuple: Int32Array,
    i: number,
    content: number,
    outcomes: () => readonly Outcome<V>[],
    move: () => Move<V>,
    visit: Visitor<V>,
    spent: Counted | null = null,
  ): boolean {
    if (this.#isWanted(move)) {
      const ways = endings(outcomes, move, this.leavesOutFailures);
      if (this.#outcomes(tuple, i, content, ways, move, visit, spent)) return true;
    }
    if (!this.#crashesWithinSteps || !this.#budgets.mayHappen(tuple, "crashes")) return false;
    const crashedWithin = (): Move<V> => ({ ...move(), crashesWithinStep: true });
    if (!this.#isWanted(crashedWithin)) return false;
    const ways = endings(outcomes, crashedWithin, this.leavesOutFailures);
    const ends = ways.flatMap((outcome) => outcome.crashedWithin);
    return this.#outcomes(tuple, i, content, ends, crashedWithin, visit, spent, true);
  }

  /** Visits the successor of every outcome. */
  #outcomes(
    tuple: Int32Array,
    i: number,
    content: number,
    outcomes: readonly Outcome<V>[],
    move: () => Move<V>,
    visit: Visitor<V>,
    spent: Counted | null = null,
    crashesWithinStep = false,
  ): boolean {
    const { next } = this;
    this.left = content;
    for (const outcome of outcomes) {
      for (let k = 0; k < this.width; k++) next[k] = tuple[k] as number;
      next[i] = outcome.local;
      next[this.#count + i] = this.#afterStep(i, content, outcome);
      for (const { to, envelope } of outcome.sends) {
        const at = this.#count + to;
        next[at] = this.contentAfter(next[to] as number, next[at] as number, envelope);
      }
      if (spent !== null) this.#budgets.spend(next, spent);
      if (spent === "timeouts" && this.#roundAt !== null)
        next[this.#roundAt] = this.#firstArmed(next, i + 1) === null ? 0 : i + 1;
      if (crashesWithinStep) {
        if (!this.#budgets.mayHappen(next, "crashes")) return false; // The shared fault budget is used up.
        this.#strike(i, outcome.local);
      }
      if (!this.#isCrowded(next) && this.#show(move, outcome, visit)) return true;
    }
    return false;
  }

  /** Returns the content of a node after a step, which may have armed and canceled timers. */
  #afterStep(i: number, content: number, { local, armed, fired }: Outcome<V>): number {
    if (this.#time === null) return content;
    return this.#time.stepped(content, this.#node(i), {
      fired,
      timers: this.steps.locals.valueOf(local).timers,
      armed,
    });
  }

  #show(move: () => Move<V>, outcome: Outcome<V> | null, visit: Visitor<V>): boolean {
    if (this.#representatives !== null && !this.#isPlain) this.#representatives.represent(this.next);
    return visit(move, outcome);
  }

  /** Whether more messages are in flight than the options allow. If so, records that a run was cut off. */
  #isCrowded(tuple: Int32Array): boolean {
    if (this.#isPlain || this.#maxInFlight === Number.POSITIVE_INFINITY) return false;
    let inFlight = 0;
    for (let i = this.#count; i < 2 * this.#count; i++) inFlight += this.network.size(tuple[i] as number);
    if (inFlight <= this.#maxInFlight) return false;
    this.isCut = true;
    return true;
  }

  /** Whether messages sent to a node in this state reach it, either now or once it has begun. */
  #isReachable(local: number): boolean {
    this.#reachable[local] ??=
      this.isAlive(local) || (this.options.begin === "together" && this.#statusOf(local) === "new");
    return this.#reachable[local];
  }

  #accepts(local: number): boolean {
    const { accepts } = this.options;
    if (accepts === undefined) return true;
    const { state, self } = this.steps.locals.valueOf(local);
    this.#accepting[local] ??= accepts(state as StateOf<V>, self);
    return this.#accepting[local];
  }

  #envelopeMove(kind: "receive" | "duplicate" | "lose", i: number, envelope: number): Move<V> {
    const { from, message } = this.network.envelopeOf(envelope);
    return this.#inTime({ kind, node: this.#node(i), from, message: this.steps.messages.valueOf(message) });
  }

  #node(i: number): NodeId {
    return this.options.nodes[i] as NodeId;
  }
}

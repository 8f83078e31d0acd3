/** One node of a replay. It takes the recorded steps again, and its effects are compared with the recording. */
import { compacted, slotFinder } from "../core/journal-slots.ts";
import { canonical, clone, equal } from "../core/plain.ts";
import type {
  CommandOf,
  Context,
  Duration,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  RequestId,
  Signatures,
  StateOf,
  TimerOf,
  Vocabulary,
} from "../core/protocol.ts";
import { random } from "../core/random.ts";
import { idealSignatures } from "../core/signatures.ts";
import { dispatch, type Stimulus } from "../core/step.ts";
import { requestFinder } from "../driver/requests.ts";
import { type MessageId, SIGNATURE, signatureName, type TraceEntry, WRONG_SIGNATURE } from "./entry.ts";
import type { NodeSnapshot } from "./snapshot.ts";

interface Armed {
  readonly at: number;
  readonly duration: Duration;
}

/** An effect of a handler, or a recorded effect. It contains copies, because the originals may change. */
type Deed<V extends Vocabulary> =
  | { readonly kind: "send"; readonly to: NodeId; readonly what: MessageOf<V> }
  | { readonly kind: "emit"; readonly to: null; readonly what: unknown }
  | { readonly kind: "reply"; readonly to: RequestId | undefined; readonly what: unknown };

type Sending<V extends Vocabulary> = Extract<Deed<V>, { kind: "send" }>;

/** Thrown when the replay can no longer follow a node. */
class Mismatch extends Error {}

/** A copy of a node's entire state. */
export interface SavedNode<V extends Vocabulary> {
  readonly status: ReplayedNode<V>["status"];
  readonly timers: readonly (readonly [TimerOf<V>, Armed])[];
  readonly state: StateOf<V> | null;
  readonly journal: readonly RecordOf<V>[];
  readonly isJournalKnown: boolean;
  readonly open: readonly RequestId[];
}

export class ReplayedNode<V extends Vocabulary> {
  readonly #given: {
    readonly hasRealSignatures: boolean;
    /** The fields of the node's initial state that differ from the usual one. */
    readonly differing: Readonly<Record<string, unknown>>;
  };
  /** The status of the node. `lost`: the node is running, but its state is unknown because entries are missing. */
  status: "new" | "up" | "down" | "lost" = "new";
  readonly timers = new Map<TimerOf<V>, Armed>();
  #state: StateOf<V> | null = null;
  #journal: RecordOf<V>[] = [];
  #isJournalKnown = true;
  readonly #peers: readonly NodeId[];
  readonly #ctx: Context<V>;
  readonly #requestIn: ((command: CommandOf<V>) => RequestId | null) | null;
  #now = 0;
  /** The effects of the current step that have not been compared yet. Null if effects are not compared. */
  #deeds: Deed<V>[] | null = [];
  #choices: RecordedStep<V>["choices"] = [];
  /** Whether choices may be missing because the recording ends during this step. */
  #isCut = false;
  /** Requests that the node has not yet answered. */
  readonly #open = new Set<RequestId>();

  constructor(
    readonly protocol: Protocol<V>,
    readonly id: NodeId,
    nodes: readonly NodeId[],
    given: {
      readonly hasRealSignatures: boolean;
      /** The fields of the node's initial state that differ from the usual one. */
      readonly differing: Readonly<Record<string, unknown>>;
    },
  ) {
    this.#given = given;
    this.#peers = nodes.filter((node) => node !== id);
    this.#ctx = this.#context();
    this.#requestIn = requestFinder(protocol);
  }

  get state(): StateOf<V> {
    return this.#state as StateOf<V>;
  }

  /**
   * Executes one step. Returns the messages that the node sent beyond those recorded, which is possible only at the end
   * of the recording, or a sentence that explains why the recording does not match this protocol.
   * @param isKnown whether the step has already been compared with the recording and matched
   */
  step(
    stimulus: Stimulus<V>,
    at: number,
    recorded: RecordedStep<V>,
    { isIdle, isKnown }: { readonly isIdle: boolean; readonly isKnown: boolean },
  ): readonly Sending<V>[] | string {
    this.#now = at;
    this.#deeds = isKnown && recorded.cut === null ? null : [];
    this.#choices = [...recorded.choices];
    this.#isCut = recorded.cut !== null && recorded.view === null; // A step's view is its last entry.
    try {
      const isBeginning = stimulus.kind === "start" && this.status === "new";
      if (stimulus.kind === "start") this.#boot();
      if (stimulus.kind === "timeout") this.#expire(stimulus.timer);
      const request = stimulus.kind === "command" ? (this.#requestIn?.(stimulus.command) ?? null) : null;
      if (request !== null) this.#open.add(request);
      if (!isIdle) dispatch(this.protocol, this.state, clone(stimulus), this.#ctx);
      const left = this.#deeds === null ? [] : this.#compare(recorded, this.#deeds);
      // As in a scenario, the differing fields are set after the start.
      if (isBeginning) mergeInto(this.state, this.#given.differing);
      return left;
    } catch (error) {
      return error instanceof Mismatch ? error.message : `the handlers reject it: ${(error as Error).message}`;
    }
  }

  /** Crashes the node. @param journal the records left in its journal */
  crash(journal: readonly RecordOf<V>[] = this.#journal): void {
    this.status = "down";
    this.#state = null;
    this.timers.clear();
    this.#journal = [...journal];
    this.#open.clear();
  }

  /**
   * Sets the journal that the node found. A crash may have lost trace entries even though their records are durable.
   */
  remember(journal: readonly RecordOf<V>[]): void {
    this.#journal = [...journal];
    this.#isJournalKnown = true;
  }

  /** Marks the node as lost: from this point on, some of its entries are missing. */
  lose(): void {
    this.status = "lost";
    this.#state = null;
    this.timers.clear();
    this.#isJournalKnown = Object.keys(this.protocol.replay ?? {}).length === 0;
  }

  /** Whether the node's state becomes known again when it starts. False if the contents of its journal are unknown. */
  get canStart(): boolean {
    return this.#isJournalKnown;
  }

  snapshot(now: number): NodeSnapshot<V> {
    return clone(this.standing(now));
  }

  /** Returns the node's snapshot. It is not a copy, so it changes with the node's next step. */
  standing(now: number): NodeSnapshot<V> {
    const timers = [...this.timers].map(([timer, armed]) => ({
      timer,
      remainingMs: this.#remaining(timer, armed, now),
    }));
    return { id: this.id, state: this.#state, journal: this.#journal, timers };
  }

  /**
   * Returns the time that remains on a timer. A duration drawn from a range is not recorded. It is drawn again, and is
   * longer than the time that has already passed.
   */
  #remaining(timer: TimerOf<V>, { at, duration }: Armed, now: number): number {
    if (typeof duration === "number") return Math.max(0, at + duration - now);
    const [min, max] = duration;
    const seed = [...`${this.id} ${timer} ${at}`].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), 7);
    return Math.max(0, random(seed).between(Math.max(min, now - at), Math.max(max, now - at)) - (now - at));
  }

  save(): SavedNode<V> {
    return {
      status: this.status,
      timers: [...this.timers],
      state: clone(this.#state),
      journal: [...this.#journal], // Records are immutable.
      isJournalKnown: this.#isJournalKnown,
      open: [...this.#open],
    };
  }

  restore({ status, timers, state, journal, isJournalKnown, open }: SavedNode<V>): void {
    this.status = status;
    this.timers.clear();
    for (const [timer, armed] of timers) this.timers.set(timer, armed);
    this.#state = clone(state);
    this.#journal = [...journal];
    this.#isJournalKnown = isJournalKnown;
    this.#open.clear();
    for (const request of open) this.#open.add(request);
  }

  #boot(): void {
    if (this.status === "up") throw new Mismatch("it starts, but it is already running");
    const state = this.protocol.init(this.id, this.#peers);
    for (const record of clone(this.#journal)) dispatch(this.protocol, state, { kind: "replay", record }, this.#ctx);
    this.#state = state;
    this.status = "up";
  }

  #expire(timer: TimerOf<V>): void {
    if (!this.timers.delete(timer)) throw new Mismatch(`timer ${timer} expires, but it was not set`);
  }

  #compare({ sends, events, replies, view, cut }: RecordedStep<V>, deeds: readonly Deed<V>[]): Sending<V>[] {
    const of = <K extends Deed<V>["kind"]>(kind: K) =>
      deeds.filter((deed): deed is Extract<Deed<V>, { kind: K }> => deed.kind === kind);
    const left = differ(
      of("send"),
      sends.map(({ to, message }): Sending<V> => ({ kind: "send", to, what: message })),
      cut !== null,
    );
    differ(
      of("emit"),
      events.map(({ event }) => ({ kind: "emit", to: null, what: event })),
      cut !== null,
    );
    differ(
      of("reply"),
      replies.map(({ event, request }) => ({ kind: "reply", to: request, what: event })),
      cut !== null,
    );
    if (this.#choices.length > 0) throw new Mismatch(`the handlers do not choose ${this.#choices[0]?.label}`);
    if (view?.state !== undefined && !isSame(view.state, this.#state))
      throw new Mismatch(`its state is ${short(plain(this.#state))}, the recording has ${short(view.state)}`);
    return left;
  }

  /** Returns the signatures. If the network used real signatures, the recorded results are used. */
  #signatures(): Signatures {
    const ideal = idealSignatures(this.id);
    const taken = (label: string): boolean => this.#choices[0]?.label === label;
    return {
      sign: (signedText) => (taken(SIGNATURE) ? String(this.#choices.shift()?.option) : ideal.sign(signedText)),
      isSigned: (by, signedText, signature) => {
        if (!this.#given.hasRealSignatures) return ideal.isSigned(by, signedText, signature);
        const [next] = this.#choices;
        const isWrong = taken(WRONG_SIGNATURE) && next?.option === signatureName(by, signedText, signature);
        if (isWrong) this.#choices.shift();
        return !isWrong;
      },
    };
  }

  #context(): Context<V> {
    const send = (to: NodeId, message: MessageOf<V>): void =>
      void this.#deeds?.push({ kind: "send", to, what: clone(message) });
    return {
      self: this.id,
      peers: this.#peers,
      send,
      broadcast: (message) => {
        for (const peer of this.#peers) send(peer, message);
      },
      setTimer: (timer, duration) => void this.timers.set(timer, { at: this.#now, duration }),
      cancelTimer: (timer) => void this.timers.delete(timer),
      persist: (record) => void this.#journal.push(clone(record)),
      compact: (records) => {
        this.#journal = compacted(this.#journal, clone(records), slotFinder(this.protocol));
      },
      emit: (event) => void this.#deeds?.push({ kind: "emit", to: null, what: clone(event) }),
      reply: (request, reply) => {
        if (!this.#open.delete(request)) return; // No caller is waiting for this reply.
        this.#deeds?.push({ kind: "reply", to: request, what: clone(reply) });
      },
      signatures: this.#signatures(),
      choose: (label, options) => {
        const taken = this.#choices.shift();
        const [first] = options;
        if (taken === undefined && this.#isCut && first !== undefined) return first; // Any option is possible.
        if (taken === undefined) throw new Mismatch(`the handlers choose ${label}, the recording does not`);
        const option = options.find((candidate) => isSame(candidate, taken.option));
        if (taken.label !== label || option === undefined)
          throw new Mismatch(
            `the handlers choose ${label} among ${short(options)}, the recording has ${taken.label}: ${short(taken.option)}`,
          );
        return option;
      },
    };
  }
}

/** Returns the effects beyond those recorded, which are allowed only at the end of the recording. */
function differ<V extends Vocabulary, D extends Deed<V>>(
  done: readonly D[],
  recorded: readonly Deed<V>[],
  isCut: boolean,
): D[] {
  for (const [at, deed] of recorded.entries()) {
    const own = done[at];
    if (own === undefined || own.to !== deed.to || !isSame(own.what, deed.what))
      throw new Mismatch(
        `the handlers ${own === undefined ? "stop there" : inWords(own)}, the recording has ${inWords(deed)}`,
      );
  }
  const more = done.slice(recorded.length);
  const [first] = more;
  if (first !== undefined && !isCut) throw new Mismatch(`the handlers ${inWords(first)}, the recording does not`);
  return more;
}

function inWords<V extends Vocabulary>({ kind, to, what }: Deed<V>): string {
  const said = canonical(plain(what));
  if (kind === "send") return `send ${said} to ${to}`;
  return kind === "emit" ? `say ${said}` : `reply ${said} to request ${to}`;
}

/** Whether two values are equal once converted to JSON. Nearly all pairs are equal even without the conversion. */
const isSame = (a: unknown, b: unknown): boolean => equal(a, b) || equal(plain(a), plain(b));
/** Returns the value after a round trip through JSON. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));
const short = (value: unknown): string => {
  const text = JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
};

type EntryOf<V extends Vocabulary, K extends TraceEntry["kind"]> = Extract<TraceEntry<V>, { kind: K }>;

/** The recorded effects of one step, not including its stimulus. */
export interface RecordedStep<V extends Vocabulary> {
  readonly sends: EntryOf<V, "send">[];
  readonly events: EntryOf<V, "event">[];
  readonly replies: EntryOf<V, "event">[];
  readonly choices: EntryOf<V, "choice">[];
  /** The node's state after the step, if it was recorded. */
  view: EntryOf<V, "view"> | null;
  /** Why the entries of the step may be incomplete. Null if they are complete. */
  cut: "crash" | "end" | null;
}

/** The steps in a recording and the fates of its messages. */
export interface Recording<V extends Vocabulary> {
  /** The steps, keyed by the index of their stimulus. */
  readonly steps: ReadonlyMap<number, RecordedStep<V>>;
  /**
   * How often each message was received or lost. The next two fields contain the messages whose send or receipt was
   * recorded.
   */
  readonly ends: ReadonlyMap<MessageId, number>;
  readonly sent: ReadonlySet<MessageId>;
  readonly received: ReadonlySet<MessageId>;
}

/** Groups a recording's entries into steps. */
export function recordingOf<V extends Vocabulary>(entries: readonly TraceEntry<V>[]): Recording<V> {
  const steps = new Map<number, RecordedStep<V>>();
  const open = new Map<number, RecordedStep<V>>();
  const ends = new Map<MessageId, number>();
  const [sent, received] = [new Set<MessageId>(), new Set<MessageId>()];
  for (const [index, entry] of entries.entries()) {
    const { node } = entry;
    if (entry.kind === "receive") received.add(entry.id);
    if (entry.kind === "receive" || entry.kind === "lost") ends.set(entry.id, (ends.get(entry.id) ?? 0) + 1);
    if (entry.kind === "send") sent.add(entry.id);
    if (stimulusOf(entry) !== null) {
      const step: RecordedStep<V> = { sends: [], events: [], replies: [], choices: [], view: null, cut: "end" };
      const before = open.get(node);
      if (before !== undefined) before.cut = null;
      steps.set(index, step);
      open.set(node, step);
      continue;
    }
    const step = open.get(node);
    if (step !== undefined) takeInto(step, entry, () => open.delete(node));
  }
  return { steps, ends, sent, received };
}

function takeInto<V extends Vocabulary>(step: RecordedStep<V>, entry: TraceEntry<V>, close: () => void): void {
  switch (entry.kind) {
    case "send":
      return void step.sends.push(entry);
    case "event":
      return void (entry.request === undefined ? step.events : step.replies).push(entry);
    case "choice":
      return void step.choices.push(entry);
    case "view":
      step.view = entry;
      return;
    case "crash":
    case "gap":
      step.cut = "crash";
      return close();
    default:
      return;
  }
}

/** Returns the stimulus that an entry records. Null for an entry that does not run a handler. */
export function stimulusOf<V extends Vocabulary>(entry: TraceEntry<V>): Stimulus<V> | null {
  switch (entry.kind) {
    case "start":
      return { kind: "start" };
    case "receive":
      return { kind: "receive", from: entry.from, message: entry.message };
    case "timeout":
      return { kind: "timeout", timer: entry.timer };
    case "command":
      return { kind: "command", command: entry.command };
    default:
      return null;
  }
}

/**
 * Merges objects recursively and replaces all other values. Every key becomes an own property of the state, because
 * files can contain any name.
 */
export function mergeInto(state: object, differing: Readonly<Record<string, unknown>>): void {
  const target = state as Record<string, unknown>;
  for (const [field, value] of Object.entries(differing)) {
    const known = Object.hasOwn(target, field) ? target[field] : undefined;
    if (isObject(value) && isObject(known)) mergeInto(known, value);
    // Assigning to "__proto__" would change the prototype of the state.
    else
      Object.defineProperty(target, field, {
        value: clone(value),
        configurable: true,
        enumerable: true,
        writable: true,
      });
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

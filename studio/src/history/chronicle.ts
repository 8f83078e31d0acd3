/**
 * The page's memory of the last minute: messages with both ends, marks, and the life of every process. Entries of different
 * nodes may arrive late, so a receive may arrive before its send.
 */
import type { ClusterPicture, NetworkPeriod } from "../../../src/cluster/feed.ts";
import type { NodeId, Tagged } from "../../../src/core/protocol.ts";
import type { Spans } from "../../../src/protocols/presentation.ts";
import type { LossReason, MessageId, TraceEntry } from "../../../src/trace/entry.ts";
import { deliveredId, type Name, nameOf, nameOfWord } from "../../../src/trace/log.ts";
import { type Message as DrawnMessage, momentOf } from "../diagram/picture.ts";
import { Chatter, type Turn } from "./chatter.ts";
import { StepCounts } from "./clocks.ts";
import { Life } from "./life.ts";
import { hasSentence, isAside } from "./phrase-book.ts";

export interface Message extends DrawnMessage {
  /** Null while only the receive is known. */
  sentAt: number | null;
  receivedAt: number | null;
  /** The step of the node at each end. Null as above. */
  sentStep: number | null;
  receivedStep: number | null;
  loss: { readonly at: number; readonly node: NodeId; readonly why: LossReason } | null;
}

/** Something that happened at one node alone. Starts and crashes are in the node's `Life`. */
export interface Mark {
  readonly key: number;
  readonly at: number;
  readonly node: NodeId;
  readonly kind: "timeout" | "command" | "event" | "delivery";
  readonly name: Name;
  readonly content: Tagged | null;
}

/** Older entries are dropped, in milliseconds. */
export const KEPT_MS = 66_000;

/** Upper bounds at any rate. Other messages are kept in preference to chatter. */
const MAX_MESSAGES = 6_000;
const MAX_CHATTER = 14_000;
const MAX_MARKS = 4_000;

/** Types with a lower rate, in messages per second over all nodes, cannot become chatter. */
const LEAST_MESSAGES = 4;
const LEAST_TIMEOUTS = 1;
const LEAST_EVENTS = 4;
/** Failure detectors are chatter by nature. Only their findings are shown. */
const BORN_CHATTY = ["detector"];

export class Chronicle {
  /** In order of arrival, which is nearly the order of time. */
  messages: Message[] = [];
  chatter: Message[] = [];
  marks: Mark[] = [];
  /** Network conditions, past and current, in order of time. */
  networks: readonly NetworkPeriod[];
  readonly lives = new Map<NodeId, Life>();
  readonly chatty = new Chatter(LEAST_MESSAGES, BORN_CHATTY);
  /** Pacing timers, and the events of every renewal. */
  readonly chattyMarks = {
    timeout: new Chatter(LEAST_TIMEOUTS, BORN_CHATTY),
    event: new Chatter(LEAST_EVENTS),
  };
  /** Called when a timer or event becomes or stops being chatter, so that the log can be updated too. */
  onTurn: (kind: "timeout" | "event", turn: Turn) => void = () => {};

  readonly #byId = new Map<MessageId, Message>();
  readonly #steps = new StepCounts();
  readonly #spans: Spans;
  #marksMade = 0;

  /** @param networks earlier network conditions */
  constructor(
    cluster: ClusterPicture,
    entries: readonly TraceEntry[],
    networks: readonly NetworkPeriod[] = [periodOf(cluster)],
  ) {
    this.networks = networks;
    this.#spans = cluster.spans;
    for (const node of cluster.nodes) this.lives.set(node.id, new Life(node.id, cluster.spans));
    this.add(entries);
    for (const node of cluster.nodes) this.#life(node.id).supposeBefore(node);
    this.forget(cluster.now - KEPT_MS);
  }

  add(entries: readonly TraceEntry[]): void {
    for (const entry of entries) this.#take(entry);
  }

  /** Records the differences between two states of the supervisor: ended processes, and the network. */
  observe(cluster: ClusterPicture, before: ClusterPicture): void {
    if (cluster.networkSince !== before.networkSince) this.networks = [...this.networks, periodOf(cluster)];
    for (const node of cluster.nodes) {
      const earlier = before.nodes.find((each) => each.id === node.id);
      if (earlier?.process !== node.process && node.process === "exited") this.#life(node.id).crashed(cluster.now);
    }
  }

  forget(before: number): void {
    this.messages = this.#keep(this.messages, before, MAX_MESSAGES);
    this.chatter = this.#keep(this.chatter, before, MAX_CHATTER);
    const keptMarks = this.marks.findIndex((mark) => mark.at >= before);
    const firstMark = keptMarks === -1 ? this.marks.length : keptMarks;
    this.marks = this.marks.slice(Math.max(firstMark, this.marks.length - MAX_MARKS));
    this.networks = this.networks.filter((_, index) => (this.networks[index + 1]?.since ?? Infinity) > before);
    for (const life of this.lives.values()) life.forget(before);
  }

  find(id: MessageId): Message | undefined {
    return this.#byId.get(id);
  }

  /** The earliest moment that is known. */
  get begin(): number {
    const first = this.chatter[0] ?? this.messages[0];
    return Math.min(first === undefined ? Infinity : momentOf(first), this.marks[0]?.at ?? Infinity);
  }

  #take(entry: TraceEntry): void {
    const step = this.#steps.take(entry);
    switch (entry.kind) {
      case "start":
        return this.#life(entry.node).started(entry.at);
      case "crash":
        return this.#life(entry.node).crashed(entry.at);
      case "view":
        return this.#life(entry.node).viewed(entry.at, entry.view);
      case "send": {
        const message = this.#message(entry, entry.node, entry.to);
        message.sentAt = entry.at;
        message.sentStep = step;
        return;
      }
      case "receive": {
        const message = this.#message(entry, entry.from, entry.node);
        message.receivedAt = entry.at;
        message.receivedStep = step;
        return;
      }
      case "lost": {
        const message = this.#byId.get(entry.id);
        if (message !== undefined) message.loss = { at: entry.at, node: entry.node, why: entry.why };
        return;
      }
      case "timeout":
        return this.#mark("timeout", entry, nameOfWord(entry.timer), null);
      case "command":
        return this.#mark("command", entry, nameOf(entry.command), entry.command);
      case "event":
        if (isAside(entry.event)) return;
        return this.#mark(
          deliveredId(entry.event) === null ? "event" : "delivery",
          entry,
          nameOf(entry.event),
          entry.event,
        );
      case "gap":
        return; // In the event log. Nothing can be drawn for missing entries.
      case "pause":
        return this.#life(entry.node).paused(entry.at);
      case "resume":
        return this.#life(entry.node).resumed(entry.at);
      case "fault":
        return; // The feed reports faults on links itself.
      case "choice":
        return; // Visible in its consequences.
    }
  }

  #message(entry: TraceEntry & { kind: "send" | "receive" }, from: NodeId, to: NodeId): Message {
    const known = this.#byId.get(entry.id);
    if (known !== undefined) return known;
    const name = nameOf(entry.message);
    const message: Message = {
      id: entry.id,
      name,
      from,
      to,
      content: entry.message,
      sentAt: null,
      receivedAt: null,
      sentStep: null,
      receivedStep: null,
      loss: null,
    };
    this.#byId.set(entry.id, message);
    for (const turn of this.chatty.hear(name, entry.at)) this.#turn(turn);
    (this.chatty.has(name.full, entry.at) ? this.chatter : this.messages).push(message);
    return message;
  }

  #mark(kind: Mark["kind"], { at, node }: TraceEntry, name: Name, content: Tagged | null): void {
    if (kind === "timeout" || (kind === "event" && content !== null && !hasSentence(content))) {
      const chatter = this.chattyMarks[kind];
      for (const turn of chatter.hear(name, at)) this.#turnMarks(kind, turn);
      if (chatter.has(name.full, at)) return;
    }
    this.marks.push({ key: this.#marksMade++, at, node, kind, name, content });
  }

  /** A type became chatter, or stopped being chatter: its messages since then move to the other list. */
  #turn({ full, since, isChatter }: Turn): void {
    const moves = (message: Message) => message.name.full === full && momentOf(message) >= since;
    const [from, to] = isChatter ? [this.messages, this.chatter] : [this.chatter, this.messages];
    const moved = [...to, ...from.filter(moves)].sort((a, b) => momentOf(a) - momentOf(b));
    const left = from.filter((message) => !moves(message));
    [this.messages, this.chatter] = isChatter ? [left, moved] : [moved, left];
  }

  /** Pacing timers and events of every renewal get no marks. */
  #turnMarks(kind: "timeout" | "event", turn: Turn): void {
    const { full, since, isChatter } = turn;
    if (isChatter)
      this.marks = this.marks.filter((mark) => mark.kind !== kind || mark.name.full !== full || mark.at < since);
    this.onTurn(kind, turn);
  }

  #life(node: NodeId): Life {
    let life = this.lives.get(node);
    if (life === undefined) {
      life = new Life(node, this.#spans);
      this.lives.set(node, life);
    }
    return life;
  }

  #keep(messages: Message[], before: number, max: number): Message[] {
    const fresh = messages.findIndex((message) => momentOf(message) >= before);
    const first = Math.max(fresh === -1 ? messages.length : fresh, messages.length - max);
    if (first === 0) return messages;
    for (const message of messages.slice(0, first)) this.#byId.delete(message.id);
    return messages.slice(first);
  }
}

function periodOf({ network, networkSince }: ClusterPicture): NetworkPeriod {
  return { since: networkSince, network };
}

/**
 * The page's memory of the last minute: messages with both of their ends, marks, and the life of every process. Entries
 * from some nodes may arrive late, so a receipt may arrive before its send.
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
  /** The send time. Null if only the receipt is known. */
  sentAt: number | null;
  receivedAt: number | null;
  /** The nodes' steps at the two ends. Null while they are unknown. */
  sentStep: number | null;
  receivedStep: number | null;
  loss: { readonly at: number; readonly node: NodeId; readonly why: LossReason } | null;
}

/** An event at a single node. Starts and crashes are part of the node's `Life`. */
export interface Mark {
  readonly key: number;
  readonly at: number;
  readonly node: NodeId;
  readonly kind: "timeout" | "command" | "event" | "delivery";
  readonly name: Name;
  readonly content: Tagged | null;
}

/** How long entries are kept, in milliseconds. */
export const KEPT_MS = 66_000;

/** The maximum numbers of items to keep. Chatter has its own limit, so that it does not displace other messages. */
const MAX_MESSAGES = 6_000;
const MAX_CHATTER = 14_000;
const MAX_MARKS = 4_000;

/** The minimum rate for chatter: messages per second across all nodes. */
const LEAST_MESSAGES = 4;
const LEAST_TIMEOUTS = 1;
const LEAST_EVENTS = 4;
/** Parts whose messages are always chatter. For failure detectors, only the events are shown. */
const BORN_CHATTY = ["detector"];

export class Chronicle {
  /** The messages in the order they arrived, which is nearly chronological. */
  messages: Message[] = [];
  chatter: Message[] = [];
  marks: Mark[] = [];
  /** Past and current network conditions, in chronological order. */
  networks: readonly NetworkPeriod[];
  readonly lives = new Map<NodeId, Life>();
  readonly chatty = new Chatter(LEAST_MESSAGES, BORN_CHATTY);
  /** Chatter among the marks: periodic timers, and the events that accompany every renewal. */
  readonly chattyMarks = {
    timeout: new Chatter(LEAST_TIMEOUTS, BORN_CHATTY),
    event: new Chatter(LEAST_EVENTS),
  };
  /** Called when a timer or event becomes chatter or stops being chatter, so that the log can be updated too. */
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

  /** Records the differences between two states of the supervisor: processes that ended, and network conditions. */
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

  /** The earliest known moment. */
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
        return; // The event log shows it. Nothing can be drawn for missing entries.
      case "pause":
        return this.#life(entry.node).paused(entry.at);
      case "resume":
        return this.#life(entry.node).resumed(entry.at);
      case "fault":
        return; // The feed itself reports faults on links.
      case "choice":
        return; // The consequences of the choice show it.
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

  /** Moves a type's messages to the other list when the type becomes chatter or stops being chatter. */
  #turn({ full, since, isChatter }: Turn): void {
    const moves = (message: Message) => message.name.full === full && momentOf(message) >= since;
    const [from, to] = isChatter ? [this.messages, this.chatter] : [this.chatter, this.messages];
    const moved = [...to, ...from.filter(moves)].sort((a, b) => momentOf(a) - momentOf(b));
    const left = from.filter((message) => !moves(message));
    [this.messages, this.chatter] = isChatter ? [left, moved] : [moved, left];
  }

  /** Removes the marks of a timer or event that has become chatter, and reports the change. */
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

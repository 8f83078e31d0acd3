/** The event log: sentences, newest first. Chatter is left out. */
import type { ClusterPicture, NetworkPeriod, NodePicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { nameOf, nameOfWord } from "../../../src/trace/log.ts";
import { momentOf } from "../diagram/picture.ts";
import type { Turn } from "./chatter.ts";
import type { Chronicle } from "./chronicle.ts";
import { type Line, linesOf, type Saying } from "./lines.ts";
import { networkNews } from "./network-news.ts";
import { lossesInWords, nodesInWords, type Phrase, phraseOf } from "./phrase-book.ts";

/** The maximum number of entries, which is enough for more lines than are drawn. */
const MAX_SAYINGS = 1_500;
/**
 * How many surplus entries may accumulate before the list is trimmed, so that the list is not copied every time in a
 * burst.
 */
const SURPLUS = 300;
const MAX_LINES = 400;
/** The supervisor and the trace may report the same exit with times that differ by up to this much. */
const SAME_EXIT_MS = 5_000;

export class EventLog {
  /** Entries in chronological order. */
  #sayings: Saying[] = [];
  #made = 0;

  get lines(): Line[] {
    return linesOf(this.#sayings, MAX_LINES).reverse();
  }

  /** Adds the entries that the chronicle has just processed. */
  add(entries: readonly TraceEntry[], chronicle: Chronicle): void {
    for (const entry of entries) {
      if (entry.kind === "lost") this.#tellLoss(entry, chronicle);
      else if (!isChatter(entry, chronicle)) this.#tellEntry(entry);
    }
  }

  /** Removes a timer's or event's entries from the time when it became chatter. */
  drop(kind: "timeout" | "event", { full, since, isChatter }: Turn): void {
    if (!isChatter) return;
    const saidBy = `${kind} ${full}`;
    this.#sayings = this.#sayings.filter((saying) => saying.by !== saidBy || saying.at < since);
  }

  observe(cluster: ClusterPicture, before: ClusterPicture): void {
    for (const node of cluster.nodes) {
      const earlier = before.nodes.find((each) => each.id === node.id);
      if (earlier !== undefined && earlier.process !== node.process) this.#tellProcess(cluster.now, node);
    }
    this.#tellNetwork(cluster, before);
  }

  /** Adds the earlier network changes that led to the conditions in `cluster`. */
  recall(networks: readonly NetworkPeriod[], cluster: ClusterPicture): void {
    for (const [index, { since, network }] of networks.entries()) {
      const before = networks[index - 1];
      if (before === undefined) continue;
      this.#tellNetwork({ ...cluster, network, networkSince: since }, { ...cluster, network: before.network });
    }
  }

  #tellNetwork(cluster: ClusterPicture, before: ClusterPicture): void {
    const at = cluster.networkSince;
    for (const text of networkNews(cluster, before))
      this.#insert({ at, topic: "network", nodes: [], whom: null, same: text, tell: () => text });
  }

  #tellEntry(entry: TraceEntry): void {
    const phrase = phraseOf(entry);
    if (phrase === null || (entry.kind === "crash" && this.#stampExit(entry.node, entry.at))) return;
    this.#say(entry.at, entry.node, phrase, sourceOf(entry));
  }

  #tellLoss({ id, at, why }: TraceEntry & { kind: "lost" }, chronicle: Chronicle): void {
    const message = chronicle.find(id);
    if (message === undefined || chronicle.chatty.has(message.name.full, momentOf(message))) return;
    const { name, from, to } = message;
    this.#insert({
      at,
      topic: "network",
      nodes: [from, to],
      whom: null,
      same: `lost ${name.short} ${why}`,
      tell: (_nodes, times) => lossesInWords(times, name.short, from, to, why),
    });
  }

  /** Records changes to a process. Pauses and resumptions are taken from the trace, which has their exact times. */
  #tellProcess(at: number, node: NodePicture): void {
    if (node.process === "exited" && node.exit !== null) this.#tellExit(at, node.id, node.exit);
  }

  /** Records how a process ended, as reported by the supervisor. The trace shows only that it ended. */
  #tellExit(at: number, node: NodeId, exit: string): void {
    const phrase: Phrase = { topic: "crash", one: endedAs(exit, "was"), many: endedAs(exit, "were") };
    const index = this.#exitOf(node, at);
    const known = this.#sayings[index];
    if (known === undefined) this.#say(at, node, phrase);
    else this.#sayings[index] = { ...known, ...said(node, phrase) };
  }

  /** Moves a reported exit to its exact time, before its consequences. Returns whether there was one. */
  #stampExit(node: NodeId, at: number): boolean {
    const index = this.#exitOf(node, at);
    const [known] = index === -1 ? [] : this.#sayings.splice(index, 1);
    if (known !== undefined) this.#insert({ ...known, at });
    return known !== undefined;
  }

  /** Returns the index of the reported exit that matches `at`, or −1 if there is none. */
  #exitOf(node: NodeId, at: number): number {
    return this.#sayings.findLastIndex(
      (each) => each.topic === "crash" && each.nodes.includes(node) && Math.abs(at - each.at) < SAME_EXIT_MS,
    );
  }

  #say(at: number, node: NodeId, phrase: Phrase, by: string | null = null): void {
    this.#insert({ at, by, ...said(node, phrase) });
  }

  #insert(saying: Omit<Saying, "key" | "by"> & Partial<Pick<Saying, "by">>): void {
    // Each node's entries arrive in batches, so an entry may belong before the last few.
    const after = this.#sayings.findLastIndex((each) => each.at <= saying.at);
    this.#sayings.splice(after + 1, 0, { by: null, ...saying, key: this.#made++ });
    if (this.#sayings.length > MAX_SAYINGS + SURPLUS) this.#sayings = this.#sayings.slice(-MAX_SAYINGS);
  }
}

function said(node: NodeId, phrase: Phrase): Omit<Saying, "key" | "at" | "by"> {
  const { topic, one, whom = null } = phrase;
  return { topic, nodes: [node], whom, same: one, tell: (nodes, times) => sentence(nodes, phrase, times) };
}

function sentence(nodes: readonly NodeId[], { one, many }: Phrase, times: number): string {
  if (nodes.length > 1) return `${nodesInWords(nodes)} ${many}`;
  return `${nodesInWords(nodes)} ${one}${times > 1 ? ` (${times} times)` : ""}`;
}

function isChatter(entry: TraceEntry, { chattyMarks }: Chronicle): boolean {
  if (entry.kind === "timeout") return chattyMarks.timeout.has(nameOfWord(entry.timer).full, entry.at);
  return entry.kind === "event" && chattyMarks.event.has(nameOf(entry.event).full, entry.at);
}

/** Returns the name of the timer or event that an entry is about, or null if there is none. */
function sourceOf(entry: TraceEntry): string | null {
  if (entry.kind === "timeout") return `timeout ${nameOfWord(entry.timer).full}`;
  return entry.kind === "event" ? `event ${nameOf(entry.event).full}` : null;
}

function endedAs(exit: string, verb: string): string {
  return /^(killed|stopped|terminated|ended)\b/.test(exit) ? `${verb} ${exit}` : `ended: ${exit}`;
}

/**
 * The event log: what happened, in sentences, newest first. What several nodes say at nearly the same time becomes one
 * sentence. Chatter does not appear.
 */
import type { ClusterPicture, NodePicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import type { Chronicle } from "./chronicle.ts";
import { nameOf, nameOfWord } from "./naming.ts";
import { networkNews } from "./network-news.ts";
import { lossesInWords, nodesInWords, type Phrase, phraseOf, type Topic } from "./phrase-book.ts";

export interface Line {
  readonly key: number;
  /** When it happened first. */
  readonly at: number;
  readonly topic: Topic;
  readonly nodes: readonly NodeId[];
  readonly text: string;
  /** How often, where the same happened again. */
  readonly times: number;
}

interface Said {
  /** Equal for what may share a line. */
  readonly same: string;
  readonly line: Line;
}

const MAX_LINES = 400;
/** Nodes that say the same within this time share a sentence. */
const TOGETHER_MS = 1_000;
/** How far back a sentence to share is looked for. */
const LOOK_BACK = 12;
/** Supervisor and trace may both tell of one exit, this far apart. */
const SAME_EXIT_MS = 5_000;

export class EventLog {
  #said: Said[] = [];
  #made = 0;

  /** Newest first. */
  get lines(): Line[] {
    return this.#said.map((each) => each.line).reverse();
  }

  add(entries: readonly TraceEntry[], chronicle: Chronicle): void {
    for (const entry of entries) {
      if (entry.kind === "lost") this.#tellLoss(entry, chronicle);
      else if (!isChatter(entry, chronicle)) this.#tellEntry(entry);
    }
  }

  observe(cluster: ClusterPicture, before: ClusterPicture): void {
    for (const node of cluster.nodes) {
      const earlier = before.nodes.find((each) => each.id === node.id);
      if (earlier !== undefined && earlier.process !== node.process) this.#tellProcess(cluster.now, node, earlier);
    }
    for (const text of networkNews(cluster, before)) {
      this.#append(text, { at: cluster.now, topic: "network", nodes: [], text, times: 1 });
    }
  }

  #tellEntry(entry: TraceEntry): void {
    const phrase = phraseOf(entry);
    if (phrase === null || (entry.kind === "crash" && this.#knowsExit(entry.node, entry.at))) return;
    this.#say(entry.at, entry.node, phrase);
  }

  #tellLoss(entry: TraceEntry & { kind: "lost" }, chronicle: Chronicle): void {
    const message = chronicle.find(entry.id);
    if (message === undefined || chronicle.chatty.has(message.name.full)) return;
    const type = message.name.short;
    const same = `lost ${type} ${entry.why}`;
    const index = this.#recent(same, entry.at);
    const known = this.#said[index];
    const times = (known?.line.times ?? 0) + 1;
    const text = lossesInWords(times, type, message.from, message.to, entry.why);
    if (known !== undefined) this.#said[index] = { same, line: { ...known.line, text, times } };
    else this.#append(same, { at: entry.at, topic: "network", nodes: [message.from, message.to], text, times });
  }

  #tellProcess(at: number, node: NodePicture, earlier: NodePicture): void {
    if (node.process === "paused") this.#say(at, node.id, { topic: "process", one: "was paused", many: "were paused" });
    if (node.process === "running" && earlier.process === "paused")
      this.#say(at, node.id, { topic: "process", one: "goes on", many: "go on" });
    if (node.process === "exited" && node.exit !== null) this.#tellExit(at, node.id, node.exit);
  }

  /** The supervisor knows how a process ended; the trace only that it did. */
  #tellExit(at: number, node: NodeId, exit: string): void {
    const phrase: Phrase = { topic: "crash", one: endedAs(exit, "was"), many: endedAs(exit, "were") };
    const index = this.#said.findLastIndex(({ line }) => isExitOf(line, node, at));
    const known = this.#said[index];
    if (known === undefined) return this.#say(at, node, phrase);
    this.#said[index] = { same: phrase.one, line: { ...known.line, text: sentence(known.line.nodes, phrase, 1) } };
  }

  #knowsExit(node: NodeId, at: number): boolean {
    return this.#said.some(({ line }) => isExitOf(line, node, at));
  }

  #say(at: number, node: NodeId, phrase: Phrase): void {
    const same = phrase.one;
    const index = this.#recent(same, at);
    const known = this.#said[index];
    if (known === undefined) {
      const text = sentence([node], phrase, 1);
      return this.#append(same, { at, topic: phrase.topic, nodes: [node], text, times: 1 });
    }
    const repeats = known.line.nodes.includes(node);
    const nodes = repeats ? known.line.nodes : [...known.line.nodes, node].sort((a, b) => a - b);
    const times = known.line.times + (repeats && nodes.length === 1 ? 1 : 0);
    this.#said[index] = { same, line: { ...known.line, nodes, times, text: sentence(nodes, phrase, times) } };
  }

  /** Where the same was said not long before or after `at`; −1 if nowhere. */
  #recent(same: string, at: number): number {
    const from = Math.max(0, this.#said.length - LOOK_BACK);
    return this.#said.findLastIndex(
      (each, index) => index >= from && each.same === same && Math.abs(at - each.line.at) <= TOGETHER_MS,
    );
  }

  #append(same: string, line: Omit<Line, "key">): void {
    // Entries of different nodes come in batches, so a line may belong before the last few.
    const after = this.#said.findLastIndex((each) => each.line.at <= line.at);
    this.#said.splice(after + 1, 0, { same, line: { ...line, key: this.#made++ } });
    if (this.#said.length > MAX_LINES) this.#said = this.#said.slice(-MAX_LINES);
  }
}

function sentence(nodes: readonly NodeId[], { one, many }: Phrase, times: number): string {
  const text = `${nodesInWords(nodes)} ${nodes.length === 1 ? one : many}`;
  return times > 1 ? `${text} (${times} times)` : text;
}

function isChatter(entry: TraceEntry, { chatty }: Chronicle): boolean {
  if (entry.kind === "timeout") return chatty.has(`timeout ${nameOfWord(entry.timer).full}`);
  if (entry.kind === "command") return chatty.has(`command ${nameOf(entry.command).full}`);
  return false;
}

function endedAs(exit: string, verb: string): string {
  return /^(killed|stopped|terminated|ended)\b/.test(exit) ? `${verb} ${exit}` : `ended: ${exit}`;
}

function isExitOf(line: Line, node: NodeId, at: number): boolean {
  return line.topic === "crash" && line.nodes.includes(node) && Math.abs(at - line.at) < SAME_EXIT_MS;
}

/**
 * Describes trace entries. Common events have a sentence of their own. All others are described by their type and
 * fields, so that new protocols are readable too.
 */
import type { NodeId, Tagged } from "../../../src/core/protocol.ts";
import { unwrapped } from "../../../src/core/wrapping.ts";
import { ENTRIES, epochOf } from "../../../src/protocols/mutex/family/workload.ts";
import type { LossReason, TraceEntry } from "../../../src/trace/entry.ts";
import { fieldsOf, nameOf, nameOfWord } from "../../../src/trace/log.ts";

export type Topic = "leadership" | "suspicion" | "process" | "crash" | "network" | "command" | "delivery" | "protocol";

/** A sentence about nodes, in its singular and plural forms: "node 1 suspects …", "nodes 1 and 2 suspect …". */
export interface Phrase {
  readonly topic: Topic;
  readonly one: string;
  readonly many: string;
  /** The other node that the sentence mentions. */
  readonly whom?: NodeId;
}

type Tell = (fields: Record<string, unknown>, node: NodeId) => Phrase | null;

const events: Record<string, Tell> = {
  elected: ({ leader }, node) =>
    leader === node
      ? { topic: "leadership", one: "leads", many: "lead" }
      : { topic: "leadership", one: `follows node ${leader}`, many: `follow node ${leader}`, whom: Number(leader) },
  deposed({ epoch }) {
    const when = typeof epoch === "number" ? ` (epoch ${epoch})` : "";
    return { topic: "leadership", one: `steps down${when}`, many: `step down${when}` };
  },
  suspected: ({ node: whom }) => ({
    topic: "suspicion",
    one: `suspects node ${whom}`,
    many: `suspect node ${whom}`,
    whom: Number(whom),
  }),
  restored: ({ node: whom }) => ({
    topic: "suspicion",
    one: `trusts node ${whom} again`,
    many: `trust node ${whom} again`,
    whom: Number(whom),
  }),
  heard: ({ node: whom }) => ({
    topic: "suspicion",
    one: `receives a message from suspected node ${whom}`,
    many: `receive a message from suspected node ${whom}`,
    whom: Number(whom),
  }),
  entered: () => ({ topic: "protocol", one: "enters the critical section", many: "enter the critical section" }),
  exited: () => ({ topic: "protocol", one: "leaves the critical section", many: "leave the critical section" }),
  delivered: ({ id, payload }) => {
    const what = `${brief(id)}${typeof payload === "string" && payload !== "" ? `, “${brief(payload)}”` : ""}`;
    return { topic: "delivery", one: `delivers ${what}`, many: `deliver ${what}` };
  },
  led: ({ leader, term }, node) => {
    const when = ` in term ${Number(term)}`;
    if (leader === null) return same("leadership", `has no leader${when}`);
    return leader === node
      ? { topic: "leadership", one: `leads${when}`, many: `lead${when}` }
      : {
          topic: "leadership",
          one: `follows node ${Number(leader)}${when}`,
          many: `follow node ${Number(leader)}${when}`,
          whom: Number(leader),
        };
  },
  decided({ value, index, command }) {
    const what = brief(command === undefined ? value : (command as { operation?: unknown }).operation);
    const where = index === undefined ? "" : ` at ${Number(index)}`;
    return { topic: "protocol", one: `decides ${what}${where}`, many: `decide ${what}${where}` };
  },
  asked: ({ operation }) => ({
    topic: "command",
    one: `requests ${brief(operation)}`,
    many: `request ${brief(operation)}`,
  }),
  acknowledged: ({ sequence }) => same("command", `receives the answer to command ${sequence}`),
};

const losses: Record<LossReason, string> = {
  cut: "the link is cut",
  dropped: "dropped on the way",
  overflow: "the queue was full",
  crashed: "the receiver had crashed",
  down: "the receiver was not running",
};

/** Internal events that parts of a replica exchange between the log and the client. */
const ASIDE = /^(machine\.|client\.(reading|query)$)/;

/** Returns whether an event has neither a line nor a mark. */
export const isAside = (event: Tagged): boolean => ASIDE.test(nameOf(event).full);

/** Returns whether the event has a sentence. Such events are always reported, no matter how often they occur. */
export function hasSentence(event: Tagged): boolean {
  return tellerOf(event) !== undefined;
}

/**
 * Returns the function that describes an event, if there is one. Checks only own properties, because an event may be
 * called `constructor`.
 */
function tellerOf(event: Tagged): Tell | undefined {
  const { short } = nameOf(event);
  return Object.hasOwn(events, short) ? events[short] : undefined;
}

/** Returns the topic of an event. Events without a sentence have the topic `protocol`. */
export function topicOfEvent(event: Tagged): Topic {
  return tellerOf(event)?.(unwrapped(event), -1)?.topic ?? "protocol";
}

export function lossInWords(why: LossReason): string {
  return losses[why];
}

/**
 * Returns the sentence for an entry, or null if the entry has no line. Lost messages are described by `lossesInWords`.
 */
export function phraseOf(entry: TraceEntry): Phrase | null {
  switch (entry.kind) {
    case "start":
      return { topic: "process", one: "started", many: "started" };
    case "crash":
      return { topic: "crash", one: "crashed", many: "crashed" };
    case "command":
      return same("command", `received command ${toldAs(nameOf(entry.command).short, fieldsOf(entry.command))}`);
    case "timeout":
      return {
        topic: "protocol",
        one: `times out: ${nameOfWord(entry.timer).short}`,
        many: `time out: ${nameOfWord(entry.timer).short}`,
      };
    case "pause":
      return same("process", "was paused", "were");
    case "resume":
      return { topic: "process", one: "resumed", many: "resumed" };
    case "event": {
      if (isAside(entry.event)) return null;
      const told = tellerOf(entry.event)?.(unwrapped(entry.event), entry.node);
      return within(instanceOf(entry.event), told ?? same("protocol", `emits ${label(entry.event)}`, "emit"));
    }
    case "gap":
      return same("protocol", `sent trace entries faster than they could be read: ${entry.dropped} are missing`);
    default:
      return null;
  }
}

/**
 * Returns the election, lock or channel that an event at a `join()` member belongs to, such as `mutex “invoice-42”`.
 * Null if there is none.
 */
function instanceOf(event: Tagged): string | null {
  const [, kind, name] = /^(election|mutex|channel)\.(.+)$/.exec(nameOf(event).part ?? "") ?? [];
  return name === undefined ? null : `${kind} “${name}”`;
}

function within(instance: string | null, phrase: Phrase): Phrase {
  if (instance === null) return phrase;
  return { ...phrase, one: `${phrase.one} (${instance})`, many: `${phrase.many} (${instance})` };
}

/** Describes lost messages. `from` and `to` are used only for a single message. */
export function lossesInWords(count: number, type: string, from: NodeId, to: NodeId, why: LossReason): string {
  if (count > 1) return `${count} ${type} messages were lost: ${losses[why]}`;
  return `${withArticle(type)} message from node ${from} to node ${to} was lost: ${losses[why]}`;
}

/** Returns a short label for a mark, such as `elected 3`. */
export function label(tagged: Tagged): string {
  return [nameOf(tagged).short, ...wordsOf(fieldsOf(tagged))].join(" ");
}

/** Formats a fencing token as its epoch and counter, such as `1·4`. Tokens that are not packed remain unchanged. */
export function tokenText(token: number): string {
  return token < ENTRIES ? String(token) : `${epochOf(token)}·${token % ENTRIES}`;
}

/** Returns a node's role in the terms used by all pages. "Held" is reserved for held-back messages. */
export function roleText(role: string): string {
  return role.replace(/^held\b/, "inside").replace(/^wanted\b/, "waiting");
}

/** Returns the first part of a role. */
export const briefRole = (role: string): string => roleText(role.split(/[,(;]/, 1)[0] as string).trim();

function wordsOf(fields: Record<string, unknown>): string[] {
  const words = Object.entries(fields).filter(([, value]) => isScalar(value));
  return words.map(([name, value]) => (name === "token" ? tokenText(Number(value)) : brief(value)));
}

/** Names nodes, such as "node 1", "nodes 1 and 2" or "nodes 0–5 and 7". `nodes` must be in ascending order. */
export function nodesInWords(nodes: readonly NodeId[]): string {
  return nodes.length === 1 ? `node ${nodes[0]}` : `nodes ${inWords(nodes)}`;
}

/** Lists node ids, such as "1", "1 and 2", "0, 1 and 2" or "0–5 and 7". `nodes` must be in ascending order. */
export function inWords(nodes: readonly NodeId[]): string {
  const items = runsOf(nodes).flatMap((run) => (run.length > 3 ? [`${run[0]}–${run.at(-1)}`] : run.map(String)));
  if (items.length <= 1) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** Splits ids into runs of consecutive ids. */
function runsOf(nodes: readonly NodeId[]): NodeId[][] {
  const runs: NodeId[][] = [];
  for (const node of nodes) {
    const run = runs.at(-1);
    if (run !== undefined && run.at(-1) === node - 1) run.push(node);
    else runs.push([node]);
  }
  return runs;
}

function same(topic: Topic, text: string, plural?: "emit" | "were"): Phrase {
  const many = plural === undefined ? text : text.replace(/^(emits|was)\b/, plural);
  return { topic, one: text, many };
}

function toldAs(command: string, fields: Record<string, unknown>): string {
  return [`“${command}”`, ...wordsOf(fields)].join(" ");
}

function withArticle(word: string): string {
  return `${/^[aeiou]/i.test(word) ? "an" : "a"} ${word}`;
}

function isScalar(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function brief(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  return text.length <= 24 ? text : `${text.slice(0, 23)}…`;
}

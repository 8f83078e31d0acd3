/**
 * Checks whether the recordings of a group's members are virtually synchronous: all members see the same views, and any
 * two nodes that move together from one view to the next have delivered the same messages in the first view. Birman &
 * Joseph, "Exploiting Virtual Synchrony in Distributed Systems", SOSP 1987. Terms follow Chockler, Keidar & Vitenberg,
 * "Group Communication Specifications", ACM Computing Surveys 2001.
 */
import type { NodeId } from "../core/protocol.ts";

/** The recording of one run of a process, beginning when it started. */
export interface GroupRecord {
  /** The id of the node. */
  readonly node: NodeId;
  /** The number of this run of the node's process. It is higher than the numbers of earlier runs. */
  readonly incarnation: number;
  /** The node's events, earliest first. */
  readonly log: readonly GroupEntry[];
}

/**
 * One event. A message is identified within its view by its id, `<sender>.<n>`, with n counting from 1 in every view.
 */
export type GroupEntry =
  /** The node enters a view. */
  | { readonly installed: { readonly view: number; readonly members: readonly NodeId[] } }
  /** The node delivers a message. */
  | { readonly delivered: GroupDelivery }
  /** The node is no longer in the group. */
  | { readonly ejected: true };

/** The delivery of a message at a node. */
export interface GroupDelivery {
  /** The id of the message: `<sender>.<n>`. */
  readonly id: string;
  /** The sender. */
  readonly from: NodeId;
  /** Metadata from the sender, if the message carries any. Required if `GroupOrders.sending` is set. */
  readonly sent?: Sending;
}

/** Metadata that a sender adds to a message. */
export interface Sending {
  /** The process that sent the message. The name identifies either one run of the node or all of its runs. */
  readonly by: string;
  /** The number of the message. It increases with every message sent by this process, across views. */
  readonly number: number;
  /** The highest number from each process that had been delivered to the sender by the time it sent the message. */
  readonly after?: Readonly<Record<string, number>>;
}

/** The delivery orders to check, in addition to virtual synchrony. */
export interface GroupOrders {
  /** Whether each sender's messages must be delivered in the order of their numbers, without gaps. */
  readonly fifo?: boolean;
  /**
   * Whether nodes that move together to the next view, or are still together, must deliver messages in the same order,
   * without gaps.
   */
  readonly total?: boolean;
  /**
   * The order across views, based on the metadata in the messages. `fifo`: messages from one process are delivered in
   * the order they were sent, possibly with gaps. `causal`: in addition, no message is delivered after a message that
   * was sent after its delivery.
   */
  readonly sending?: "fifo" | "causal" | undefined;
}

/** A violation in a recording. */
export interface GroupViolation {
  /** The rule that was violated. */
  readonly rule:
    | "agreement on views"
    | "views grow"
    | "self-inclusion"
    | "delivery in a view"
    | "integrity"
    | "virtual synchrony"
    | "FIFO order"
    | "causal order"
    | "total order";
  /** A sentence that describes the violation and names the node and the view. */
  readonly what: string;
}

/** The actions of a node in one view. */
interface Stay {
  readonly who: string;
  readonly node: NodeId;
  readonly view: number;
  readonly members: readonly NodeId[];
  readonly delivered: GroupDelivery[];
  /** The view that the node moved to. Null if it was ejected, crashed, or is still in this view. */
  next: number | null;
  wasEjected: boolean;
  /** Whether the node has restarted since this view. */
  readonly hasCrashed: boolean;
}

/**
 * Returns every violation, in the order of the records. The records of each node must be in the order of its
 * incarnations. Nodes that did not leave a view with the others may have delivered different messages, because a group
 * cannot promise more about nodes that crashed or were ejected.
 *
 * @returns the violations; empty if there are none
 */
export function virtualSynchrony(records: readonly GroupRecord[], orders: GroupOrders = {}): GroupViolation[] {
  const found: GroupViolation[] = [];
  const note = (rule: GroupViolation["rule"], what: string): void => void found.push({ rule, what });
  const latest = new Map(records.map((record) => [record.node, record]));
  for (const record of records) noteSendings(record, orders.sending, note);
  const stays = records.flatMap((record) => staysOf(record, latest.get(record.node) !== record, note));
  noteShrinkingViews(stays, note);
  for (const stay of stays) {
    noteForeignViews(stay, note);
    noteRepetitions(stay, note);
    if (orders.fifo === true) noteFifo(stay, note);
  }
  for (const [view, together] of grouped(stays)) {
    noteDisagreement(view, together, note);
    for (const company of companies(together)) noteDifferences(view, company, orders.total === true, note);
  }
  return found;
}

type Note = (rule: GroupViolation["rule"], what: string) => void;

const nameOf = ({ node, incarnation }: GroupRecord): string => `node ${node} (incarnation ${incarnation})`;

/** The messages from one process that have been delivered in one run of a node, by number. */
interface Heard {
  readonly numbers: Set<number>;
  last: number;
  /**
   * The message that requires earlier ones. In causal order, the messages up to `number` must come before message `by`,
   * which was delivered here, because they had already been delivered to its sender.
   */
  cause: { readonly number: number; readonly by: string };
}

function noteSendings(record: GroupRecord, order: GroupOrders["sending"], note: Note): void {
  const processes = new Map<string, Heard>();
  const heardOf = (by: string): Heard => {
    const heard = processes.get(by) ?? { numbers: new Set(), last: Number.NEGATIVE_INFINITY, cause: NO_CAUSE };
    processes.set(by, heard);
    return heard;
  };
  const who = nameOf(record);
  for (const entry of record.log) {
    if (!("delivered" in entry) || entry.delivered.sent === undefined) continue;
    const { by, number, after = {} } = entry.delivered.sent;
    const heard = heardOf(by);
    const what = `${who} delivered ${by}#${number}`;
    if (heard.numbers.has(number)) note("integrity", `${what} twice`);
    else if (order !== undefined && number < heard.last) note("FIFO order", `${what} after #${heard.last}`);
    if (order === "causal" && number <= heard.cause.number)
      note("causal order", `${what} after ${heard.cause.by}, whose sender had already delivered it`);
    heard.numbers.add(number);
    heard.last = Math.max(heard.last, number);
    for (const [other, known] of Object.entries(after)) {
      const its = heardOf(other);
      if (known > its.cause.number) its.cause = { number: known, by: `${by}#${number}` };
    }
  }
}

const NO_CAUSE = { number: Number.NEGATIVE_INFINITY, by: "" };

/**
 * Returns the same recording with views renumbered from 1 without gaps. Used if views are numbered by log entries, with
 * other entries in between.
 */
export function withCountedViews(records: readonly GroupRecord[]): GroupRecord[] {
  const views = new Set(
    records.flatMap(({ log }) => log.flatMap((entry) => ("installed" in entry ? [entry.installed.view] : []))),
  );
  const counted = [...views].sort((a, b) => a - b);
  const renamed = (entry: GroupEntry): GroupEntry =>
    "installed" in entry
      ? { installed: { ...entry.installed, view: counted.indexOf(entry.installed.view) + 1 } }
      : entry;
  return records.map((record) => ({ ...record, log: record.log.map(renamed) }));
}

/** Splits a log into the actions in each view. */
function staysOf(record: GroupRecord, hasCrashed: boolean, note: Note): Stay[] {
  const { node, log } = record;
  const who = nameOf(record);
  const stays: Stay[] = [];
  let current: Stay | null = null;
  for (const entry of log) {
    if ("installed" in entry) {
      const { view, members } = entry.installed;
      if (current !== null) {
        current.next = view;
        if (view !== current.view + 1)
          note("views grow", `${who} went from view ${current.view} to ${view} without being expelled in between`);
      }
      current = { who, node, view, members, delivered: [], next: null, wasEjected: false, hasCrashed };
      stays.push(current);
    } else if ("ejected" in entry) {
      if (current !== null) current.wasEjected = true;
      current = null;
    } else if (current === null) {
      note("delivery in a view", `${who} delivered ${entry.delivered.id} while it was not in any view`);
    } else current.delivered.push(entry.delivered);
  }
  return stays;
}

function noteShrinkingViews(stays: readonly Stay[], note: Note): void {
  const last = new Map<NodeId, Stay>();
  for (const stay of stays) {
    const before = last.get(stay.node);
    if (before !== undefined && stay.view <= before.view)
      note("views grow", `${stay.who} installed view ${stay.view} after view ${before.view}`);
    last.set(stay.node, stay);
  }
}

function noteForeignViews({ who, node, view, members, delivered }: Stay, note: Note): void {
  if (!members.includes(node)) note("self-inclusion", `${who} installed view ${view}, but is not a member of it`);
  const stranger = delivered.find(({ from }) => !members.includes(from));
  if (stranger !== undefined)
    note(
      "integrity",
      `${who} delivered ${stranger.id} in view ${view}, but node ${stranger.from} is not a member of it`,
    );
}

function noteRepetitions({ who, view, delivered }: Stay, note: Note): void {
  const seen = new Set<string>();
  for (const { id } of delivered) {
    if (seen.has(id)) note("integrity", `${who} delivered ${id} twice in view ${view}`);
    seen.add(id);
  }
}

function noteFifo({ who, view, delivered }: Stay, note: Note): void {
  const counts = new Map<NodeId, number>();
  for (const { id, from } of delivered) {
    const due = (counts.get(from) ?? 0) + 1;
    const number = Number(id.slice(id.lastIndexOf(".") + 1));
    if (number !== due) note("FIFO order", `${who} delivered ${id} in view ${view} when ${from}.${due} was due`);
    counts.set(from, number);
  }
}

function grouped(stays: readonly Stay[]): [number, Stay[]][] {
  const byView = new Map<number, Stay[]>();
  for (const stay of stays) byView.set(stay.view, [...(byView.get(stay.view) ?? []), stay]);
  return [...byView].sort(([a], [b]) => a - b);
}

function noteDisagreement(view: number, [first, ...others]: readonly Stay[], note: Note): void {
  for (const other of others)
    if (first !== undefined && first.members.join() !== other.members.join()) {
      const seen = `members ${first.members.join(", ")} for ${first.who}, ${other.members.join(", ")} for ${other.who}`;
      note("agreement on views", `view ${view} has ${seen}`);
    }
}

/** Groups the nodes that moved to the same view. If no node has moved, groups the nodes that are still in the view. */
function companies(together: readonly Stay[]): Company[] {
  const nexts = [...new Set(together.flatMap(({ next }) => (next === null ? [] : [next])))];
  if (nexts.length > 0)
    return nexts.map((to) => ({ went: `to view ${to}`, stays: together.filter(({ next }) => next === to) }));
  return [{ went: null, stays: together.filter(({ wasEjected }) => !wasEjected) }];
}

interface Company {
  readonly went: string | null;
  readonly stays: readonly Stay[];
}

function noteDifferences(view: number, { went, stays }: Company, isTotal: boolean, note: Note): void {
  const pairs = stays.flatMap((first, i) => stays.slice(i + 1).map((other) => [first, other] as const));
  for (const [first, other] of pairs) {
    const had = new Set(first.delivered.map(({ id }) => id));
    const has = new Set(other.delivered.map(({ id }) => id));
    if (went !== null) {
      const gone = [...had].find((id) => !has.has(id));
      const more = [...has].find((id) => !had.has(id));
      const missed = [
        ...(gone === undefined ? [] : [`${first.who} delivered ${gone} and ${other.who} did not`]),
        ...(more === undefined ? [] : [`${other.who} delivered ${more} and ${first.who} did not`]),
      ];
      if (missed.length > 0)
        note("virtual synchrony", `${missed.join("; ")}, in view ${view}, before both went ${went}`);
    }
    if (!isTotal) continue;
    // If both nodes are still in the view, compare all of their messages: a node that is behind must not skip any.
    const areThere = went === null && !first.hasCrashed && !other.hasCrashed;
    const left = areThere ? first.delivered : first.delivered.filter(({ id }) => has.has(id));
    const right = areThere ? other.delivered : other.delivered.filter(({ id }) => had.has(id));
    const at = left.findIndex(({ id }, k) => k < right.length && id !== right[k]?.id);
    const here = `${first.who} delivered ${left[at]?.id} where ${other.who} delivered ${right[at]?.id}`;
    if (at >= 0) note("total order", `${here}, in view ${view}`);
  }
}

/**
 * Converts a simulator failure or a recording into a run of the model, which can be replayed and shrunk like any other.
 */
import { canonical } from "../../core/plain.ts";
import type { CommandOf, MessageOf, NodeId, Property, Vocabulary } from "../../core/protocol.ts";
import type { MessageId, TraceEntry } from "../../trace/entry.ts";
import type { ModelOptions } from "../model.ts";
import type { Wanted } from "./replay.ts";
import { type ShrinkOptions, type Shrunk, shrink } from "./shrink.ts";

/** The model of a trace. Any missing fields are derived from the trace: see `modelOf`. */
export type TraceModel<V extends Vocabulary> = Pick<ModelOptions<V>, "protocol" | "nodes"> & Partial<ShrinkOptions<V>>;

/**
 * Shrinks the run in a trace. If the run is also possible with timers that fire only when no message is in flight,
 * shrinking keeps that restriction. Otherwise, the result might only show that an assumption of the protocol was
 * violated.
 *
 * @returns null if the model cannot follow the trace to a violation of the property
 */
export function shrinkTrace<V extends Vocabulary>(
  options: TraceModel<V>,
  entries: readonly TraceEntry<V>[],
  property: Property<V>,
): (Shrunk<V> & { readonly options: ModelOptions<V> }) | null {
  const moves = movesOf(entries);
  for (const timers of ["quiet", "free"] as const) {
    const settled = { ...modelOf(entries), timers, ...options };
    const shrunk = shrink<V>(settled, moves, property);
    if (shrunk !== null) return { ...shrunk, options: settled };
  }
  return null;
}

/**
 * Returns a model that includes the trace as one of its runs: it allows as many faults as the trace has, each node's
 * commands in any order and any number of times, and ordered links if the trace's links kept their order.
 */
export function modelOf<V extends Vocabulary>(
  entries: readonly TraceEntry<V>[],
): Omit<ModelOptions<V>, "protocol" | "nodes" | "timers"> {
  const moves = movesOf(entries);
  const count = (kind: string): number => moves.filter(({ move }) => move.kind === kind).length;
  const crashed = new Set<NodeId>();
  let recoveries = 0;
  for (const { kind, node } of entries) {
    if (kind === "crash") crashed.add(node);
    if (kind === "start" && crashed.has(node)) recoveries += 1;
  }
  const commands = new Map<NodeId, Map<string, CommandOf<V>>>();
  for (const entry of entries) {
    if (entry.kind !== "command") continue;
    const known = commands.get(entry.node) ?? new Map<string, CommandOf<V>>();
    commands.set(entry.node, known.set(canonical(entry.command), entry.command));
  }
  return {
    network: keepsOrder(entries) ? "fifo" : "bag",
    begin: beginning(entries),
    crashes: entries.filter(({ kind }) => kind === "crash").length,
    withinStep: entries.some((entry) => entry.kind === "crash" && entry.withinStep === true),
    recoveries,
    losses: count("lose"),
    duplications: count("duplicate"),
    journal: entries.some((entry) => entry.kind === "crash" && entry.journal?.length === 0) ? "lost" : "kept",
    commands: (_state, self) => [...(commands.get(self)?.values() ?? [])],
  };
}

/**
 * Returns the moves in a trace. A lost message is removed once all earlier messages on the same link are gone, so that
 * ordered links can do the same. Losses caused by a crash are not moves. The model cannot follow one case: a message
 * that was sent to a node while it was down and arrived after its restart.
 */
export function movesOf<V extends Vocabulary>(entries: readonly TraceEntry<V>[]): Wanted<V>[] {
  const moves: { move: Wanted<V>["move"]; choices: { label: string; option: unknown }[]; sends: object[] }[] = [];
  const receipts = new Map<MessageId, number>();
  for (const entry of entries) if (entry.kind === "receive") receipts.set(entry.id, (receipts.get(entry.id) ?? 0) + 1);
  const links = new Links<V>();
  const stepOf = (node: NodeId) => moves.findLast(({ move }) => move.node === node && move.kind !== "lose");
  const push = (move: Wanted<V>["move"]): void => void moves.push({ move, choices: [], sends: [] });

  for (const entry of entries) {
    const { node } = entry;
    if (entry.kind === "send") {
      links.send(node, entry);
      stepOf(node)?.sends.push(entry);
    } else if (entry.kind === "lost") entry.why === "crashed" ? links.end(entry.id) : links.lose(entry.id);
    else if (entry.kind === "start" || entry.kind === "crash") {
      if (entry.kind === "crash") links.crash(node);
      const struck = "withinStep" in entry ? stepOf(node) : undefined;
      if (struck !== undefined) struck.move = { ...struck.move, crashesWithinStep: true };
      else if (!("idle" in entry)) push({ kind: entry.kind, node });
    } else if (entry.kind === "timeout") push({ kind: "timeout", node, timer: entry.timer });
    else if (entry.kind === "command") push({ kind: "command", node, command: entry.command, by: "application" });
    else if (entry.kind === "choice") stepOf(node)?.choices.push({ label: entry.label, option: entry.option });
    else if (entry.kind === "receive") {
      const { from, message, id } = entry;
      const left = (receipts.get(id) ?? 1) - 1;
      receipts.set(id, left);
      push({ kind: left > 0 ? "duplicate" : "receive", node, from, message });
      if (left === 0) links.end(id);
    }
    for (const { from, to, message } of links.due()) push({ kind: "lose", node: to, from, message });
  }
  return moves;
}

interface Flight<V extends Vocabulary> {
  readonly id: MessageId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: MessageOf<V>;
  isLost: boolean;
}

/** The messages in flight, in the order they were sent. */
class Links<V extends Vocabulary> {
  #flights: Flight<V>[] = [];
  #hasLost = false;

  send(from: NodeId, { id, to, message }: { id: MessageId; to: NodeId; message: MessageOf<V> }): void {
    this.#flights.push({ id, from, to, message, isLost: false });
  }

  lose(id: MessageId): void {
    const lost = this.#flights.find((flight) => flight.id === id);
    if (lost === undefined) return;
    lost.isLost = true;
    this.#hasLost = true;
  }

  /** Removes a message that was received or was lost in a crash, so that it no longer blocks others. */
  end(id: MessageId): void {
    this.#flights = this.#flights.filter((flight) => flight.id !== id);
  }

  crash(node: NodeId): void {
    this.#flights = this.#flights.filter(({ to }) => to !== node);
  }

  /** Removes and returns the lost messages that have no earlier message on their link. */
  due(): Flight<V>[] {
    if (!this.#hasLost) return [];
    const waiting = new Set<string>();
    const due = this.#flights.filter(({ from, to, isLost }) => {
      const link = `${from}>${to}`;
      if (!isLost) waiting.add(link);
      return isLost && !waiting.has(link);
    });
    this.#flights = this.#flights.filter((flight) => !due.includes(flight));
    this.#hasLost = this.#flights.some(({ isLost }) => isLost);
    return due;
  }
}

/** Whether every link delivered messages in the order they were sent, each message once. */
function keepsOrder<V extends Vocabulary>(entries: readonly TraceEntry<V>[]): boolean {
  const sent = new Map<MessageId, number>();
  const latest = new Map<string, number>();
  return entries.every((entry, at) => {
    if (entry.kind === "send") sent.set(entry.id, at);
    if (entry.kind !== "receive") return true;
    const link = `${entry.from}>${entry.node}`;
    const order = sent.get(entry.id) ?? -1;
    const isLater = order > (latest.get(link) ?? -1);
    latest.set(link, order);
    return isLater;
  });
}

/** Returns how nodes begin. The result is `together` if all nodes had started before the first message arrived. */
function beginning<V extends Vocabulary>(entries: readonly TraceEntry<V>[]): ModelOptions<V>["begin"] {
  const firstReceipt = entries.findIndex(({ kind }) => kind === "receive");
  const started = new Set(entries.filter(({ kind }) => kind === "start").map(({ node }) => node));
  const early = entries
    .slice(0, firstReceipt < 0 ? entries.length : firstReceipt)
    .filter(({ kind }) => kind === "start");
  if (early.some((entry) => "idle" in entry)) return "idle";
  return new Set(early.map(({ node }) => node)).size === started.size ? "together" : "down";
}

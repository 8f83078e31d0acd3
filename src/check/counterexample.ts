/** Converts a counterexample into an ordinary trace that can be drawn, replayed and continued. */
import { canonical } from "../core/plain.ts";
import type { MessageOf, NodeId, StateOf, Vocabulary } from "../core/protocol.ts";
import type { LossReason, MessageId, TraceEntry, TraceHeader } from "../trace/entry.ts";
import type { Exploration } from "./explore.ts";
import type { ModelOptions } from "./model.ts";
import type { Taken } from "./path.ts";

/** A counterexample as a trace. */
export interface Counterexample<V extends Vocabulary> {
  /**
   * The entries. `at` is the step number, counting from 1; anything before the first step has `at` 0. If time is
   * modeled, `at` is the time in milliseconds.
   */
  readonly entries: readonly TraceEntry<V>[];
  /** The violation, for the header of a trace file. Null if nothing was violated. */
  readonly violation: TraceHeader["violation"];
}

type Found<V extends Vocabulary> = Pick<Exploration<V>, "property" | "path" | "loop">;

/**
 * Converts the run found by an exploration into a trace. A message's send and receipt have the same id.
 *
 * @param options the options of the exploration
 * @example
 * const found = explore(system);
 * for (const entry of counterexample(system, found).entries) console.log(JSON.stringify(entry));
 */
export function counterexample<V extends Vocabulary>(options: ModelOptions<V>, found: Found<V>): Counterexample<V> {
  const { property, path, loop } = found;
  const scribe = new Scribe(options);
  let nowMs = 0;
  const begins = path.map((taken, i) => {
    nowMs += taken.move.afterMs ?? 0;
    return scribe.write(options.timers === "timed" ? nowMs : i + 1, taken);
  });
  const violation =
    property === null
      ? null
      : { property: property.name, claim: property.claim, loopFrom: loop === null ? null : (begins[loop] ?? null) };
  return { entries: scribe.entries, violation };
}

interface Letter<V extends Vocabulary> {
  readonly id: MessageId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: MessageOf<V>;
}

/** Writes a run step by step. To assign ids, it tracks which nodes are up and which messages are in flight. */
class Scribe<V extends Vocabulary> {
  readonly #options: ModelOptions<V>;
  readonly entries: TraceEntry<V>[] = [];
  #letters: Letter<V>[] = [];
  readonly #up = new Set<NodeId>();
  readonly #lives = new Map<NodeId, number>();
  readonly #pictures = new Map<NodeId, string>();
  #sent = 0;
  #at = 0;

  constructor(options: ModelOptions<V>) {
    this.#options = options;
    if (options.begin !== "idle") return;
    for (const node of options.nodes) {
      this.#live(node);
      this.#add({ at: 0, node, kind: "start", idle: true });
    }
  }

  /** Writes a step. Returns the index of its first entry. */
  write(at: number, taken: Taken<V>): number {
    this.#at = at;
    const first = this.entries.length;
    const { node } = taken.move;
    this.#deed(taken.move);
    for (const { label, option } of taken.choices) this.#add({ at, node, kind: "choice", label, option });
    for (const { to, message } of taken.sends) this.#send(node, to, message);
    for (const event of taken.events) this.#add({ at, node, kind: "event", event });
    for (const { request, reply } of taken.replies) this.#add({ at, node, kind: "event", event: reply, request });
    if (taken.move.crashesWithinStep === true) this.#crash(node, { withinStep: true, ...this.#remains(taken.journal) });
    this.#picture(node, taken.states[this.#options.nodes.indexOf(node)] ?? null);
    return first;
  }

  #deed(move: Taken<V>["move"]): void {
    const at = this.#at;
    const { node } = move;
    switch (move.kind) {
      case "start":
        this.#live(node);
        return this.#add({ at, node, kind: "start" });
      case "pause":
      case "resume":
        return this.#add({ at, node, kind: move.kind });
      case "crash":
        return this.#crash(node, this.#remains(null));
      case "timeout":
        return this.#add({ at, node, kind: "timeout", timer: move.timer });
      case "command":
        return this.#add({ at, node, kind: "command", command: move.command });
      case "receive":
      case "duplicate":
      case "lose":
        return this.#end(this.#letterTo(node, move.from, move.message), move.kind);
    }
  }

  #end(letter: Letter<V>, how: "receive" | "duplicate" | "lose"): void {
    const { id, from, to, message } = letter;
    if (how !== "duplicate") this.#letters = this.#letters.filter((other) => other !== letter);
    if (how === "lose") this.#lose(letter, "dropped");
    else this.#add({ at: this.#at, node: to, kind: "receive", id, from, message });
  }

  #live(node: NodeId): void {
    this.#up.add(node);
    this.#lives.set(node, (this.#lives.get(node) ?? 0) + 1);
  }

  /** Returns the records left in the journal if some were lost. */
  #remains(journal: readonly unknown[] | null): { readonly journal?: readonly unknown[] } {
    if (this.#options.journal === "lost") return { journal: [] };
    return journal === null || (this.#options.recoveries ?? 0) === 0 ? {} : { journal };
  }

  #crash(node: NodeId, remains: { readonly withinStep?: true; readonly journal?: readonly unknown[] }): void {
    this.#up.delete(node);
    this.#pictures.delete(node);
    this.#add({ at: this.#at, node, kind: "crash", ...remains });
    for (const letter of this.#letters.filter(({ to }) => to === node)) this.#lose(letter, "crashed");
    this.#letters = this.#letters.filter(({ to }) => to !== node);
  }

  #send(from: NodeId, to: NodeId, message: MessageOf<V>): void {
    const letter = { id: `${from}-${to}-${this.#lives.get(from) ?? 0}-${++this.#sent}`, from, to, message };
    this.#add({ at: this.#at, node: from, kind: "send", id: letter.id, to, message });
    const waits = this.#options.begin === "together" && !this.#lives.has(to);
    if (this.#up.has(to) || waits) this.#letters.push(letter);
    else this.#lose(letter, this.#lives.has(to) ? "crashed" : "down");
  }

  /**
   * Writes the loss of a message. A message to a crashed node is lost at the receiver; any other loss happens on the
   * sender's link.
   */
  #lose({ id, from, to }: Letter<V>, why: LossReason): void {
    this.#add({ at: this.#at, node: why === "dropped" ? from : to, kind: "lost", id, to, why });
  }

  /** Returns the oldest equal message, which is the one that the checker delivers if links keep their order. */
  #letterTo(node: NodeId, sender: NodeId, message: MessageOf<V>): Letter<V> {
    const text = canonical(message);
    return this.#letters.find(
      ({ from, to, message: other }) => from === sender && to === node && canonical(other) === text,
    ) as Letter<V>;
  }

  #picture(node: NodeId, state: StateOf<V> | null): void {
    if (state === null) return;
    const view = this.#options.protocol.view(state, node);
    const text = canonical(view);
    if (this.#pictures.get(node) === text) return;
    this.#pictures.set(node, text);
    this.#add({ at: this.#at, node, kind: "view", view, state });
  }

  #add(entry: TraceEntry<V>): void {
    this.entries.push(entry);
  }
}

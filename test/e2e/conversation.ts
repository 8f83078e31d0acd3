/**
 * Checks the messages that members in separate processes exchange on a channel of the log, using the lines that
 * `speaking-member.js` writes. All members deliver the same messages in the same order, without duplicates and gaps,
 * each message in one view, and all holders of a state have the same contents after each message. If no holder was in
 * the group, a second state may exist: its founder applies the messages that it held back, which others applied to the
 * first state. Eventually all have the same state.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { until } from "./cluster-under-test.ts";

/** The founder of the state, and the number of messages since then. */
interface State {
  readonly first: string;
  readonly count: number;
}

type Line =
  /** Replaces the previous state. Messages in between may have been missed. */
  | { readonly given: State }
  | { readonly heard: string; readonly view: number; readonly text: string; readonly state: State }
  /** An acknowledged message. */
  | { readonly sent: string; readonly text: string }
  | { readonly failed: string; readonly text: string }
  /** Helps to diagnose violations. */
  | { readonly is: string; readonly view: number; readonly members: readonly number[] };

interface Message {
  readonly text: string;
  readonly view: number;
  /** For each founder: the number of messages in its state. */
  readonly counts: Map<string, number>;
  /** The next message, the same at all processes that delivered both. */
  next: string | null;
}

/** One process of a member, and the state of reading its output. */
interface Run {
  readonly name: string;
  readonly file: string;
  /** The number of bytes read from its file. */
  read: number;
  /** The first and the last message since the process received a state. Earlier ones may have been missed. */
  first: string | null;
  last: string | null;
  /** The founder of the process's state. */
  founder: string | null;
  lines: Line[];
  /** The number of messages delivered from each process. */
  readonly from: Map<string, number>;
  /** The process's own delivered messages, and acknowledged ones until a later message was delivered. */
  readonly own: Set<string>;
  readonly sent: { readonly id: string; readonly text: string }[];
}

const KEPT_LINES = 50;
const PIECE = Buffer.alloc(1 << 20);

export class Conversation {
  readonly #folder: string;
  /** Processes that may still write. */
  readonly #runs = new Map<string, Run>();
  #entered = 0;
  readonly #messages = new Map<string, Message>();
  /** The id of each text. Texts are unique. */
  readonly #ids = new Map<string, string>();
  readonly #neverSent = new Set<string>();
  readonly #founders = new Set<string>();
  readonly counts = { acknowledged: 0, uncertain: 0, statesGiven: 0 };

  constructor(folder: string) {
    this.#folder = folder;
  }

  get account(): string {
    const { acknowledged, uncertain, statesGiven } = this.counts;
    const said = `${this.#messages.size} messages on a channel of the log, ${acknowledged} acknowledged, ${uncertain} uncertain`;
    return `${said}, of ${this.#entered} processes, which were given the state ${statesGiven} times, and founded one ${this.#founders.size} times`;
  }

  /** @returns the name and the output file of a new process of this member */
  enter(id: number): { readonly name: string; readonly file: string } {
    this.#entered += 1;
    const name = `${id}.${this.#entered}`;
    const file = join(this.#folder, `heard-${name}`);
    this.#runs.set(name, {
      name,
      file,
      read: 0,
      first: null,
      last: null,
      founder: null,
      lines: [],
      from: new Map(),
      own: new Set(),
      sent: [],
    });
    return { name, file };
  }

  /**
   * Waits until each running process has delivered a new message from every process.
   * @throws Error for violations so far
   */
  async progress(names: readonly string[]): Promise<void> {
    this.#hear();
    for (const name of this.#runs.keys()) if (!names.includes(name)) this.#runs.delete(name);
    const before = this.#pairs(names);
    const late = (): string[] => [
      ...[...this.#pairs(names)].flatMap(([who, count]) => (count > (before.get(who) ?? 0) ? [] : [who])),
      ...this.#statesOf(names).slice(1),
    ];
    await until(
      () => `all members hear each other on the channel and have one state, but not ${late().join(", ")}`,
      () => {
        this.#hear();
        return late().length === 0;
      },
    );
  }

  /** The last line of each process. */
  get standing(): string {
    return [...this.#runs.values()].map(({ name, lines }) => `${name}: ${JSON.stringify(lines)}`).join("\n");
  }

  /** @throws Error for violations after all processes have stopped sending */
  end(): void {
    this.#hear();
    for (const run of this.#runs.values())
      for (const { id, text } of run.sent)
        if (run.last !== null && revisionOf(id) < revisionOf(run.last))
          throw new Error(`${text} was acknowledged as ${id}, but no process delivered it`);
    if (this.counts.statesGiven === 0) throw new Error("no process received the state of the channel");
  }

  /** Returns the founders of the states that these processes hold: only one if all agree. */
  #statesOf(names: readonly string[]): string[] {
    return [...new Set(names.map((name) => `the state of ${this.#runs.get(name)?.founder}`))];
  }

  #pairs(names: readonly string[]): Map<string, number> {
    const listeners = names.map((name) => this.#runs.get(name) as Run);
    return new Map(
      listeners.flatMap(({ name, from }) => names.map((speaker) => [`${name} of ${speaker}`, from.get(speaker) ?? 0])),
    );
  }

  #hear(): void {
    for (const run of this.#runs.values()) {
      const lines = this.#linesOf(run);
      run.lines = [...run.lines, ...lines].slice(-KEPT_LINES);
      for (const line of lines) this.#take(run, line);
      this.#requireOwn(run);
    }
  }

  /** Returns the new lines of a run. The last line of the file may be incomplete. */
  #linesOf(run: Run): Line[] {
    let text = "";
    const file = openSync(run.file, "a+"); // The file may not exist yet.
    for (let from = run.read, size = -1; size !== 0; from += size) {
      size = readSync(file, PIECE, 0, PIECE.length, from);
      text += PIECE.toString("latin1", 0, size);
    }
    closeSync(file);
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    run.read += whole.length;
    return whole.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Line]));
  }

  #take(run: Run, line: Line): void {
    if ("given" in line) {
      this.counts.statesGiven += 1;
      run.first = null;
      run.last = null;
      run.founder = line.given.first;
    } else if ("sent" in line) {
      this.counts.acknowledged += 1;
      run.sent.push({ id: line.sent, text: line.text });
    } else if ("failed" in line) {
      if (line.failed !== "never-sent") this.counts.uncertain += 1;
      else if (this.#ids.has(line.text)) throw new Error(`${line.text} was reported as never sent, but was delivered`);
      else this.#neverSent.add(line.text);
    } else if ("heard" in line) this.#deliver(run, line);
  }

  #deliver(run: Run, { heard: id, text, view, state }: Extract<Line, { heard: string }>): void {
    const known = this.#messages.get(id) ?? { text, view, counts: new Map(), next: null };
    this.#messages.set(id, known);
    if (known.text !== text || known.view !== view)
      throw new Error(
        `${run.name} was delivered ${id} as ${text} in view ${view}, another ${known.text} in ${known.view}`,
      );
    const count = known.counts.get(state.first) ?? state.count;
    known.counts.set(state.first, count);
    if (count !== state.count)
      throw new Error(`${run.name} has the state ${state.count} of ${state.first} after ${id}, another has ${count}`);
    this.#founders.add(state.first);
    run.founder = state.first;
    if ((this.#ids.get(text) ?? id) !== id) throw new Error(`${text} is both ${id} and ${this.#ids.get(text)}`);
    this.#ids.set(text, id);
    if (this.#neverSent.has(text))
      throw new Error(`${run.name} was delivered ${text}, although its send was reported as failed`);
    if (run.last !== null) this.#follow(run, run.last, id);
    run.first ??= id;
    run.last = id;
    const speaker = text.split(" ")[0] as string;
    run.from.set(speaker, (run.from.get(speaker) ?? 0) + 1);
    if (speaker === run.name) run.own.add(id);
  }

  #follow(run: Run, before: string, id: string): void {
    if (before === id) throw new Error(`${run.name} was delivered ${id} twice`);
    if (revisionOf(before) > revisionOf(id)) throw new Error(`${run.name} was delivered ${id} behind ${before}`);
    const message = this.#messages.get(before) as Message;
    message.next ??= id;
    if (message.next !== id)
      throw new Error(`behind ${before} ${run.name} was delivered ${id}, and another ${message.next}`);
  }

  /** Requires that every acknowledged message was delivered to its sender, or to the process that sent it the state. */
  #requireOwn({ own, sent, first, last }: Run): void {
    for (const { id, text } of sent.splice(0)) {
      const isIn = (from: string | null): boolean => from !== null && revisionOf(from) <= revisionOf(id);
      const isKnown = own.delete(id) || (!isIn(first) && this.#messages.has(id));
      if (!isKnown && isIn(first) && !isIn(last))
        throw new Error(`${text} was acknowledged as ${id}, and its sender was not delivered it`);
      if (!isKnown) sent.push({ id, text });
      else if (this.#messages.get(id)?.text !== text)
        throw new Error(`${text} was acknowledged as ${id}, which is ${this.#messages.get(id)?.text}`);
    }
  }
}

const revisionOf = (id: string): number => Number(id.split(".")[2]);

/**
 * What members in processes of their own say on a channel of the log, by the lines that `speaking-member.js` writes: all are delivered the
 * same messages in the same order, none twice and none left out, each in one view, and all that have one state have the same after each.
 * There may be another where nobody who had the one was in the group: its founder has it from the messages on that it was waiting with,
 * which others have heard with the one. In the end all have the same.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { until } from "./cluster-under-test.ts";

/** Who was the first to have the state, and how many messages have come since. */
interface State {
  readonly first: string;
  readonly count: number;
}

type Line =
  /** Takes the place of the state that it had: messages may have been missed. */
  | { readonly given: State }
  | { readonly heard: string; readonly view: number; readonly text: string; readonly state: State }
  /** Acknowledged. */
  | { readonly sent: string; readonly text: string }
  | { readonly failed: string; readonly text: string }
  /** For who looks why something is wrong. */
  | { readonly is: string; readonly view: number; readonly members: readonly number[] };

interface Message {
  readonly text: string;
  readonly view: number;
  /** By who was the first to have the state: how many messages had come. */
  readonly counts: Map<string, number>;
  /** What came behind it, with all that were delivered both. */
  next: string | null;
}

/** One process of a member. */
interface Run {
  readonly name: string;
  readonly file: string;
  /** How far its lines have been read, in bytes. */
  read: number;
  /** The first and the last message since it was given a state; some may have been missed before. */
  first: string | null;
  last: string | null;
  /** Who was the first to have its state. */
  founder: string | null;
  lines: Line[];
  /** How many messages of each process it was delivered. */
  readonly from: Map<string, number>;
  /** Its own that it was delivered; and those that were acknowledged, until it was delivered what came later. */
  readonly own: Set<string>;
  readonly sent: { readonly id: string; readonly text: string }[];
}

const KEPT_LINES = 50;
const PIECE = Buffer.alloc(1 << 20);

export class Conversation {
  readonly #folder: string;
  /** Of processes that may still write. */
  readonly #runs = new Map<string, Run>();
  #entered = 0;
  readonly #messages = new Map<string, Message>();
  /** By what was said, which is said once. */
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

  /** @returns how a process of that member is called, and where it writes. */
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

  /** Waits until each of those that run was delivered something new of each of them. @throws for what is wrong so far */
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

  /** The last that each has written. */
  get standing(): string {
    return [...this.#runs.values()].map(({ name, lines }) => `${name}: ${JSON.stringify(lines)}`).join("\n");
  }

  /** @throws for what is wrong, now that nobody is about to say anything more */
  end(): void {
    this.#hear();
    for (const run of this.#runs.values())
      for (const { id, text } of run.sent)
        if (run.last !== null && revisionOf(id) < revisionOf(run.last))
          throw new Error(`${text} was acknowledged as ${id}, and nobody was delivered it`);
    if (this.counts.statesGiven === 0) throw new Error("nobody was given the state of the channel");
  }

  /** By their founders: one, if all have the same. */
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

  /** Those that it has written since; the last one may be in the making. */
  #linesOf(run: Run): Line[] {
    let text = "";
    const file = openSync(run.file, "a+"); // It may not have begun.
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
      else if (this.#ids.has(line.text)) throw new Error(`${line.text} was said never to be sent, and was delivered`);
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
      throw new Error(`${run.name} was delivered ${text}, which was said never to be sent`);
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

  /** What was acknowledged was delivered to its sender, or to the one that gave it the state. */
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

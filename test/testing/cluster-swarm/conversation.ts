/**
 * Members that replicate a state over a channel on the log, and the properties that must hold while members come and
 * go.
 */
import type { Channel, Member } from "../../../src/index.ts";
import { CoordinationError } from "../../../src/index.ts";
import type { ProcessTools } from "../../../src/testing/index.ts";

const OPTIONS = { order: "total", transport: "log" } as const;

interface Heard {
  readonly id: string;
  readonly view: number;
  readonly text: string;
}

/** A process, while it is running. */
interface Listener {
  readonly name: string;
  /** The messages delivered to the process since it started reading. */
  readonly heard: Heard[];
  /** The view changes that it went through together with other processes. */
  readonly passed: (readonly [view: number, next: number])[];
  state: State;
}

interface State {
  /** The process that created the state. */
  readonly founder: string;
  /** All messages contained in the state. */
  readonly line: readonly string[];
}

export class Conversation {
  readonly #listeners: Listener[] = [];
  /** The name of each process, which depends only on the seed. */
  readonly #names = new Map<Member, string>();
  /** Acknowledged messages with their senders, and messages that were reported as never sent. */
  readonly #sent: { readonly by: Listener; readonly id: string; readonly text: string }[] = [];
  readonly #neverSent = new Set<string>();
  /**
   * For each founder, the state after each message, as seen by the processes that hold it. If no member of the group
   * holds a state, a new one is founded, which begins with the messages that its founder held back. Other processes
   * applied those messages to the previous state.
   */
  readonly #lines = new Map<string, string>();
  /** The first violation that was found. */
  #wrong: Error | null = null;
  #said = 0;
  #states = 0;

  /**
   * How many messages were acknowledged, how many times a member moved to the next view together with others, and how
   * many states were transferred.
   */
  get counts(): { readonly messages: number; readonly viewsPassed: number; readonly statesGiven: number } {
    const viewsPassed = this.#listeners.reduce((sum, { passed }) => sum + passed.length, 0);
    return { messages: this.#sent.length, viewsPassed, statesGiven: this.#states };
  }

  /** Returns the activity that a process repeats. The process starts listening the first time it is run. */
  speaker(member: Member, tools: ProcessTools): () => Promise<void> {
    let listener: Listener | null = null;
    return () => {
      listener ??= this.#listen(member);
      return this.#say(member, listener, tools);
    };
  }

  /** @throws Error if deliveries or states differ */
  async requireAlike(
    members: readonly Member[],
    sleep: (ms: number) => Promise<void>,
    mayWait: () => boolean,
  ): Promise<void> {
    this.#requireRight();
    const listeners = members.flatMap(
      (member) => this.#listeners.findLast(({ name }) => name === this.#nameOf(member)) ?? [],
    );
    const [first] = members;
    if (listeners.length > 0 && first !== undefined) {
      await room(first).send("the end", { timeoutMs: 10_000 });
      const isThere = ({ state }: Listener): boolean => state.line.includes("the end");
      while (!listeners.every(isThere) && mayWait()) await sleep(20);
      const late = listeners.find((each) => !isThere(each));
      if (late !== undefined) throw new Error(`${late.name} did not hear the end of the conversation`);
    }
    this.#requireRight();
    const lines = listeners.map(({ state }) => String(state.line));
    if (new Set(lines).size > 1) throw new Error(`the final states differ: ${lines.join(" | ")}`);
    this.#judge();
  }

  #requireRight(): void {
    if (this.#wrong !== null) throw this.#wrong;
  }

  #nameOf(member: Member): string {
    const name = this.#names.get(member) ?? `${member.id}/${this.#names.size + 1}`;
    this.#names.set(member, name);
    return name;
  }

  #listen(member: Member): Listener {
    const name = this.#nameOf(member);
    const listener: Listener = { name, heard: [], passed: [], state: { founder: name, line: [] } };
    this.#listeners.push(listener);
    const channel = room(member);
    const unexpected = (error: unknown): void => {
      if (!(error instanceof CoordinationError)) this.#wrong ??= error as Error;
    };
    this.#hear(channel, listener).catch(unexpected);
    this.#look(channel, listener).catch(unexpected);
    this.#keep(channel, listener).catch(unexpected);
    return listener;
  }

  async #hear(channel: Channel<string>, { heard }: Listener): Promise<void> {
    for await (const { id, view, payload } of channel) heard.push({ id, view, text: payload });
  }

  async #look(channel: Channel<string>, { passed }: Listener): Promise<void> {
    let before: number | null = null;
    for await (const { view, state } of channel.views()) {
      if (state === "stalled" || view === null) continue;
      if (state !== "member") before = null;
      else if (before !== null && before !== view) passed.push([before, view]);
      if (state === "member") before = view;
    }
  }

  async #keep(channel: Channel<string>, listener: Listener): Promise<void> {
    for await (const said of channel.read<State>({ state: () => listener.state })) {
      if ("state" in said) {
        listener.state = said.state;
        this.#states += 1;
        continue;
      }
      const { founder, line } = listener.state;
      listener.state = { founder, line: [...line, said.payload] };
      this.#note(said.id, listener);
    }
  }

  /** Checks that all processes that hold a state have the same contents after a message. */
  #note(id: string, { name, state }: Listener): void {
    const place = `${id} of ${state.founder}`;
    const text = String(state.line);
    const known = this.#lines.get(place) ?? text;
    if (known !== text) throw new Error(`${name} has the state ${text} after ${place}, another has ${known}`);
    this.#lines.set(place, text);
  }

  async #say(member: Member, by: Listener, { random }: ProcessTools): Promise<void> {
    this.#said += 1;
    const text = `${by.name} ${this.#said}`;
    try {
      const { id } = await room(member).send(text, { timeoutMs: 300 + random() * 1_500 });
      this.#sent.push({ by, id, text });
    } catch (error) {
      if (error instanceof CoordinationError && error.phase === "never-sent") this.#neverSent.add(text);
      throw error;
    }
  }

  #judge(): void {
    const texts = new Map<string, string>();
    for (const { name, heard } of this.#listeners) {
      let last = -1;
      const had = new Set<string>();
      for (const { id, view, text } of heard) {
        const [, , revision = "0"] = id.split(".");
        if (Number(revision) < last) throw new Error(`${name} was delivered ${text} behind what came after it`);
        last = Number(revision);
        if (had.has(text)) throw new Error(`${name} was delivered ${text} twice`);
        had.add(text);
        if ((texts.get(id) ?? text) !== text)
          throw new Error(`${id} is ${text} at ${name}, and ${texts.get(id)} elsewhere`);
        texts.set(id, text);
        if (this.#neverSent.has(text))
          throw new Error(`${name} was delivered ${text}, which was said never to be sent`);
        if (view > Number(revision)) throw new Error(`${text} was delivered in view ${view}, which came after it`);
      }
    }
    for (const { by, id, text } of this.#sent)
      if (!by.heard.some((each) => each.id === id && each.text === text))
        throw new Error(`${text} was acknowledged as ${id}, and its sender was not delivered it`);
    this.#holdViews();
  }

  /**
   * Checks that all members that moved together from one view to the next delivered the same messages in the first one.
   */
  #holdViews(): void {
    const inView = new Map<string, string>();
    for (const { name, heard, passed } of this.#listeners)
      for (const [view, next] of passed) {
        const place = `${view} to ${next}`;
        const delivered = heard.flatMap((each) => (each.view === view ? [each.text] : [])).join();
        const known = inView.get(place) ?? delivered;
        if (known !== delivered)
          throw new Error(`from view ${place} ${name} was delivered ${delivered}, another ${known}`);
        inView.set(place, delivered);
      }
  }
}

const room = (member: Member): Channel<string> => member.channel<string>("room", OPTIONS);

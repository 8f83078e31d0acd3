/**
 * Members that use permits, read-write locks, barriers and user-defined state machines under faults. Every use is
 * checked as it happens.
 */
import type { Member, Replicated } from "../../../src/index.ts";
import type { ProcessTools } from "../../../src/testing/index.ts";
import type { ExclusiveUse } from "../exclusive-use.ts";
import { Conversation } from "./conversation.ts";

const PERMITS = 3;
const PARTIES = 2;
/** More than the number of concurrent readers. A writer takes all permits. */
const READERS = 1_000;
/** Long enough to need several commands in the log. */
const LARGE_CHARS = 300_000;
const MAX_LARGE = 5;
const WITHIN = { timeoutMs: 60_000 };

/** All kinds of work. Each seed uses some of them. */
export const workKinds = ["permits", "pages", "barrier", "machine", "large", "channel"] as const;
export type WorkKind = (typeof workKinds)[number];

type Appended = Replicated<readonly string[], string, number>;

/** Appends a value, and returns its position. */
const journal = {
  init: (): readonly string[] => [],
  apply: (state: readonly string[], command: string) => [[...state, command], state.length] as const,
};

export class SharedWork {
  readonly conversation = new Conversation();
  readonly #exclusive: ExclusiveUse;
  readonly #runsStill: (member: Member) => boolean;
  readonly #kinds: readonly WorkKind[];
  /** For each generation of the barrier, the number of arrivals that passed. */
  readonly #passed = new Map<number, number>();
  /** The position of each acknowledged command in the state machine. */
  readonly #appended = new Map<string, number>();
  #commands = 0;
  #largeItems = 0;
  readonly #largeDone = new Set<string>();

  constructor(exclusive: ExclusiveUse, runsStill: (member: Member) => boolean, kinds: readonly WorkKind[]) {
    this.#exclusive = exclusive;
    this.#runsStill = runsStill;
    this.#kinds = kinds;
  }

  /** How often members have passed the barrier, had a command acknowledged, and so on. */
  get counts(): Readonly<Record<string, number>> {
    const { size: passed } = this.#passed;
    return { passed, commands: this.#appended.size, large: this.#largeDone.size, ...this.conversation.counts };
  }

  /** Returns a process's activities for the kinds of work that this seed uses. */
  kindsFor(member: Member, tools: ProcessTools): (() => Promise<void>)[] {
    const kinds: Readonly<Record<WorkKind, () => Promise<void>>> = {
      permits: () => this.#takePermits(member, tools),
      pages: () => this.#readOrWrite(member, tools),
      barrier: () => this.#arrive(member, tools),
      machine: () => this.#execute(member.replicated("journal", journal)),
      large: () => this.#passLarge(member, tools),
      channel: this.conversation.speaker(member, tools),
    };
    return this.#kinds.map((kind) => kinds[kind]);
  }

  /**
   * Checks that every acknowledged command occurs exactly once, at its reported position.
   * @throws Error if this is not the case
   */
  async requireAppended(member: Member): Promise<void> {
    const state = await member.replicated("journal", journal).read(WITHIN);
    if (new Set(state).size < state.length) throw new Error("a command of the state machine was applied twice");
    for (const [command, place] of this.#appended)
      if (state[place] !== command)
        throw new Error(`${command} was acknowledged at position ${place}, which holds ${state[place]}`);
  }

  /**
   * Passes large items through a queue. Each item contains its own length, so that partial items are detected, and no
   * item may be marked as done twice. A map would discard changes that watches still need.
   */
  async #passLarge(member: Member, tools: ProcessTools): Promise<void> {
    const queue = member.queue<string>("large");
    if ((await queue.size({ timeoutMs: 1_000 })) < MAX_LARGE) {
      this.#largeItems += 1;
      const length = Math.floor(tools.random() * LARGE_CHARS);
      await queue.add(`${this.#largeItems} ${length} ${"x".repeat(length)}`, { timeoutMs: 2_000 });
    }
    const item = await queue.take({ timeoutMs: 2_000 });
    const [number = "", length, text = ""] = item.item.split(" ");
    if (Number(length) !== text.length) throw new Error(`an item of ${length} characters is read with ${text.length}`);
    await item.done({ timeoutMs: 1_000 });
    if (this.#largeDone.has(number)) throw new Error(`the large item ${number} was done twice`);
    this.#largeDone.add(number);
  }

  async #takePermits(member: Member, tools: ProcessTools): Promise<void> {
    const permits = 1 + Math.floor(tools.random() * PERMITS);
    const semaphore = member.semaphore("seats", { permits: PERMITS });
    const grant = await semaphore.acquire({ timeoutMs: 200 + tools.random() * 2_000, permits });
    const room = { permits, capacity: PERMITS };
    this.#exclusive.enter("the semaphore", member.id, grant, tools.now, () => this.#runsStill(member), room);
    await tools.sleep(tools.random() * 300);
    await grant.release();
  }

  async #readOrWrite(member: Member, tools: ProcessTools): Promise<void> {
    const lock = member.readWriteLock("page");
    const writes = tools.random() < 0.3;
    const within = { timeoutMs: 200 + tools.random() * 2_000 };
    const grant = writes ? await lock.write(within) : await lock.read(within);
    const room = { permits: writes ? READERS : 1, capacity: READERS };
    this.#exclusive.enter("the read-write lock", member.id, grant, tools.now, () => this.#runsStill(member), room);
    await tools.sleep(tools.random() * 200);
    await grant.release();
  }

  async #arrive(member: Member, tools: ProcessTools): Promise<void> {
    const barrier = member.barrier("start", { parties: PARTIES });
    const generation = await barrier.arrive({ timeoutMs: 200 + tools.random() * 2_000 });
    const count = (this.#passed.get(generation) ?? 0) + 1;
    this.#passed.set(generation, count);
    if (count > PARTIES) throw new Error(`${count} have passed the barrier with ${generation}, ${PARTIES} may`);
  }

  async #execute(machine: Appended): Promise<void> {
    this.#commands += 1;
    const command = `command ${this.#commands}`;
    const place = await machine.execute(command, { timeoutMs: 1_000 });
    this.#appended.set(command, place);
  }
}

/** Members that share state under random faults: what is acknowledged stands, each command is done once, watches have no gap, and no two hold what is one's. */
import { type Change, CoordinationError, type Member } from "../../src/index.ts";
import { type ProcessTools, simulate, type World, type WorldOptions } from "../../src/testing/index.ts";
import { ExclusiveUse } from "./exclusive-use.ts";
import { MemberChanges } from "./member-changes.ts";
import { SavedState } from "./saved-state.ts";
import { SharedWork } from "./shared-work.ts";

/** So long after the last fault has begun all is mended. */
const MENDED_MS = 3_500;
/** Of so many seeds one has large items, which take much work. */
const LARGE_EVERY = 5;
const WELL_WITHIN_MS = 60_000;

/** What one process was told by its watch. */
interface Watched {
  readonly changes: Change<number>[];
}

/** Members that become those of another release, one by one. */
export interface Upgrade extends Pick<Required<WorldOptions>, "release"> {
  isUpgraded(id: number): boolean;
  run(world: World): Promise<void>;
}

export interface SharedResult {
  readonly grants: number;
  readonly writes: number;
  readonly changes: number;
  readonly faults: number;
  readonly memberChanges: number;
  readonly passed: number;
  readonly commands: number;
  readonly large: number;
}

class SharedSwarm {
  readonly #world: World;
  readonly #exclusive: ExclusiveUse;
  readonly #work: SharedWork;
  readonly #watched: Watched[] = [];
  /** Of the counter: added for certain, and perhaps. */
  #added = 0;
  #perhaps = 0;
  /** By key: the last value that was acknowledged. Each key has one writer, which only counts up. */
  readonly #acknowledged = new Map<string, number>();
  /** Items of the queue that are done for certain. */
  readonly #done: string[] = [];
  #writes = 0;
  #runs = 0;
  #isEnding = false;
  #isRestored = false;
  #changes = 0;
  /** In the end. */
  #listed: readonly number[] = [];

  constructor(
    private readonly seed: number,
    private readonly faultsMs: number,
    private readonly changesMembers: boolean,
    private readonly upgrade: Upgrade | null,
  ) {
    this.#world = simulate({
      members: 3 + 2 * (seed % 2),
      seed,
      faults: { forMs: faultsMs },
      ...(upgrade === null ? {} : { release: upgrade.release }),
      program: (member, tools) => this.#live(member, tools),
    });
    this.#exclusive = new ExclusiveUse(() => this.#world.now());
    this.#work = new SharedWork(
      this.#exclusive,
      () => this.#isEnding,
      (member) => this.#runsStill(member),
      unlessCoordination,
      ({ id }) => seed % LARGE_EVERY === 0 && upgrade?.isUpgraded(id) !== false,
    );
  }

  async run(): Promise<SharedResult> {
    const world = this.#world;
    await world.run(async () => {
      const changes = this.changesMembers ? new MemberChanges(world, this.seed) : null;
      const changing = changes?.goOn(this.faultsMs);
      const upgrading = this.upgrade?.run(world);
      const saved = new SavedState(world, () => ({
        acknowledged: new Map(this.#acknowledged),
        added: this.#added,
      }));
      const saving = saved.save(this.seed, this.faultsMs);
      await world.sleep(this.faultsMs + MENDED_MS);
      await changing;
      await upgrading;
      await saving;
      this.#changes = changes?.count ?? 0;
      this.#listed = (await changes?.end()) ?? world.members;
      this.#isEnding = true;
      await this.#endsWell();
      this.#isRestored = true;
      await saved.restore(this.#listed);
    });
    const changes = this.#watched.reduce((sum, watched) => sum + watched.changes.length, 0);
    const [grants, memberChanges] = [this.#exclusive.count, this.#changes];
    return { grants, writes: this.#writes, changes, faults: world.plan.length, memberChanges, ...this.#work.counts };
  }

  async #live(member: Member, tools: ProcessTools): Promise<void> {
    if (this.#isRestored) return; // What lives in the new cluster is looked at from outside.
    this.#runs += 1;
    const run = `run ${this.#runs}`;
    await Promise.all([
      this.#write(member, tools, run),
      this.#count(member, tools),
      this.#lock(member, tools),
      this.#watch(member),
      this.#queue(member, tools, run),
      this.#work.live(member, tools),
    ]);
  }

  async #write(member: Member, tools: ProcessTools, run: string): Promise<void> {
    const map = member.map<number>("numbers");
    for (let value = 1; !this.#isEnding; value++) {
      await unlessCoordination(async () => {
        await map.put(run, value, { timeoutMs: 1_000 });
        this.#writes += 1;
        this.#acknowledged.set(run, value);
        const found = await map.get(run, { timeoutMs: 1_000 });
        if (found === undefined || found < value) throw new Error(`${run} has put ${value}, and reads ${found}`);
      });
      await tools.sleep(tools.random() * 200);
    }
  }

  async #count(member: Member, tools: ProcessTools): Promise<void> {
    const counter = member.counter("all");
    let last = 0;
    while (!this.#isEnding) {
      this.#perhaps += 1;
      await unlessCoordination(
        async () => {
          const value = await counter.add(1, { timeoutMs: 500 });
          if (value <= last) throw new Error(`a counter that only grows was ${last}, and then ${value}`);
          last = value;
          this.#added += 1;
        },
        ({ phase }) => {
          if (phase === "never-sent") this.#perhaps -= 1;
        },
      );
      await tools.sleep(tools.random() * 200);
    }
  }

  async #lock(member: Member, tools: ProcessTools): Promise<void> {
    const mutex = member.mutex("one", { algorithm: "raft" });
    while (!this.#isEnding) {
      await unlessCoordination(async () => {
        const grant = await mutex.acquire({ timeoutMs: 200 + tools.random() * 3_000 });
        this.#exclusive.enter("the lock", member.id, grant, tools.now, () => this.#runsStill(member));
        await tools.sleep(tools.random() * 300);
        await grant.release();
      });
      await tools.sleep(tools.random() * 200);
    }
  }

  async #watch(member: Member): Promise<void> {
    const watched: Watched = { changes: [] };
    this.#watched.push(watched);
    for await (const change of member.map<number>("numbers").watch({ after: 0 })) watched.changes.push(change);
  }

  async #queue(member: Member, tools: ProcessTools, run: string): Promise<void> {
    const queue = member.queue<string>("items");
    for (let number = 1; !this.#isEnding; number++) {
      await unlessCoordination(async () => {
        const name = `${run} item ${number}`;
        await queue.add(name, { timeoutMs: 1_000 });
        const item = await queue.take({ timeoutMs: 2_000 });
        await tools.sleep(tools.random() * 100);
        await item.done({ timeoutMs: 1_000 });
        this.#done.push(item.item);
      });
      await tools.sleep(tools.random() * 300);
    }
  }

  async #endsWell(): Promise<void> {
    const world = this.#world;
    const within = { timeoutMs: WELL_WITHIN_MS };
    for (const id of this.#listed) while (!world.isUp(id)) await world.sleep(50);
    for (const id of this.#listed) await this.#knowsAll(world.member(id));
    for (const id of this.#listed) await this.#work.requireAppended(world.member(id));
    const [first] = this.#listed;
    const member = world.member(first as number);
    const total = await member.counter("all").get(within);
    if (total < this.#added || total > this.#perhaps)
      throw new Error(`the counter is ${total}, of ${this.#added} additions for certain and ${this.#perhaps} at most`);
    if (new Set(this.#done).size < this.#done.length) throw new Error("an item was done twice");
    const queue = member.queue<string>("items");
    while ((await queue.size(within)) > 0) {
      const item = await queue.take(within);
      await item.done(within);
    }
    await member.map<number>("numbers").put("end", 0, within);
    await world.sleep(2_000);
    this.#watchesAgree();
  }

  async #knowsAll(member: Member): Promise<void> {
    const map = member.map<number>("numbers");
    for (const [key, value] of this.#acknowledged) {
      const found = await map.get(key, { timeoutMs: WELL_WITHIN_MS });
      const isKnown = found !== undefined && found >= value;
      if (!isKnown) throw new Error(`${key} was ${value} for certain, and is ${found}`);
    }
  }

  /** All have begun at the beginning, so each was told a beginning of the same; those that run still, all of it. */
  #watchesAgree(): void {
    const longest = this.#watched.reduce(
      (most, { changes }) => (changes.length > most.length ? changes : most),
      [] as Change<number>[],
    );
    for (const { changes } of this.#watched)
      for (const [at, change] of changes.entries())
        if (JSON.stringify(change) !== JSON.stringify(longest[at]))
          throw new Error(
            `change ${at} is ${JSON.stringify(change)} for one and ${JSON.stringify(longest[at])} for another`,
          );
    const whole = this.#watched.filter(({ changes }) => changes.some(({ key }) => key === "end")).length;
    if (whole < this.#listed.length) throw new Error(`${whole} watches have seen the end`);
  }

  #runsStill(member: Member): boolean {
    return this.#world.isUp(member.id) && this.#world.member(member.id) === member;
  }
}

/** @param faultsMs for so long faults begin. */
export const sharedSwarm = (
  seed: number,
  faultsMs: number,
  { changesMembers = false, upgrade = null }: { changesMembers?: boolean; upgrade?: Upgrade | null } = {},
): Promise<SharedResult> => new SharedSwarm(seed, faultsMs, changesMembers, upgrade).run();

/** What a program has to expect does not end it. */
async function unlessCoordination(
  act: () => unknown,
  see: (error: CoordinationError) => void = () => {},
): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof CoordinationError)) throw error;
    see(error);
  }
}

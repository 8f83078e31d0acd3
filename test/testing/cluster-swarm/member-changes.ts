/** Members that are added, promoted, removed, replaced and moved at random, while others work and faults strike. */
import { type Random, random } from "../../../src/core/random.ts";
import { type ClusterMember, CoordinationError, type Member, UsageError } from "../../../src/index.ts";
import type { World } from "../../../src/testing/index.ts";

const WITHIN = { timeoutMs: 1_500 };
const WELL_WITHIN = { timeoutMs: 60_000 };
/** What one change takes at most, unless its process dies. */
const LONGEST_MS = 5_000;
/** Seven at most, as at the beginning. */
const MAX_VOTERS = 7;
const MIN_VOTERS = 3;

export class MemberChanges {
  readonly #world: World;
  /** Those that were taken. */
  count = 0;
  /** Of these, of several members at once. */
  several = 0;
  #next = 11;
  readonly #chance: Random;
  /** Newcomers that are down, and come back. */
  readonly #down = new Set<number>();
  /** Those that are to be moved, and it is not known whether the list says so: whoever moves one asks until it is done. */
  readonly #moving = new Set<number>();
  /** Who asked for changes that were not answered: they may be done yet. */
  readonly #unanswered = new Set<number>();
  /** Who was asked last. */
  #asked = 0;

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#chance = random(seed).stream("members");
  }

  async goOn(forMs: number): Promise<void> {
    const world = this.#world;
    const until = world.now() + forMs;
    while (world.now() < until) {
      await world.sleep(this.#chance.between(50, 600));
      try {
        await this.#unlessItDies(this.#changeOne(), 2 * LONGEST_MS);
      } catch (error) {
        if (!isExpected(error)) throw error;
      }
    }
  }

  /** All are back. @returns who is on the list. */
  async end(): Promise<readonly number[]> {
    const world = this.#world;
    for (const id of this.#moving) await this.#move(id);
    for (const id of this.#down) void this.#back(id);
    for (const id of world.members)
      if (!world.isUp(id) && (await this.#list()).some((each) => each.id === id)) await this.#back(id);
    for (const id of this.#unanswered) if (world.isUp(id)) await this.#unlessGone(id, outlast);
    return this.#ask(async ({ cluster }) => {
      await cluster.settled(WELL_WITHIN);
      return (await cluster.members(WELL_WITHIN)).map(({ id }) => id);
    });
  }

  /** Of somebody who is a member, and of another where that one dies meanwhile, or was removed. */
  async #ask<T>(what: (member: Member) => Promise<T>): Promise<T> {
    for (;;) {
      const id = await this.#anybody(WELL_WITHIN.timeoutMs);
      if (id === null) throw new Error(`no member knew a leader for ${WELL_WITHIN.timeoutMs} ms`);
      const found = await this.#unlessGone(id, what);
      if (found !== null) return found.value;
    }
  }

  async #unlessGone<T>(id: number, what: (member: Member) => Promise<T>): Promise<{ readonly value: T } | null> {
    const world = this.#world;
    let isAsking = true;
    const gone = async (member: Member): Promise<null> => {
      while (isAsking && world.isUp(id) && world.member(id) === member) await world.sleep(20);
      return null;
    };
    try {
      const member = world.member(id);
      return await Promise.race([what(member).then((value) => ({ value })), gone(member)]);
    } catch (error) {
      const { code } = error as { code?: string };
      if (code !== "member-removed" && code !== "not-running") throw error;
      return null;
    } finally {
      isAsking = false;
    }
  }

  /** Of a process that dies nothing comes any more. */
  #unlessItDies<T>(work: Promise<T>, longestMs = LONGEST_MS): Promise<T | null> {
    return Promise.race([work, this.#world.sleep(longestMs, null)]);
  }

  async #changeOne(): Promise<void> {
    const world = this.#world;
    const id = await this.#anybody(LONGEST_MS);
    if (id === null) return; // While two halves are of different releases, nobody leads.
    this.#asked = id;
    const by = world.member(id);
    const list = await by.cluster.members(WITHIN);
    const voters = list.filter(({ role }) => role === "voter");
    const some = (of: readonly ClusterMember[]): ClusterMember | undefined => of[this.#chance.below(of.length || 1)];
    const victim = some(list);
    const learner = some(list.filter(({ role }) => role === "learner"));
    switch (this.#chance.below(8)) {
      case 0:
        if (voters.length < MAX_VOTERS) await this.#enter((at) => by.cluster.add(at, WITHIN));
        return;
      case 1:
        if (list.length < MAX_VOTERS + 2) await this.#enter((at) => by.cluster.add(at, { ...WITHIN, learner: true }));
        return;
      case 2:
        if (learner !== undefined) await this.#done(by.cluster.promote(learner.id, WITHIN));
        return;
      case 3:
        if (victim === undefined || (victim.role === "voter" && voters.length <= MIN_VOTERS)) return;
        return this.#done(by.cluster.remove(victim.id, WITHIN));
      case 4:
        if (victim?.role === "voter") await this.#enter((at) => by.cluster.replace(victim.id, at, WITHIN));
        return;
      case 5:
        return this.#crashNewcomer(list);
      case 6:
        if (victim !== undefined && victim.id > 10 && world.isUp(victim.id)) {
          for (const each of [this.#down, this.#moving]) each.add(victim.id);
          await world.move(victim.id, WITHIN);
          for (const each of [this.#down, this.#moving]) each.delete(victim.id);
          this.count += 1;
        }
        return;
      case 7:
        if (victim?.role === "voter" && voters.length < MAX_VOTERS) await this.#changeSeveral(by, victim.id);
    }
  }

  /** Null as well if the process that was asked dies: it may be done then, so the newcomers start all the same. */
  async #done(change: Promise<void>): Promise<void> {
    try {
      if ((await this.#unlessItDies(change.then(() => true))) !== null) this.count += 1;
    } catch (error) {
      if (error instanceof CoordinationError && error.phase === "uncertain") this.#unanswered.add(this.#asked);
      throw error;
    }
  }

  async #enter(add: (at: { id: number; address: string }) => Promise<void>): Promise<void> {
    const id = this.#next;
    this.#next += 1;
    try {
      await this.#done(add({ id, address: this.#world.address(id) }));
    } catch (error) {
      if (!(error instanceof CoordinationError) || error.phase === "never-sent") throw error;
    }
    this.#start(id);
  }

  #start(id: number): void {
    void this.#world.enter(id).catch(() => {}); // It may be removed, or its machine fail, before it has joined.
  }

  /** Two come, and one goes in the same step. Of the two one may be a learner. */
  async #changeSeveral(by: Member, goes: number): Promise<void> {
    const [one, other] = [this.#next, this.#next + 1];
    this.#next += 2;
    const learner = this.#chance.below(2) === 0;
    const added = (id: number) => ({ type: "add", id, address: this.#world.address(id) }) as const;
    try {
      await this.#done(
        by.cluster.change([added(one), { ...added(other), learner }, { type: "remove", id: goes }], WITHIN),
      );
      this.several += 1;
    } catch (error) {
      if (!(error instanceof CoordinationError) || error.phase === "never-sent") throw error;
    }
    for (const id of [one, other]) this.#start(id);
  }

  async #crashNewcomer(list: readonly ClusterMember[]): Promise<void> {
    const world = this.#world;
    const newcomer = list.find(({ id }) => id > 10 && world.isUp(id));
    if (newcomer === undefined) return;
    world.crash(newcomer.id);
    this.#down.add(newcomer.id);
    await world.sleep(this.#chance.between(100, 1_500));
    await this.#back(newcomer.id);
  }

  async #move(id: number): Promise<void> {
    try {
      await this.#ask(({ cluster }) => cluster.move(id, this.#world.address(id), WELL_WITHIN));
    } catch (error) {
      if (!isExpected(error)) throw error; // It may have been removed.
    }
  }

  async #back(id: number): Promise<void> {
    this.#down.delete(id);
    try {
      await this.#world.restart(id);
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
  }

  #list(): Promise<readonly ClusterMember[]> {
    return this.#ask(({ cluster }) => cluster.members(WELL_WITHIN));
  }

  /** Who knows a leader: two that were removed while they were down may know nobody but each other. */
  async #anybody(withinMs: number): Promise<number | null> {
    const world = this.#world;
    for (const limit = world.now() + withinMs; world.now() < limit; ) {
      const up = world.members.filter((id) => world.isUp(id) && world.member(id).status().leader !== null);
      const id = up[this.#chance.below(up.length || 1)];
      if (id !== undefined) return id;
      await world.sleep(50);
    }
    return null;
  }
}

/** What a member asked for before is done by then, or never: the log takes the commands of a session in their order. */
const outlast = (member: Member): Promise<unknown> => member.map("outlasted").put("by", member.id, WELL_WITHIN);

const ORDINARY = ["unknown-member", "member-exists", "member-removed", "not-running", "already-running"];
const isExpected = (error: unknown): boolean =>
  error instanceof CoordinationError ||
  (error instanceof UsageError && ORDINARY.includes(error.code)) ||
  (error as { code?: string }).code === "member-removed";

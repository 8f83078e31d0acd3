/** Adds, promotes, removes, replaces and moves members at random while others are working and faults occur. */
import { type Random, random } from "../../../src/core/random.ts";
import { type ClusterMember, CoordinationError, type Member, UsageError } from "../../../src/index.ts";
import type { World } from "../../../src/testing/index.ts";

const WITHIN = { timeoutMs: 1_500 };
const WELL_WITHIN = { timeoutMs: 60_000 };
/** The maximum duration of a change, unless the process that was called dies. */
const LONGEST_MS = 5_000;
/** The maximum number of voters, which is also the maximum at the beginning of a run. */
const MAX_VOTERS = 7;
const MIN_VOTERS = 3;

export class MemberChanges {
  readonly #world: World;
  /** The number of changes that have been applied. */
  count = 0;
  /** The number of changes that affected several members at once. */
  several = 0;
  #next = 11;
  readonly #chance: Random;
  /** New members that have crashed and will be restarted later. */
  readonly #down = new Set<number>();
  /** Members whose move may not be in the member list yet. The caller repeats the move until it is. */
  readonly #moving = new Set<number>();
  /** Members with change requests that were not answered and may still take effect. */
  readonly #unanswered = new Set<number>();
  /** The member that received the most recent request. */
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

  /**
   * Restarts all members.
   * @returns the listed members
   */
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

  /** Calls a member, or another one if the first dies during the call or has been removed. */
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

  /** Resolves with null after `longestMs`, because a call to a process that dies never settles. */
  #unlessItDies<T>(work: Promise<T>, longestMs = LONGEST_MS): Promise<T | null> {
    return Promise.race([work, this.#world.sleep(longestMs, null)]);
  }

  async #changeOne(): Promise<void> {
    const world = this.#world;
    const id = await this.#anybody(LONGEST_MS);
    if (id === null) return; // If each half is running a different release, the log has no leader.
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

  /**
   * Waits for the change and counts it. Also resolves if the process that was called dies. The change may have taken
   * effect by then, so the new members are started anyway.
   */
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
    void this.#world.enter(id).catch(() => {}); // The member may be removed, or its machine may fail, before it joins.
  }

  /** Adds two members and removes one in the same step. One of the two may be a learner. */
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
      if (!isExpected(error)) throw error; // The member may have been removed.
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

  /**
   * Returns a member that knows who the leader is. Two members that were removed while they were down may know only
   * each other.
   */
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

/**
 * Waits until the member's earlier requests either have taken effect or never will. The log applies a session's
 * commands in order.
 */
const outlast = (member: Member): Promise<unknown> => member.map("outlasted").put("by", member.id, WELL_WITHIN);

const ORDINARY = ["unknown-member", "member-exists", "member-removed", "not-running", "already-running"];
const isExpected = (error: unknown): boolean =>
  error instanceof CoordinationError ||
  (error instanceof UsageError && ORDINARY.includes(error.code)) ||
  (error as { code?: string }).code === "member-removed";

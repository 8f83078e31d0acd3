/**
 * After all faults have ended, checks that every process makes progress within a time limit, that other processes take
 * over the grants of a crashed member or client within a time limit, and that no other process loses its session.
 */
import type { Random } from "../../../src/core/random.ts";
import { CoordinationError, type Grant, type Member } from "../../../src/index.ts";
import type { World } from "../../../src/testing/index.ts";
import { isMember, type Participant } from "./participant.ts";

/**
 * The maximum time from the end of the last fault until all processes are running, membership changes have taken
 * effect, and each process has written and has acquired a lock. A fault lasts at most 3 s, but two can occur in a row
 * on the same link, so TCP resends lost data up to 6.4 s after the link has healed, unless a new connection is dialed
 * sooner. The time between two attempts to dial (at most 1 s) and an election are added to this.
 */
const PROGRESS_MS = 8_000;
/**
 * A member's session lasts 0.4 s, or 5 s by default, plus 5 % to allow for drift of either clock. The leader checks
 * sessions every 25 or 100 ms. The time for a message and a log entry is added to this.
 */
const MEMBER_GONE_MS = { fast: 1_000, default: 6_500 } as const;
/** With `fast`, sessions expire in most runs. `default` is the timing that users get by default. */
export type SwarmTiming = keyof typeof MEMBER_GONE_MS;
/** A client's session lasts 3 s, with the same margin for clocks. */
const CLIENT_GONE_MS = 4_000;

const WITHIN = { timeoutMs: 60_000 };

export interface CalmResult {
  /**
   * The longest time until a process made progress, and the longest time until another process took over from a crashed
   * member and from a crashed client.
   */
  readonly progressMs: number;
  readonly memberGoneMs: number;
  readonly clientGoneMs: number;
}

interface Kept {
  readonly participant: Participant;
  readonly grant: Grant;
}

export class Calm {
  readonly #world: World;
  readonly #present: () => readonly Participant[];
  readonly #expected: readonly number[];
  readonly #chance: Random;
  readonly #timing: SwarmTiming;
  constructor(
    world: World,
    /** Returns the participants that are currently running. */
    present: () => readonly Participant[],
    /** The machine ids of the listed members and the clients. */
    expected: readonly number[],
    chance: Random,
    timing: SwarmTiming,
  ) {
    this.#world = world;
    this.#present = present;
    this.#expected = expected;
    this.#chance = chance;
    this.#timing = timing;
  }

  /** The lock may belong to a crashed process, whose session has to expire first. */
  get #progressMs(): number {
    return PROGRESS_MS + MEMBER_GONE_MS[this.#timing];
  }

  async run(healedAt: number): Promise<CalmResult> {
    const progressMs = await this.#progress(healedAt);
    const [memberGoneMs, clientGoneMs] = await this.#crashTwo();
    return { progressMs, memberGoneMs, clientGoneMs };
  }

  /** @returns how long the slowest process took to write and to acquire a lock that all of them request */
  async #progress(healedAt: number): Promise<number> {
    const world = this.#world;
    const took = await Promise.all(
      this.#expected.map(async (id) => {
        const limit = world.sleep(this.#progressMs + 60_000, null);
        await Promise.race([limit, this.#getsOn(id)]);
        return world.now() - healedAt;
      }),
    );
    const slowest = Math.max(...took);
    if (slowest > this.#progressMs) {
      const who = this.#expected.filter((_, at) => (took[at] as number) > this.#progressMs);
      throw new Error(`${who.join(", ")} took ${slowest.toFixed(0)} ms to get on, after all was healed`);
    }
    return slowest;
  }

  /**
   * Resolves when the process makes progress. If the process was restarted, the new one may be the one that succeeds.
   */
  async #getsOn(id: number): Promise<void> {
    const world = this.#world;
    for (;;) {
      const participant = this.#at(id);
      if (participant === undefined) {
        await world.sleep(20);
        continue;
      }
      try {
        await participant.map.put(`here ${id}`, participant.value(), { timeoutMs: this.#progressMs });
        await participant.user.mutex("progress").use(() => {}, { timeoutMs: this.#progressMs });
        return;
      } catch (error) {
        if (!(error instanceof CoordinationError)) throw error; // The session may have ended before the faults did.
      }
    }
  }

  #at(id: number): Participant | undefined {
    return this.#present().find((each) => each.id === id && each.isAlive);
  }

  /**
   * Crashes a client and a member, if there are any. The member is neither the leader of the log nor needed for a
   * majority.
   */
  async #crashTwo(): Promise<[number, number]> {
    const world = this.#world;
    const chance = this.#chance;
    const kept = await Promise.all(this.#expected.map((id) => this.#keeps(id)));
    await world.sleep(500);
    const leader = kept
      .map(({ participant: { user } }) => (isMember(user) ? user.status().leader : null))
      .find((id) => id !== null);
    const needed = await this.#needed(kept);
    const members = kept.filter(({ participant: { user, id } }) => isMember(user) && id !== leader && !needed.has(id));
    const clients = kept.filter(({ participant: { user } }) => !isMember(user));
    const victims = [members, clients].flatMap((each) => (each.length > 0 ? [chance.pick(each)] : []));
    for (const { participant } of victims) world.crash(participant.id);
    const others = kept.filter((each) => !victims.includes(each));
    const began = world.now();
    const heir = chance.pick(others.filter(({ participant: { user } }) => isMember(user))).participant;
    const took = await Promise.all(
      victims.map(async ({ participant: { id, name, user }, grant }) => {
        const { token } = await heir.user.mutex(`of ${id}`).acquire(WITHIN);
        if (token <= grant.token) throw new Error(`token ${token} of "of ${id}" came after ${grant.token}`);
        while ((await heir.map.get(`leased ${id}`, WITHIN)) !== undefined) await world.sleep(10);
        const ms = world.now() - began;
        if (ms > (isMember(user) ? MEMBER_GONE_MS[this.#timing] : CLIENT_GONE_MS))
          throw new Error(`what ${name} held was kept for ${ms.toFixed(0)} ms after it had crashed`);
        return ms;
      }),
    );
    await world.sleep(500);
    this.#requireKept(others);
    const goneMs = (is: boolean): number =>
      Math.max(0, ...took.filter((_, at) => isMember((victims[at] as Kept).participant.user) === is));
    for (const { participant } of victims) if (isMember(participant.user)) await world.restart(participant.id);
    return [goneMs(true), goneMs(false)];
  }

  /**
   * Returns the members that must not crash. If there are only two voters, both are needed, and late membership changes
   * may have left only two.
   */
  async #needed(kept: readonly Kept[]): Promise<ReadonlySet<number>> {
    const { user } = (kept.find(({ participant }) => isMember(participant.user)) as Kept).participant;
    const voters = (await (user as Member).cluster.members(WITHIN)).filter(({ role }) => role === "voter");
    return new Set(voters.length > 2 ? [] : voters.map(({ id }) => id));
  }

  /** Acquires a lock and writes a leased entry that only this process uses. */
  async #keeps(id: number): Promise<Kept> {
    const participant = this.#at(id) as Participant;
    await participant.map.put(`leased ${id}`, participant.value(), { ...WITHIN, leased: true });
    const grant = await participant.user.mutex(`of ${id}`).acquire(WITHIN);
    participant.lost = 0;
    return { participant, grant };
  }

  #requireKept(others: readonly Kept[]): void {
    for (const { participant, grant } of others) {
      const { name, lost } = participant;
      if (lost > 0 || !grant.isHeld)
        throw new Error(
          `${name} has lost its session, though it was well and another had crashed: ${String(grant.signal.reason)}`,
        );
    }
  }
}

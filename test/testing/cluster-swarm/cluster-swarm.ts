/**
 * One run of a whole cluster under random faults: three, five or seven members that are added, removed, replaced, moved
 * and upgraded, clients that come and go, slow and full disks, and snapshots of the log and of the cluster. Calls are
 * recorded and checked as a history. Everything else is checked as it happens.
 */
import type { Client } from "../../../src/client/client.ts";
import { type Random, random } from "../../../src/core/random.ts";
import { type FaultKind, faultKinds } from "../../../src/testing/faults.ts";
import { type ProcessTools, simulate, type World } from "../../../src/testing/index.ts";
import type { Release } from "../../../src/testing/release.ts";
import { endpointOf } from "../../../src/testing/simulated-clients.ts";
import { ExclusiveUse } from "../exclusive-use.ts";
import { Calm, type SwarmTiming } from "./calm.ts";
import { Histories } from "./histories.ts";
import { MemberChanges } from "./member-changes.ts";
import { type Counts, Participant, type Swarm, type User } from "./participant.ts";
import { SavedState } from "./saved-state.ts";
import { SharedWork, type WorkKind, workKinds } from "./shared-work.ts";
import { Upgrade } from "./upgrade.ts";
import { Watches } from "./watches.ts";

/** Three is more frequent than seven, which costs five times as much. */
const MEMBERS = [3, 3, 3, 5, 5, 7] as const;
const FAULTS_MS = [1_000, 4_000] as const;
const FIRST_CLIENT = 1_000;
/** How many seeds in ten use large items, which take a lot of work. */
const LARGE_IN_TEN = 1;
const WITHIN = { timeoutMs: 10_000 };

export interface SwarmOptions {
  readonly seed: number;
  /** The release that all members run at first. */
  readonly present: Release;
  /** The release that some seeds upgrade to. */
  readonly later: Release;
}

/** Counts of the events that occurred in a run. Their sums over all seeds show that the tests were meaningful. */
export type SwarmSums = Record<string, number>;

class ClusterSwarm implements Swarm {
  readonly #options: SwarmOptions;
  readonly histories: Histories;
  readonly watches = new Watches();
  readonly exclusive: ExclusiveUse;
  readonly work: SharedWork;
  readonly does: Swarm["does"];
  readonly counts: Counts = { snapshotsInstalled: 0, sessionsExpired: 0, leaderships: 0 };
  isEnding = false;
  readonly #world: World;
  readonly #chance: Random;
  readonly #upgrade: Upgrade;
  readonly #changes: MemberChanges | null;
  readonly #clients: number;
  readonly #timing: SwarmTiming;
  /** How long there are faults and membership changes. */
  readonly #faultsMs: number;
  readonly #present: Participant[] = [];
  readonly #done: string[] = [];
  #clientRuns = 0;
  #isRestored = false;

  constructor(options: SwarmOptions) {
    this.#options = options;
    const { seed, present, later } = options;
    const chance = random(seed).stream("cluster swarm");
    this.#chance = chance;
    const members = chance.pick(MEMBERS);
    this.#faultsMs = chance.between(...FAULTS_MS);
    this.#clients = 1 + chance.below(3);
    this.#upgrade = new Upgrade(present, chance.below(2) === 0 ? later : null, seed);
    const kinds: WorkKind[] = workKinds.filter((kind) =>
      kind === "large" ? chance.below(10) < LARGE_IN_TEN : chance.below(3) === 0,
    );
    this.does = new Set((["lock", "lead", "queue"] as const).filter(() => chance.below(3) > 0));
    this.#timing = random(seed).stream("timing").below(2) === 0 ? "fast" : "default";
    this.#world = simulate({
      members,
      seed,
      join: { timing: this.#timing },
      faults: { forMs: this.#faultsMs },
      release: this.#upgrade.releaseOf,
      program: (member, tools) => this.#live(member, member.id, tools),
    });
    const world = this.#world;
    this.#changes = chance.below(4) > 0 ? new MemberChanges(world, seed) : null;
    this.histories = new Histories(() => world.now());
    this.exclusive = new ExclusiveUse(() => world.now());
    this.work = new SharedWork(this.exclusive, (member) => this.#runs(member, member.id), kinds);
  }

  done(item: string): void {
    this.#done.push(item);
  }

  async run(): Promise<SwarmSums> {
    const world = this.#world;
    const { seed } = this.#options;
    const faultsMs = this.#faultsMs;
    return world.run(async () => {
      const saved = new SavedState(world, this.histories);
      const clients = Array.from({ length: this.#clients }, (_, at) => FIRST_CLIENT + at);
      const saving = saved.save(seed, faultsMs);
      const under = [
        this.#changes?.goOn(faultsMs),
        this.#upgrade.run(world, faultsMs),
        ...clients.map((id) => this.#comesAndGoes(id)),
      ];
      await Promise.all([...under, world.sleep(faultsMs)]);
      await world.sleep(Math.max(0, ...world.plan.map(({ at, forMs }) => at + forMs - world.now())) + 1);
      const healedAt = world.now();
      this.#upgrade.finish(world);
      const listed = (await this.#changes?.end()) ?? [...world.members];
      for (const id of listed) while (!world.isUp(id)) await world.sleep(20);
      await saving;
      this.isEnding = true;
      for (const id of clients) this.#connectStranded(id, listed);
      const calm = new Calm(
        world,
        () => this.#present,
        [...listed, ...clients],
        this.#chance.stream("calm"),
        this.#timing,
      );
      const { progressMs, memberGoneMs, clientGoneMs } = await calm.run(healedAt);
      await this.#endsWell(listed);
      this.#isRestored = true;
      await saved.restore(listed);
      const unknown = this.histories.judge();
      return this.#sums({ unknown, progressMs, memberGoneMs, clientGoneMs });
    });
  }

  #sums(more: SwarmSums): SwarmSums {
    const world = this.#world;
    const suffered = (kind: FaultKind): number => world.log.filter((line) => line.includes(`fault: ${kind} `)).length;
    const sums: SwarmSums = {
      [`of${this.#founders}`]: 1,
      ...Object.fromEntries(faultKinds.map((kind) => [kind, suffered(kind)])),
      failedFull: world.log.filter((line) => line.includes("ENOSPC")).length,
      memberChanges: this.#changes?.count ?? 0,
      severalAtOnce: this.#changes?.several ?? 0,
      upgrades: this.#upgrade.count,
      restores: 1,
      ...this.counts,
      clientRuns: this.#clientRuns,
      transactions: this.histories.count("store", "transaction"),
      compareAndSets: this.histories.count("store", "cas") + this.histories.count("map", "cas"),
      keyOperations: this.histories.count("store") + this.histories.count("map"),
      counted: this.histories.count("counter"),
      watchEvents: this.watches.told,
      compactedWatches: this.watches.fromEntries,
      grants: this.exclusive.count,
      items: this.#done.length,
      ...this.work.counts,
    };
    return { ...sums, ...more };
  }

  get #founders(): number {
    return this.#world.members.filter((id) => id < 10).length;
  }

  /** Runs the activities of a member's or client's process until the process ends. */
  async #live(user: User, id: number, tools: ProcessTools): Promise<void> {
    if (this.#isRestored) return; // Processes in the new cluster are only checked from outside.
    const name = `${id}/${this.#present.length + 1}`;
    const participant = new Participant(name, id, user, tools, this, (one) => this.#runs(one, id));
    this.#present.push(participant);
    await participant.live();
  }

  #runs(user: User, id: number): boolean {
    const world = this.#world;
    return world.isUp(id) && (id < FIRST_CLIENT ? world.member(id) : this.#connected.get(id)) === user;
  }

  /** The current client process on each machine. */
  readonly #connected = new Map<number, Client>();
  /** The endpoints that each client process started with. */
  readonly #given = new Map<number, readonly string[]>();

  /**
   * Runs a client's processes one after another. Each is killed or loses power with its machine, except for the last
   * one, which keeps running.
   */
  async #comesAndGoes(id: number): Promise<void> {
    const world = this.#world;
    const chance = this.#chance.stream(`client ${id}`);
    for (let again = true; again; ) {
      // If the process knew only one member, that member might be removed before it has reported the others.
      const members = world.members.filter((each) => world.isUp(each));
      this.#connect(id, members.length < 3 ? world.members : members);
      again = chance.below(2) === 0;
      if (!again) break;
      await world.sleep(chance.between(500, this.#faultsMs));
      this.#connected.delete(id);
      if (chance.below(2) === 0) world.kill(id);
      else world.crash(id);
      await world.sleep(chance.between(10, 500));
    }
  }

  #connect(id: number, members: readonly number[]): void {
    this.#clientRuns += 1;
    this.#given.set(id, members.map(endpointOf));
    const program = (client: Client, tools: ProcessTools): Promise<void> => {
      this.#connected.set(id, client);
      return this.#live(client, id, tools);
    };
    this.#world.connect({ machine: id, members, timeoutMs: 60_000, program }).catch(() => {});
  }

  /**
   * Reconnects a client if all the members it knows were removed while it was cut off, since it cannot learn about the
   * others by itself.
   */
  #connectStranded(id: number, listed: readonly number[]): void {
    const known = this.#connected.get(id)?.status().endpoints ?? this.#given.get(id) ?? [];
    if (listed.some((member) => known.includes(endpointOf(member)))) return;
    this.#connected.delete(id);
    this.#world.kill(id);
    this.#connect(id, listed);
  }

  async #endsWell(listed: readonly number[]): Promise<void> {
    const world = this.#world;
    const member = world.member(listed[0] as number);
    if (new Set(this.#done).size < this.#done.length) throw new Error("an item was done twice");
    await this.work.requireAppended(member);
    const heardBy = world.now() + 2_000;
    const members = listed.map((id) => world.member(id));
    await this.work.conversation.requireAlike(members, world.sleep, () => world.now() < heardBy);
    const end = await member.map<string>("state").put("end", "end", WITHIN);
    const alive = this.#present.filter(({ isAlive, id }) => isAlive && (id >= FIRST_CLIENT || listed.includes(id)));
    const limit = world.now() + 2_000;
    const late = (): Participant | undefined =>
      alive.find(({ name }) => (this.watches.latestOf(name)?.last ?? 0) < end);
    while (late() !== undefined && world.now() < limit) await world.sleep(20);
    const silent = late();
    if (silent !== undefined) throw new Error(`${silent.name} did not receive the last write`);
    this.watches.judge();
  }
}

export const clusterSwarm = (options: SwarmOptions): Promise<SwarmSums> => new ClusterSwarm(options).run();

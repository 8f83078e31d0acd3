/**
 * Members under random actions. Tracks which members run and which links are cut, and checks the properties that must
 * hold after each action.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import { freePorts } from "../network/free-ports.ts";
import { PATIENCE_MS } from "../patience.ts";
import { Coterie, PACKAGE, until } from "./cluster-under-test.ts";
import { folder, Joined, type Place, place } from "./joined-members.ts";
import { monotonicMs } from "./members-under-test.ts";
import { Sightings } from "./sightings.ts";

export const deedNames = [
  ...(["kill", "start", "kill all", "leave", "pause", "cut", "deafen", "heal"] as const),
  ...(["wipe", "other release", "other list", "stranger"] as const),
];
export type Deed = (typeof deedNames)[number];

const PAUSE_MS = 3_000;
const WHILE_MS = 1_500;

interface Status {
  readonly leader: number | null;
  readonly hasQuorum: boolean;
  readonly refusals: readonly { readonly node: number }[];
  readonly instances: readonly { readonly kind: string; readonly name: string; readonly leader: number | null }[];
}

interface Run {
  /** The name of the run: `2.3` is the third run of member 2. */
  readonly name: string;
  readonly member: Joined;
}

export class SoakedMembers {
  readonly #place: Place;
  readonly #admins: ReadonlyMap<number, string>;
  readonly #random: Random;
  /** The location of the package of a later release. */
  readonly #later: string;
  readonly #up = new Map<number, Run>();
  readonly #packages = new Map<number, string>();
  /** Members that are cut off from all others. */
  #alone: readonly number[] = [];
  readonly #sightings = new Sightings(join(folder, "sightings"));
  readonly #strangers: Run[] = [];
  #runs = 0;
  #left: readonly Deed[] = [];

  private constructor(where: Place, admins: ReadonlyMap<number, string>, draw: Random, later: string) {
    this.#place = where;
    this.#admins = admins;
    this.#random = draw;
    this.#later = later;
    for (const id of this.#ids) this.#packages.set(id, PACKAGE);
  }

  /** @param later the location of a later release's package; members change between both releases */
  static async of(count: number, draw: Random, later: string): Promise<SoakedMembers> {
    const where = await place(count);
    const ports = await freePorts(count);
    const admins = new Map(ports.map((port, index) => [index + 1, `127.0.0.1:${port}`]));
    return new SoakedMembers(where, admins, draw, later);
  }

  async begin(): Promise<void> {
    await Promise.all(this.#ids.map((id) => this.#start(id)));
  }

  get grants(): number {
    return this.#sightings.count("lock");
  }

  get leaderships(): number {
    return this.#sightings.count("election");
  }

  get #ids(): number[] {
    return Object.keys(this.#place.members).map(Number);
  }

  get #majority(): number {
    return Math.floor(this.#ids.length / 2) + 1;
  }

  /** The members that run and are not cut off. They are a majority after every action. */
  get #able(): number[] {
    return [...this.#up.keys()].filter((id) => !this.#alone.includes(id)).sort((a, b) => a - b);
  }

  get #down(): number[] {
    return this.#ids.filter((id) => !this.#up.has(id));
  }

  /** Draws an action that is currently possible. Each kind is drawn once before any is repeated, if possible. */
  draw(): Deed {
    if (!this.#left.some((deed) => this.#isPossible(deed))) this.#left = [...deedNames];
    const deed = this.#random.pick(this.#left.filter((each) => this.#isPossible(each)));
    this.#left = this.#left.filter((each) => each !== deed);
    return deed;
  }

  #isPossible(deed: Deed): boolean {
    const canSpare = this.#able.length > this.#majority;
    if (deed === "kill") return canSpare;
    if (deed === "start") return this.#down.length > 0;
    if (deed === "cut") return canSpare && this.#alone.length === 0;
    if (deed === "heal") return this.#alone.length > 0;
    return true;
  }

  /** Calls `tell` with a description of the action before it happens. */
  async carryOut(deed: Deed, tell: (text: string) => void): Promise<void> {
    const victim = this.#victim();
    const whileMs = this.#random.below(WHILE_MS);
    const those = this.#some();
    const several = ["kill all", "pause", "cut"].includes(deed);
    const whom = deed === "kill all" ? this.#ids : several ? those : [victim];
    tell(`${deed}, of ${whom.join("+")}, ${whileMs} ms, with ${this.#able.join(", ")} able`);
    if (deed === "kill") await this.#kill(victim);
    if (deed === "start") await this.#start(this.#random.pick(this.#down));
    if (deed === "kill all") await this.#killAll(whileMs);
    if (deed === "leave") await this.#leaveAndStart(victim);
    if (deed === "pause") await this.#pause(those);
    if (deed === "cut") await this.#cut(this.#alonePossible(those));
    if (deed === "deafen") await this.#deafen(victim, whileMs);
    if (deed === "heal") await this.#cut([]);
    if (deed === "wipe") await this.#wipe(victim, whileMs);
    if (deed === "other release") await this.#otherRelease(victim);
    if (deed === "other list") await this.#otherList(victim);
    if (deed === "stranger") await this.#stranger(whileMs);
  }

  /** Waits until every member that can acquire the lock has acquired it again, and one of them leads. */
  async isPassedOn(): Promise<void> {
    const from = monotonicMs();
    const runs = this.#able.map((id) => (this.#up.get(id) as Run).name);
    const holders = () => this.#sightings.refresh().runsSince("lock", from);
    await until(
      () => `each of ${runs.join(", ")} gets the lock, but only ${[...holders()].join(", ")} did`,
      () => {
        this.#requireAlive();
        const found = holders();
        return runs.every((run) => found.has(run));
      },
      undefined,
      PATIENCE_MS,
    );
    await until(
      () => `one of ${runs.join(", ")} leads, but ${[...this.#sightings.runsSince("election", from)].join(", ")} do`,
      () => {
        const found = this.#sightings.refresh().runsSince("election", from);
        return runs.some((run) => found.has(run));
      },
      undefined,
      PATIENCE_MS,
    );
  }

  /**
   * Repairs everything. Afterwards all members run, agree on the leader of the log and of the election, and reject no
   * node.
   */
  async settle(): Promise<void> {
    await this.#cut([]);
    for (const id of this.#down) await this.#start(id);
    await this.isPassedOn();
    let statuses: Status[] = [];
    await until(
      () => `all members agree, but they say ${JSON.stringify(statuses)}`,
      async () => {
        statuses = await Promise.all(this.#ids.map((id) => this.#statusOf(id)));
        const leaders = new Set(statuses.map(({ leader }) => leader));
        const elected = new Set(
          statuses.map(({ instances }) => instances.find(({ kind }) => kind === "election")?.leader ?? null),
        );
        const isOne = (found: ReadonlySet<number | null>): boolean => found.size === 1 && !found.has(null);
        // A disconnected unknown node is remembered.
        const isWell = statuses.every(
          ({ hasQuorum, refusals }) => hasQuorum && !refusals.some(({ node }) => this.#ids.includes(node)),
        );
        return isWell && isOne(leaders) && isOne(elected);
      },
      undefined,
      PATIENCE_MS,
    );
  }

  /** Returns the violations so far, as sentences. */
  disorder(): string[] {
    const entered = this.#sightings.refresh().runsSince("lock", 0);
    const led = this.#sightings.runsSince("election", 0);
    const strangers = this.#strangers.filter(({ name }) => entered.has(name) || led.has(name));
    return [...this.#sightings.disorder(), ...strangers.map(({ name }) => `${name}, which is not a member, got in`)];
  }

  picture(): string {
    const members = [...this.#up].map(([id, { name, member }]) => {
      const release = this.#packages.get(id) === PACKAGE ? "this release" : "the later release";
      return `run ${name} of member ${id}, ${release}, said ${JSON.stringify(member.errors.slice(-2_000))}`;
    });
    const nobody = (ids: readonly number[]): string => ids.join(", ") || "nobody";
    return [`down: ${nobody(this.#down)}; cut off: ${nobody(this.#alone)}`, ...members].join("\n");
  }

  async #statusOf(id: number): Promise<Status> {
    return (await (await fetch(`http://${this.#admins.get(id)}/status`)).json()) as Status;
  }

  /** Picks a member, often the leader or the last holder of the lock. */
  #victim(): number {
    const able = this.#able;
    const ofRun = (run: string | null): number => Number(run?.split(".")[0] ?? 0);
    const lucky = this.#random.pick(["lock", "election", null] as const);
    const chosen = lucky === null ? 0 : ofRun(this.#sightings.refresh().latestRun(lucky));
    const other = this.#random.pick(able);
    return able.includes(chosen) ? chosen : other;
  }

  /** Picks one to three running members. */
  #some(): number[] {
    const victim = this.#victim();
    const others = [...this.#up.keys()].filter((id) => id !== victim && this.#random.below(3) === 0);
    return [victim, ...others].slice(0, 3);
  }

  /** Returns as many of these members as can be isolated without losing the majority. */
  #alonePossible(those: readonly number[]): number[] {
    const able = those.filter((id) => this.#able.includes(id));
    return able.slice(0, this.#able.length - this.#majority);
  }

  #requireAlive(): void {
    for (const [id, { member }] of this.#up)
      if (member.hasExited) throw new Error(`member ${id} has ended by itself: ${member.errors.slice(-2_000)}`);
  }

  #spawn(id: number, where = this.#place, packageUrl = this.#packages.get(id)): Run {
    this.#runs += 1;
    const member = new Joined(id, where, packageUrl, { admin: this.#admins.get(id), faultInjector: true });
    return { name: `${id}.${this.#runs}`, member };
  }

  async #start(id: number): Promise<void> {
    const run = this.#spawn(id);
    await run.member.said("joined", PATIENCE_MS);
    this.#up.set(id, run);
    if (this.#alone.length > 0) await this.#tellFaults(id, this.#cutOf(id));
    this.#sight(run);
  }

  #sight({ name, member }: Run): void {
    member.order({ do: "sight", file: join(folder, "sightings"), run: name });
  }

  async #kill(id: number): Promise<void> {
    const run = this.#up.get(id);
    this.#up.delete(id);
    run?.member.signal("SIGKILL");
    await run?.member.exited;
  }

  async #killAll(whileMs: number): Promise<void> {
    await Promise.all([...this.#up.keys()].map((id) => this.#kill(id)));
    await sleep(whileMs);
    await Promise.all(this.#ids.map((id) => this.#start(id)));
  }

  async #stop(id: number, how: "kill" | "leave"): Promise<void> {
    if (how === "kill") await this.#kill(id);
    else await this.#leave(id);
  }

  async #leave(id: number): Promise<void> {
    const { member } = this.#up.get(id) as Run;
    this.#up.delete(id);
    member.order({ do: "leave" });
    await member.said("left", PATIENCE_MS);
    member.end();
    await member.exited;
  }

  async #leaveAndStart(id: number): Promise<void> {
    await this.#leave(id);
    await this.#start(id);
  }

  async #pause(those: readonly number[]): Promise<void> {
    const forMs = 100 + this.#random.below(PAUSE_MS - 100);
    const members = those.flatMap((id) => this.#up.get(id)?.member ?? []);
    for (const member of members) member.signal("SIGSTOP");
    await sleep(forMs);
    for (const member of members) member.signal("SIGCONT");
  }

  async #cut(alone: readonly number[]): Promise<void> {
    this.#alone = alone;
    await Promise.all([...this.#up.keys()].map((id) => this.#tellFaults(id, this.#cutOf(id))));
  }

  #cutOf(id: number): number[] {
    const isAlone = this.#alone.includes(id);
    return this.#ids.filter((other) => other !== id && this.#alone.includes(other) !== isAlone);
  }

  /** Breaks a member's links in one direction for a while: it only sends, or only receives. */
  async #deafen(victim: number, whileMs: number): Promise<void> {
    const others = this.#ids.filter((id) => id !== victim);
    if (this.#random.below(2) === 0) await this.#tellFaults(victim, others);
    else
      await Promise.all(
        others.filter((id) => this.#up.has(id)).map((id) => this.#tellFaults(id, [...this.#cutOf(id), victim])),
      );
    await sleep(whileMs);
    await this.#cut(this.#alone);
  }

  async #tellFaults(id: number, cutTo: readonly number[]): Promise<void> {
    const request = {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ cutTo }),
    };
    await until(
      `member ${id} gets its faults`,
      async () => (await fetch(`http://${this.#admins.get(id)}/faults`, request).catch(() => null))?.ok === true,
      undefined,
      PATIENCE_MS,
    );
  }

  /** Removes a member's folder. The member is rejected until it gets a new one from a majority. */
  async #wipe(id: number, whileMs: number): Promise<void> {
    await this.#kill(id);
    const folderOf = (each: number): string => join(this.#place.data, String(each));
    rmSync(folderOf(id), { recursive: true });
    await this.#expectRefused(this.#spawn(id), "lost-journal", whileMs);
    rmSync(folderOf(id), { recursive: true });
    const kept = this.#ids.filter((each) => each !== id);
    while (kept.length > this.#majority) kept.splice(this.#random.below(kept.length), 1);
    const words = ["member", "replace", String(id), "--data", folderOf(id), "--from", ...kept.map(folderOf)];
    const made = await new Coterie(...words).finished;
    if (made.code !== 0)
      throw new Error(`expected a folder for member ${id} from the folders of ${kept}: ${made.stderr}`);
    await this.#start(id);
  }

  /** Checks that the member reports the rejection, and acquires nothing for a while. */
  async #expectRefused(run: Run, reason: string, whileMs: number): Promise<void> {
    const { member, name } = run;
    this.#strangers.push(run);
    await member.said("joined", PATIENCE_MS);
    this.#sight(run);
    await until(
      () => `run ${name} says ${reason}, but it said ${JSON.stringify(member.errors)}`,
      () => member.errors.includes(reason),
      undefined,
      PATIENCE_MS,
    );
    await sleep(whileMs);
    member.signal("SIGKILL");
    await member.exited;
  }

  async #otherRelease(id: number): Promise<void> {
    const isThis = this.#packages.get(id) === PACKAGE;
    await this.#stop(id, this.#random.pick(["kill", "leave"] as const));
    this.#packages.set(id, isThis ? this.#later : PACKAGE);
    await this.#start(id);
  }

  /** Starts a member with a list that differs from its journal. The start must fail. */
  async #otherList(id: number): Promise<void> {
    const { members, data } = this.#place;
    const [port] = await freePorts(1);
    const without = Object.entries(members).filter(([other], index) => Number(other) === id || index % 2 === 0);
    const longer = { ...members, [this.#ids.length + 1]: `127.0.0.1:${port}` };
    const list = this.#random.pick([longer, Object.fromEntries(without)]);
    await this.#kill(id);
    const { member, name } = this.#spawn(id, { members: list, data });
    const code = await member.exited;
    if (code === 0 || !member.errors.includes("wrong-members"))
      throw new Error(`expected ${name} to be refused its list, but it ended with ${code}: ${member.errors}`);
    await this.#start(id);
  }

  /** Starts an unknown node with a list that contains the node and some of the members. */
  async #stranger(whileMs: number): Promise<void> {
    const known = this.#able.filter(() => this.#random.below(2) === 0);
    const among = known.length === 0 ? this.#able : known;
    const id = this.#ids.length + 1;
    const [port] = await freePorts(1);
    const members = Object.fromEntries(among.map((each) => [each, this.#place.members[each] as string]));
    const list = { ...members, [id]: `127.0.0.1:${port}` };
    const where = { members: list, data: join(this.#place.data, `stranger-${this.#runs}`) };
    await this.#expectRefused(this.#spawn(id, where, PACKAGE), "wrong-members", whileMs);
  }
}

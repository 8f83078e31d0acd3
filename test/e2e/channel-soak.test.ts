/**
 * Random runs of members that join, leave, crash, are paused and are cut off while all of them send, over links or over
 * IP multicast that loses, duplicates and reorders datagrams. Members must see the same views and deliver the same
 * messages in each view, in the same order if that is requested. COTERIE_SOAK=500 makes it long; COTERIE_SEED repeats
 * its choices.
 *
 * @module-tag long
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { Order, Transport } from "../../src/cluster/services/channel-api.ts";
import { type Random, random } from "../../src/core/random.ts";
import { broken } from "./channel-accounts.ts";
import { type ChannelMember, ChannelMembers, latestView } from "./channel-members.ts";

const MEMBERS = 4;
const STEPS = 5;
const ROOM = "room";
const rounds = Number(process.env.COTERIE_SOAK ?? 4);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];

let members: ChannelMembers;
afterEach(() => members.close());

test(`in each of ${rounds} random runs, members that stay together deliver together`, async () => {
  console.log(`soak: COTERIE_SOAK=${rounds} COTERIE_SEED=${seed}`);
  members = await ChannelMembers.of(MEMBERS);
  const counts = { views: 0, messages: 0, uncertain: 0 };
  const began = performance.now();
  for (let round = 0; round < rounds; round += 1) {
    const run = new Run(random(seed + round));
    try {
      await run.live();
      run.check(counts);
    } catch (error) {
      const again = "npx vitest run test/e2e/channel-soak.test.ts";
      console.log(`soak: the choices of the run that failed: COTERIE_SOAK=1 COTERIE_SEED=${seed + round} ${again}`);
      console.log(`soak: ${run.deeds.join(", ")}`);
      for (const sentence of run.broken().slice(0, 10)) console.log(`soak: ${sentence}`);
      throw error;
    }
    await members.renew();
    const seconds = Math.round((performance.now() - began) / 1_000);
    if ((round + 1) % 20 === 0) console.log(`soak: ${round + 1} runs in ${seconds} s, ${JSON.stringify(counts)}`);
  }
  console.log(`soak: ${rounds} runs, ${JSON.stringify(counts)}`);
});

/** One cluster from its start to its end. */
class Run {
  readonly deeds: string[] = [];
  readonly #draw: Random;
  readonly #order: Order;
  readonly #transport: Transport;

  constructor(draw: Random) {
    this.#draw = draw;
    this.#order = draw.pick(orders);
    this.#transport = draw.pick(["tcp", "udp"] as const);
    this.deeds.push(`${this.#order} over ${this.#transport}`);
  }

  async live(): Promise<void> {
    const rate = this.#draw.pick([0, 0.01, 0.1]);
    members.besides = { datagrams: { dropRate: rate, duplicateRate: rate, reorderRate: rate } };
    await members.startAll();
    await this.#heal();
    for (const member of members.up) this.#open(member);
    for (let step = 0; step < STEPS; step += 1) {
      for (const member of members.up) members.send(member, ROOM, this.#draw.below(30));
      await this.#deed();
      await sleep(this.#draw.below(400));
    }
    await this.#rest();
  }

  /** Checks that no promise of the docs has been broken. */
  check(counts: { views: number; messages: number; uncertain: number }): void {
    expect(this.broken()).toEqual([]);
    for (const run of members.runs) {
      counts.messages += run.all("delivered").length;
      for (const { refused } of run.all("sent")) counts.uncertain += refused.length;
    }
    counts.views += Math.max(...members.runs.map((run) => latestView(run, ROOM)?.view ?? 0));
  }

  broken(): string[] {
    return broken(members.runs, this.#order);
  }

  async #deed(): Promise<void> {
    const { up } = members;
    const down = members.ids.filter((id) => !up.some((member) => member.id === id));
    const kind = this.#draw.pick(["kill", "leave", "start", "start", "part", "part", "heal", "pause"] as const);
    if (kind === "start" && down.length > 0) return this.#start(this.#draw.pick(down));
    if (kind === "part") return this.#part();
    if (kind === "heal" || up.length === 1) return this.#heal();
    const member = this.#draw.pick(up);
    if (kind === "pause") return this.#pause(member);
    if (kind === "leave") {
      this.deeds.push(`leave ${member.id}`);
      member.order({ do: "leave" });
      await member.said("left");
    } else {
      this.deeds.push(`kill ${member.id}`); // A kill is possible even if all run.
      await members.kill(member.id);
    }
  }

  async #start(id: number): Promise<void> {
    this.deeds.push(`start ${id}`);
    this.#open(await members.start(id));
  }

  async #part(): Promise<void> {
    const alone = members.ids.filter(() => this.#draw.below(2) === 0);
    this.deeds.push(`part ${alone.join("+") || "nobody"}`);
    await members.partition(
      alone,
      members.ids.filter((id) => !alone.includes(id)),
    );
  }

  async #heal(): Promise<void> {
    this.deeds.push("heal");
    await members.partition();
  }

  async #pause(member: ChannelMember): Promise<void> {
    const forMs = this.#draw.below(1_000);
    this.deeds.push(`pause ${member.id} for ${forMs}`);
    member.process.signal("SIGSTOP");
    await sleep(forMs);
    member.process.signal("SIGCONT");
  }

  /** Ends all faults. All members then join and deliver all later messages. */
  async #rest(): Promise<void> {
    await this.#heal();
    for (const id of members.ids) if (!members.up.some((member) => member.id === id)) await this.#start(id);
    if (this.#transport === "udp") await members.allMulticast(ROOM);
    await members.lastRound(ROOM);
  }

  #open(member: ChannelMember): void {
    member.order({ do: "open", name: ROOM, options: { order: this.#order, transport: this.#transport } });
  }
}

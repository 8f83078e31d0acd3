/**
 * Random runs of members that join, leave, crash, stand still and are cut off, all sending meanwhile, over links or over IP
 * multicast that loses, copies and reorders: the same views, in each view the same messages, and in the same order where
 * that is asked for. COTERIE_SOAK=500 makes it long; COTERIE_SEED
 * repeats its choices.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { type GroupRecord, virtualSynchrony } from "../../src/check/virtual-synchrony.ts";
import type { Order, Transport } from "../../src/cluster/services/channel-api.ts";
import { type Random, random } from "../../src/core/random.ts";
import { type ChannelMember, ChannelMembers, latestView, together } from "./channel-members.ts";
import { PATIENCE_MS, until } from "./cluster-under-test.ts";

const MEMBERS = 4;
const STEPS = 5;
const ROOM = "room";
const rounds = Number(process.env.COTERIE_SOAK ?? 4);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const orders: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];

let members: ChannelMembers;
afterEach(() => members.close());

test(`in each of ${rounds} random runs those that stay together deliver together`, {
  timeout: (rounds + 2) * 2 * PATIENCE_MS,
}, async () => {
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
      console.log(`soak: COTERIE_SOAK=1 COTERIE_SEED=${seed + round} makes the choices of the run that failed`);
      console.log(`soak: ${run.deeds.join(", ")}`);
      throw error;
    }
    await members.renew();
    const seconds = Math.round((performance.now() - began) / 1_000);
    if ((round + 1) % 20 === 0) console.log(`soak: ${round + 1} runs in ${seconds} s, ${JSON.stringify(counts)}`);
  }
  console.log(`soak: ${rounds} runs, ${JSON.stringify(counts)}`);
});

/** One cluster's life. */
class Run {
  readonly deeds: string[] = [];
  readonly #draw: Random;
  readonly #order: Order;
  readonly #transport: Transport;
  #sends = 0;

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
      for (const member of members.up) this.#send(member, this.#draw.below(30));
      await this.#deed();
      await sleep(this.#draw.below(400));
    }
    await this.#rest();
  }

  /** All that there was, in the words of the checker. */
  check(counts: { views: number; messages: number; uncertain: number }): void {
    const records = members.runs.map((run, index) => recordOf(run, index));
    const isTotal = this.#order === "total" || this.#order === "causal-total";
    expect(virtualSynchrony(records, { total: isTotal })).toEqual([]);
    for (const run of members.runs) {
      this.#checkOrder(run);
      checkOwn(run);
      counts.messages += run.all("delivered").length;
      for (const { refused } of run.all("sent")) counts.uncertain += refused.length;
    }
    counts.views += Math.max(...members.runs.map((run) => latestView(run, ROOM)?.view ?? 0));
    this.#checkLast();
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
    this.deeds.push(`${kind} ${member.id}`);
    if (kind === "leave") {
      member.order({ do: "leave" });
      await member.said("left");
    } else await members.kill(member.id);
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

  /** Nothing goes wrong any more: all come together, and what is sent then comes to all. */
  async #rest(): Promise<void> {
    await this.#heal();
    for (const id of members.ids) if (!members.up.some((member) => member.id === id)) await this.#start(id);
    await together(members.up, ROOM);
    for (const member of members.up) this.#send(member, 1, "last");
    const last = members.ids.map((id) => `last of ${id} 1`);
    for (const member of members.up)
      await until(
        () => `member ${member.id} has the last messages of all`,
        () => last.every((payload) => member.payloads(ROOM).includes(payload)),
      );
    for (const member of members.up) {
      const asked = this.#asked.get(member) ?? 0;
      await until(`all that ${member.id} has sent is settled`, () => member.all("sent").length === asked);
    }
  }

  readonly #asked = new Map<ChannelMember, number>();

  #open(member: ChannelMember): void {
    member.order({ do: "open", name: ROOM, options: { order: this.#order, transport: this.#transport } });
  }

  #send(member: ChannelMember, count: number, word?: string): void {
    this.#sends += 1;
    this.#asked.set(member, (this.#asked.get(member) ?? 0) + 1);
    member.order({ do: "send", name: ROOM, prefix: `${word ?? this.#sends} of ${member.id}`, count });
  }

  /** Whoever is still in the same view has delivered all of it by now. */
  #checkLast(): void {
    const last = Math.max(...members.up.map((member) => latestView(member, ROOM)?.view ?? 0));
    const there = members.up.filter((member) => latestView(member, ROOM)?.view === last);
    const [one, ...others] = there.map((member) => new Set(messagesOf(member, last)));
    for (const other of others) expect(other).toEqual(one);
  }

  /** Each sender's messages in the order of sending, which their numbers tell. */
  #checkOrder(run: ChannelMember): void {
    if (this.#order === "total") return; // It promises nothing of the kind.
    const latest = new Map<string, number>();
    for (const { payload } of run.all("delivered")) {
      const cut = payload.lastIndexOf(" ");
      const [burst, number] = [payload.slice(0, cut), Number(payload.slice(cut + 1))];
      expect(number, `${payload} at ${run.id}`).toBeGreaterThan(latest.get(burst) ?? 0);
      latest.set(burst, number);
    }
  }
}

/** Deliveries say in which view they were made; they come by another way than the views do. */
function recordOf(run: ChannelMember, incarnation: number): GroupRecord {
  const delivered = run.all("delivered");
  const log: GroupRecord["log"][number][] = [];
  let current: number | null = null;
  for (const { view, members: those, state } of run.all("view")) {
    if (state === "outside" && current !== null) {
      log.push({ ejected: true });
      current = null;
    } else if (state === "member" && view !== null && view !== current) {
      current = view;
      log.push({ installed: { view, members: those } });
      for (const { id, from, view: of } of delivered) if (of === view) log.push({ delivered: { id, from } });
    }
  }
  return { node: run.id, incarnation, log };
}

/** What was settled has been delivered here, under the id that the sender was told. */
function checkOwn(run: ChannelMember): void {
  const ids = new Set(run.all("delivered").map(({ id }) => id));
  for (const { ids: settled } of run.all("sent")) expect(settled.filter((id) => !ids.has(id))).toEqual([]);
}

/** What it has delivered in a view. */
function messagesOf(run: ChannelMember, view: number): string[] {
  return run.all("delivered").flatMap(({ id, view: of }) => (of === view ? [id] : []));
}

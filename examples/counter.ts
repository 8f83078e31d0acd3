/**
 * Why a replicated value needs total order. Two members change a counter at the same time: one doubles it, the other
 * adds ten. Each replica applies the changes in the order of delivery. Run it with `npx tsx examples/counter.ts`; all
 * three members run in this one process.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { type Channel, join, type Member, type Order } from "coterie";

type Change = { readonly double: true } | { readonly add: number };

const members = { 1: "127.0.0.1:7181", 2: "127.0.0.1:7182", 3: "127.0.0.1:7183" };
const folder = mkdtempSync(path(tmpdir(), "counter-"));
const three = await Promise.all([1, 2, 3].map((id) => join({ id, members, dataDir: path(folder, "{id}") })));

/** Runs one replica and returns its counter after the given number of changes. */
async function replica(channel: Channel<Change>, changes: number): Promise<number> {
  let counter = 1;
  let made = 0;
  for await (const { payload } of channel) {
    counter = "add" in payload ? counter + payload.add : counter * 2;
    made += 1;
    if (made === changes) break;
  }
  return counter;
}

/** Returns the counters of all three replicas after both changes. */
async function race(order: Order): Promise<number[]> {
  const channels = three.map((member) => member.channel<Change>(`counter ${order}`, { order }));
  await Promise.all(channels.map(withAll));
  const replicas = channels.map((channel) => replica(channel, 2));
  const [one, two] = channels as [Channel<Change>, Channel<Change>];
  await Promise.all([one.send({ double: true }), two.send({ add: 10 })]);
  return Promise.all(replicas);
}

/** Waits until all three members are in the group. */
async function withAll(channel: Channel<Change>): Promise<void> {
  for await (const { members, state } of channel.views()) if (state === "member" && members.length === 3) return;
}

for (const order of ["none", "total"] as const) console.log(`with order ${order}: ${(await race(order)).join(", ")}`);

await Promise.all(three.map((member: Member) => member.leave()));
rmSync(folder, { recursive: true });

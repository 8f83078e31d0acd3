/**
 * Measures, for each `timing`, the grants that a paused member keeps, and the cost of its crash for the others. Virtual
 * time makes the results exact.
 */
import { type Timing, timings } from "../../src/cluster/services/timing.ts";
import type { Grant, Leadership, Member } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

export const SEEDS: readonly number[] = Array.from({ length: 8 }, (_, at) => at + 1);
const STALLS_MS: readonly number[] = [100, 200, 400, 1_000, 4_000, 8_000];
/** All consequences of a pause begin within this time after it. */
const AFTERMATH_MS = 5_000;
const FOR_EVER_MS = 600_000;

const worldOf = (timing: Timing, seed: number): World => simulate({ members: 3, seed, join: { timing } });

const lockAt = (member: Member): Promise<Grant> => member.mutex("invoice").acquire();

/** Campaigns, and resolves when the member leads. */
const leadershipAt = (world: World, member: Member): Promise<Leadership> =>
  new Promise((resolve) => {
    const work = async (leadership: Leadership): Promise<void> => {
      resolve(leadership);
      await world.sleep(FOR_EVER_MS);
    };
    member
      .election("report")
      .lead(work)
      .catch(() => {}); // Rejects when the member is killed.
  });

const newsAt = (member: Member) => member.channel("news", { order: "fifo" });

async function inOneView(world: World): Promise<number> {
  const channels = world.members.map((id) => newsAt(world.member(id)));
  for (;;) {
    const [first, ...others] = channels.map((channel) => channel.status);
    const isWhole = first?.members.length === world.members.length;
    if (isWhole && others.every(({ view }) => view === first.view)) return first.view as number;
    await world.sleep(10);
  }
}

/** Returns the member that leads the log, or the first one that does not. */
async function chosen(world: World, isLeader: boolean): Promise<number> {
  for (const id of world.members) await world.member(id).ready();
  for (;;) {
    const leader = world.member(1).status().shared?.leader ?? null;
    if (leader !== null) return world.members.find((id) => (id === leader) === isLeader) as number;
    await world.sleep(10);
  }
}

/**
 * Lets grants be renewed several times before the fault. In each world, the fault occurs at a different point of the
 * renewal interval.
 */
const calm = (world: World): Promise<void> => world.sleep(3_000 + 37 * world.seed);

export interface Kept {
  readonly tenures: boolean;
  readonly place: boolean;
}

/** One member leads an election, holds a lock and is in a view, and is then paused. The others contend for both. */
export async function keptAfter(timing: Timing, stallMs: number, seed: number): Promise<Kept> {
  const world = worldOf(timing, seed);
  let kept: Kept = { tenures: false, place: false };
  await world.run(async () => {
    const victim = await chosen(world, false);
    const lock = await lockAt(world.member(victim));
    const leadership = await leadershipAt(world, world.member(victim));
    for (const id of world.members.filter((each) => each !== victim)) {
      void lockAt(world.member(id));
      void leadershipAt(world, world.member(id));
    }
    const view = await inOneView(world);
    await calm(world);
    world.pause(victim);
    await world.sleep(stallMs);
    world.resume(victim);
    await world.sleep(AFTERMATH_MS);
    const then = newsAt(world.member(victim)).status.view;
    kept = { tenures: lock.isHeld && leadership.isHeld, place: then === view };
  });
  return kept;
}

type Cost = (world: World, killed: number, before: () => Promise<void>) => Promise<unknown>;

const others = (world: World, killed: number): readonly Member[] =>
  world.members.filter((id) => id !== killed).map((id) => world.member(id));

/** Measures the handover of a grant from its crashed holder to a waiting member. */
const handedOver =
  (take: (world: World, member: Member) => Promise<unknown>): Cost =>
  async (world, killed, before) => {
    await take(world, world.member(killed));
    const next = take(world, others(world, killed)[0] as Member);
    await before();
    return next;
  };

/** Measures the longest write while other members write constantly. */
const written: Cost = async (world, killed, before) => {
  const map = (others(world, killed)[0] as Member).map<number>("numbers");
  await map.put("n", 0);
  await before();
  return map.put("n", 1);
};

const excluded: Cost = async (world, killed, before) => {
  await inOneView(world);
  const channels = others(world, killed).map((member) => newsAt(member));
  await before();
  while (channels.some((channel) => channel.status.members.includes(killed))) await world.sleep(1);
};

const costs: readonly (readonly [string, boolean, Cost])[] = [
  ["leader of an election", false, handedOver(leadershipAt)],
  ["holder of a lock", false, handedOver((_, member) => lockAt(member))],
  ["holder of a lock that also leads the log", true, handedOver((_, member) => lockAt(member))],
  ["leader of the log: the next write", true, written],
  ["member of a channel's view", false, excluded],
];

/** Measures the seconds from the crash until recovery. */
async function costOf(timing: Timing, isLeader: boolean, cost: Cost, seed: number): Promise<number> {
  const world = worldOf(timing, seed);
  let seconds = Number.NaN;
  await world.run(async () => {
    const killed = await chosen(world, isLeader);
    let killedAt = Number.NaN;
    await cost(world, killed, async () => {
      await calm(world);
      world.kill(killed);
      killedAt = world.now();
    });
    seconds = (world.now() - killedAt) / 1_000;
  });
  return seconds;
}

const row = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;
const inSeconds = (ms: number): string => `${ms / 1_000} s`;
const counted = (kept: readonly boolean[]): string => `${kept.filter((isKept) => isKept).length}`;

export async function stallTable(): Promise<string> {
  const head = row(["paused for", ...timings.map((timing) => `\`${timing}\`: leadership and lock, place`)]);
  const rows: string[] = [];
  for (const stallMs of STALLS_MS) {
    const cells: string[] = [];
    for (const timing of timings) {
      const all: Kept[] = [];
      for (const seed of SEEDS) all.push(await keptAfter(timing, stallMs, seed));
      cells.push(`${counted(all.map(({ tenures }) => tenures))}, ${counted(all.map(({ place }) => place))}`);
    }
    rows.push(row([inSeconds(stallMs), ...cells]));
  }
  return `${head}${row(["---", ...timings.map(() => "---")])}${rows.join("")}`;
}

export async function crashTable(): Promise<string> {
  const head = row(["crashed member", ...timings.map((timing) => `\`${timing}\``)]);
  const rows: string[] = [];
  for (const [what, isLeader, cost] of costs) {
    const cells: string[] = [];
    for (const timing of timings) {
      const all: number[] = [];
      for (const seed of SEEDS) all.push(await costOf(timing, isLeader, cost, seed));
      all.sort((a, b) => a - b);
      const [least, median, most] = [all[0], all[Math.floor(all.length / 2)], all.at(-1)].map((s) => s?.toFixed(2));
      cells.push(`${median} [${least}–${most}]`);
    }
    rows.push(row([what, ...cells]));
  }
  return `${head}${row(["---", ...timings.map(() => "---")])}${rows.join("")}`;
}

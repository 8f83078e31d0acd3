/** One process of `coterie bench services`: joins, does what it is asked to, and notes when it leads, holds a lock, has a view. */
import { join } from "../src/cluster/join.ts";
import type { Grant, Leadership } from "../src/cluster/services/api.ts";
import type { Channel } from "../src/cluster/services/channel-api.ts";
import { loadOf } from "./cluster/load.ts";
import type { Throughput, Work } from "./cluster/subject.ts";
import {
  type Answers,
  type Ask,
  type Being,
  type ChannelKind,
  type Note,
  optionsOf,
  ROOM,
  type Standing,
  sharedNowMs,
} from "./services/asks.ts";

/** Enough for batches to grow, and less than may wait. */
const IN_FLIGHT = 2_000;
const PAYLOAD = "x".repeat(100);

interface Wish<T> {
  tenure: T | null;
  /** How often it was had. */
  times: number;
  readonly end: AbortController;
  over: Promise<unknown>;
}

const { id, members, dataDir, timing } = JSON.parse(process.argv[2] ?? "{}") as Being;
const member = await join({ id, members, dataDir, timing, cluster: "bench", tls: "off" });
const channels = new Map<string, Channel<string>>();
const campaigns = new Map<string, Wish<Leadership>>();
const locks = new Map<string, Wish<Grant>>();
let watched: { until(count: number): Promise<number[]> } | null = null;
let turns: { goOn: boolean; longestGapMs: number; over: Promise<void> } | null = null;

const tell = (note: Note): void => void process.send?.(note);

function open(name: string, kind: ChannelKind): Channel<string> {
  const known = channels.get(name);
  if (known !== undefined) return known;
  const channel = member.channel<string>(name, optionsOf(kind));
  channels.set(name, channel);
  void drain(channel);
  return channel;
}

/** Senders wait for members that do not read. */
async function drain(channel: Channel<string>): Promise<void> {
  for await (const _ of channel);
}

async function tellViews(channel: Channel<string>): Promise<void> {
  for await (const view of channel.views())
    if (view.state === "member") tell({ note: "view", members: view.members, atMs: sharedNowMs() });
}

function standing(): Standing {
  const { reachable, leader } = member.status();
  const { view, members: viewMembers, state } = open(ROOM, "total").status;
  return { reachable, leader, view, viewMembers, isInView: state === "member" };
}

async function pairs(clients: number, ms: number): Promise<number> {
  const mutex = member.mutex("pairs");
  const deadline = performance.now() + ms;
  let done = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < deadline) {
      try {
        const grant = await mutex.acquire();
        await grant.release();
        if (performance.now() < deadline) done += 1;
      } catch (error) {
        if ((error as { code?: string }).code !== "grant-lost") throw error; // This process stood still: no pair.
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return done;
}

async function sendOneByOne(channel: Channel<string>, ms: number): Promise<number[]> {
  const deadline = performance.now() + ms;
  const took: number[] = [];
  while (performance.now() < deadline) {
    const began = performance.now();
    await channel.send(PAYLOAD);
    took.push(performance.now() - began);
  }
  return took;
}

async function sendMany(channel: Channel<string>, ms: number): Promise<number> {
  const began = performance.now();
  let sent = 0;
  const sender = async (): Promise<void> => {
    while (performance.now() - began < ms) {
      await channel.send(PAYLOAD);
      sent += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, sender));
  return sent / ((performance.now() - began) / 1_000);
}

function campaign(name: string): void {
  const wish: Wish<Leadership> = { tenure: null, times: 0, end: new AbortController(), over: Promise.resolve() };
  const work = (leadership: Leadership): Promise<void> => {
    wish.tenure = leadership;
    wish.times += 1;
    tell({ note: "leads", name, atMs: sharedNowMs() });
    return new Promise((resolve) => leadership.signal.addEventListener("abort", () => resolve()));
  };
  wish.over = member
    .election(name)
    .lead(work, { signal: wish.end.signal })
    .catch(() => {}); // It ends as it is asked to, or with the member.
  campaigns.set(name, wish);
}

function want(name: string): void {
  const wish: Wish<Grant> = { tenure: null, times: 0, end: new AbortController(), over: Promise.resolve() };
  const hold = async (): Promise<void> => {
    wish.tenure = await member.mutex(name).acquire({ signal: wish.end.signal });
    wish.times += 1;
    tell({ note: "holds", name, atMs: sharedNowMs() });
  };
  wish.over = hold().catch(() => {});
  locks.set(name, wish);
}

async function resign(name: string): Promise<void> {
  const wish = campaigns.get(name);
  campaigns.delete(name);
  wish?.end.abort();
  await wish?.over;
}

async function giveBack(name: string): Promise<void> {
  const wish = locks.get(name);
  locks.delete(name);
  wish?.end.abort();
  await wish?.over;
  await wish?.tenure?.release();
}

const isUnbroken = (wish: Wish<Grant | Leadership> | undefined): boolean =>
  wish?.times === 1 && wish.tenure?.isHeld === true;

function beginTurns(name: string): void {
  const mine = { goOn: true, longestGapMs: 0, over: Promise.resolve() };
  const take = async (): Promise<void> => {
    let before = performance.now();
    while (mine.goOn) {
      const grant = await member.mutex(name).acquire();
      mine.longestGapMs = Math.max(mine.longestGapMs, performance.now() - before);
      before = performance.now();
      await grant.release();
    }
  };
  mine.over = take();
  turns = mine;
}

async function endTurns(): Promise<number> {
  if (turns === null) return Number.NaN;
  turns.goOn = false;
  await turns.over;
  return turns.longestGapMs;
}

const VALUE = "x".repeat(64);
const KEYS = 100;

function load(work: Exclude<Work, "watch">, inFlight: number, ms: number): Promise<Throughput> {
  const [map, lock] = [member.map<string>("bench"), member.mutex("bench")];
  const deeds: Readonly<Record<typeof work, (client: number, turn: number) => Promise<unknown>>> = {
    write: (client, turn) => map.put(`key-${client}-${turn % KEYS}`, VALUE),
    read: (client, turn) => map.get(`key-${client}-${turn % KEYS}`),
    lock: () => lock.use(() => {}),
  };
  return loadOf(inFlight, ms, deeds[work]);
}

const WATCHED = "watched";

async function beginWatch(): Promise<void> {
  const map = member.map<number>(WATCHED);
  const end = new AbortController();
  const watch = map.watch({ after: await map.put(WATCHED, 0), signal: end.signal });
  const arrivedAt: number[] = [];
  let come: () => void = () => {};
  const hear = async (): Promise<void> => {
    for await (const _ of watch) {
      arrivedAt.push(sharedNowMs());
      come();
    }
  };
  const over = hear().catch(() => {}); // It ends as it is asked to, or with the member.
  watched = {
    async until(count) {
      while (arrivedAt.length < count) await new Promise<void>((resolve) => (come = resolve));
      end.abort();
      await over;
      return arrivedAt;
    },
  };
}

async function writeWatched(ms: number): Promise<number[]> {
  const map = member.map<number>(WATCHED);
  const beganAt: number[] = [];
  const until = sharedNowMs() + ms;
  while (sharedNowMs() < until) {
    beganAt.push(sharedNowMs());
    await map.put(WATCHED, beganAt.length);
  }
  return beganAt;
}

async function write(timeoutMs: number): Promise<boolean> {
  try {
    await member.map("bench").put("fail-over", VALUE, { timeoutMs });
    return true;
  } catch {
    return false; // Nobody led, or not for long enough.
  }
}

async function answer(ask: Ask): Promise<Answers[Ask["ask"]]> {
  switch (ask.ask) {
    case "standing":
      return standing();
    case "pairs":
      return { pairs: await pairs(ask.clients, ask.ms) };
    case "open":
      open(ask.name, ask.kind);
      return null;
    case "close":
      await channels.get(ask.name)?.close();
      channels.delete(ask.name);
      return null;
    case "send-one-by-one":
      return { tookMs: await sendOneByOne(open(ask.name, ask.kind), ask.ms) };
    case "send-many":
      return { perSecond: await sendMany(open(ask.name, ask.kind), ask.ms) };
    case "send-first": {
      const began = performance.now();
      await open(ask.name, ask.kind).send(PAYLOAD);
      return { tookMs: performance.now() - began };
    }
    case "campaign":
      campaign(ask.name);
      return null;
    case "want":
      want(ask.name);
      return null;
    case "resign":
      await resign(ask.name);
      return null;
    case "give-back":
      await giveBack(ask.name);
      return null;
    case "tenures":
      return { leads: isUnbroken(campaigns.get(ask.name)), holds: isUnbroken(locks.get(ask.name)) };
    case "begin-turns":
      beginTurns(ask.name);
      return null;
    case "end-turns":
      return { longestGapMs: await endTurns() };
    case "load":
      return load(ask.work, ask.inFlight, ask.ms);
    case "begin-watch":
      await beginWatch();
      return null;
    case "end-watch":
      return { arrivedAt: (await watched?.until(ask.count)) ?? [] };
    case "write-watched":
      return { beganAt: await writeWatched(ask.ms) };
    case "write":
      return { isAccepted: await write(ask.timeoutMs) };
    case "leave": {
      const began = performance.now();
      await member.leave();
      return { tookMs: performance.now() - began };
    }
  }
}

process.on("message", ({ number, ask }: { number: number; ask: Ask }) => {
  answer(ask).then(
    (it) => process.send?.({ number, answer: it }),
    (error: unknown) => process.send?.({ number, error: (error as Error).stack }),
  );
});
process.on("disconnect", () => process.exit(0));
void tellViews(open(ROOM, "total"));

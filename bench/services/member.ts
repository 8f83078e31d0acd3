/**
 * A process started by `coterie bench services`: joins, executes calls, and sends notifications when it becomes the
 * leader, acquires a lock or has a new view.
 */
import { join } from "../../src/cluster/join.ts";
import type { Grant, Leadership, Member } from "../../src/cluster/services/api.ts";
import type { Channel, ChannelOptions } from "../../src/cluster/services/channel-api.ts";
import type { Timing } from "../../src/cluster/services/timing.ts";
import { keyOf, loadOf, type Throughput, VALUE } from "../load.ts";
import { serve, sharedNowMs } from "../workers.ts";

export interface MemberOptions {
  readonly id: number;
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
  readonly timing: Timing;
}

/** A notification. `atMs` is measured on a clock that all processes on the machine share. */
export type Notification =
  | { readonly is: Tenure; readonly name: string; readonly atMs: number }
  | { readonly is: "view"; readonly members: readonly number[]; readonly atMs: number };

/** Leadership in an election, or possession of a lock. */
export type Tenure = "leads" | "holds";

/** How a member sees the cluster. `view` refers to the channel `room`, which is open from the start. */
export interface Standing {
  readonly reachable: number;
  /** The leader of the replicated log. */
  readonly leader: number | null;
  readonly view: number | null;
  readonly viewMembers: readonly number[];
  readonly isInView: boolean;
}

/** An attempt to lead or to hold a lock, including the time for which it succeeds. */
interface Candidacy {
  tenure: Grant | Leadership | null;
  /** How often it succeeded. */
  times: number;
  readonly end: AbortController;
  over: Promise<unknown>;
}

const PAYLOAD = "x".repeat(100);
/** The number of messages in flight: enough for batches to grow, but below the limit on waiting messages. */
const MANY = 2_000;
const WATCHED = "watched";

export type Calls = ReturnType<typeof callsOf>;

function callsOf(member: Member) {
  const notify = (notification: Notification): void => void process.send?.(notification);
  const channels = new Map<string, Channel<string>>();
  const candidacies = new Map<string, Candidacy>();
  let turns: { isOver: boolean; longestGapMs: number; done: Promise<void> } | null = null;
  let watch: { readonly end: AbortController; readonly arrivedAt: number[]; arrived: () => void } | null = null;

  function open(name: string, options: ChannelOptions): Channel<string> {
    const known = channels.get(name);
    if (known !== undefined) return known;
    const channel = member.channel<string>(name, options);
    channels.set(name, channel);
    void drain(channel);
    return channel;
  }

  const room = open("room", { order: "total" });
  void (async () => {
    for await (const view of room.views())
      if (view.state === "member") notify({ is: "view", members: view.members, atMs: sharedNowMs() });
  })();

  return {
    standing(): Standing {
      const { reachable, leader } = member.status();
      const { view, members: viewMembers, state } = room.status;
      return { reachable, leader, view, viewMembers, isInView: state === "member" };
    },

    load(work: "write" | "read" | "lock", inFlight: number, ms: number): Promise<Throughput> {
      const [map, lock] = [member.map<string>("bench"), member.mutex("bench")];
      const requests = {
        write: (client: number, turn: number) => map.put(keyOf(client, turn), VALUE),
        read: (client: number, turn: number) => map.get(keyOf(client, turn)),
        lock: () => lock.use(() => {}),
      };
      return loadOf(inFlight, ms, requests[work]);
    },

    open: (name: string, options: ChannelOptions): void => void open(name, options),
    async close(name: string): Promise<void> {
      await channels.get(name)?.close();
      channels.delete(name);
    },
    /** Sends one message at a time, or keeps many of them in flight. */
    send(name: string, options: ChannelOptions, howMany: "one" | "many", ms: number): Promise<Throughput> {
      const channel = open(name, options);
      return loadOf(howMany === "one" ? 1 : MANY, ms, () => channel.send(PAYLOAD));
    },
    /**
     * Opens a new channel and sends one message.
     * @returns the time until the message has been sent
     */
    async firstSend(name: string, options: ChannelOptions): Promise<number> {
      const began = performance.now();
      await open(name, options).send(PAYLOAD);
      return performance.now() - began;
    },

    /** Tries to lead, or to hold the lock, until `giveUp` is called. */
    seek(kind: Tenure, name: string): void {
      const mine: Candidacy = { tenure: null, times: 0, end: new AbortController(), over: Promise.resolve() };
      const { signal } = mine.end;
      const had = (tenure: Grant | Leadership): void => {
        mine.tenure = tenure;
        mine.times += 1;
        notify({ is: kind, name, atMs: sharedNowMs() });
      };
      const lead = (leadership: Leadership): Promise<void> => {
        had(leadership);
        return new Promise((resolve) => leadership.signal.addEventListener("abort", () => resolve()));
      };
      const over: Promise<unknown> =
        kind === "leads"
          ? member.election(name).lead(lead, { signal })
          : member.mutex(name).acquire({ signal }).then(had);
      mine.over = over.catch(() => {}); // This ends on request, or when the member does.
      candidacies.set(`${kind} ${name}`, mine);
    },
    async giveUp(kind: Tenure, name: string): Promise<void> {
      const mine = candidacies.get(`${kind} ${name}`);
      candidacies.delete(`${kind} ${name}`);
      mine?.end.abort();
      await mine?.over;
      if (kind === "holds") await (mine?.tenure as Grant | null)?.release();
    },
    /** Returns whether this member has led, or has held the lock, without interruption. */
    isUnbroken(kind: Tenure, name: string): boolean {
      const mine = candidacies.get(`${kind} ${name}`);
      return mine?.times === 1 && mine.tenure?.isHeld === true;
    },

    /** Acquires and releases a lock repeatedly. */
    beginTurns(name: string): void {
      const mine = { isOver: false, longestGapMs: 0, done: Promise.resolve() };
      const take = async (): Promise<void> => {
        let before = performance.now();
        while (!mine.isOver) {
          const grant = await member.mutex(name).acquire();
          mine.longestGapMs = Math.max(mine.longestGapMs, performance.now() - before);
          before = performance.now();
          await grant.release();
        }
      };
      mine.done = take();
      turns = mine;
    },
    /** @returns the longest time between two grants */
    async endTurns(): Promise<number> {
      if (turns === null) return Number.NaN;
      turns.isOver = true;
      await turns.done;
      return turns.longestGapMs;
    },

    async beginWatch(): Promise<void> {
      const map = member.map<number>(WATCHED);
      const mine = { end: new AbortController(), arrivedAt: [] as number[], arrived: () => {} };
      const changes = map.watch({ after: await map.put(WATCHED, 0), signal: mine.end.signal });
      watch = mine;
      const read = async (): Promise<void> => {
        for await (const _ of changes) {
          mine.arrivedAt.push(sharedNowMs());
          mine.arrived();
        }
      };
      void read().catch(() => {}); // This ends on request, or when the member does.
    },
    /** @returns the arrival time of each write, on the shared clock */
    async endWatch(count: number): Promise<number[]> {
      const mine = watch;
      if (mine === null) return [];
      while (mine.arrivedAt.length < count) await new Promise<void>((resolve) => (mine.arrived = resolve));
      mine.end.abort();
      return mine.arrivedAt;
    },
    /**
     * Writes sequentially.
     * @returns the start time of each write, on the shared clock
     */
    async writeWatched(ms: number): Promise<number[]> {
      const map = member.map<number>(WATCHED);
      const beganAt: number[] = [];
      const until = sharedNowMs() + ms;
      while (sharedNowMs() < until) {
        beganAt.push(sharedNowMs());
        await map.put(WATCHED, beganAt.length);
      }
      return beganAt;
    },

    /** @returns the time until the acknowledgement, or null if it did not arrive in time */
    async write(timeoutMs: number): Promise<number | null> {
      const began = performance.now();
      try {
        await member.map("bench").put("fail-over", VALUE, { timeoutMs });
        return performance.now() - began;
      } catch {
        return null; // If the cluster has had no leader for long enough, the write fails.
      }
    },

    async leave(): Promise<number> {
      const began = performance.now();
      await member.leave();
      return performance.now() - began;
    },
  };
}

/** Reads and discards messages, since senders wait for members that do not read. */
async function drain(channel: Channel<string>): Promise<void> {
  for await (const _ of channel);
}

const options = JSON.parse(process.argv[2] ?? "{}") as MemberOptions;
serve(callsOf(await join({ ...options, cluster: "bench", tls: "off" })));

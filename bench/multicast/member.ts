/** A process started by `coterie bench multicast`: joins, sends on request, and counts and times incoming messages. */
import { join } from "../../src/cluster/join.ts";
import type { Member } from "../../src/cluster/services/api.ts";
import { serve, sharedNowMs } from "../workers.ts";
import {
  type Carrier,
  carrierOf,
  FIRST_SENDER,
  MARK_EVERY,
  type MemberOptions,
  type Sequence,
  type Way,
} from "./carriers.ts";

/** The number of messages in flight: enough for batches to grow, but below the limit on waiting messages. */
const IN_FLIGHT = 8_000;
/** The clock is read once for this many messages. */
const READ_EVERY = 32;
/**
 * How long after the last arrival the missing messages are considered lost. Datagrams can be lost, and members can
 * leave a group.
 */
const QUIET_MS = { lossy: 300, reliable: 3_000 };
const SPACE = 32;
const FILLING = "x".repeat(64 * 1024);

export type Calls = ReturnType<typeof callsOf>;

function callsOf(options: MemberOptions, member: Member) {
  const initial = String.fromCharCode(FIRST_SENDER + options.self);
  let carrier: Carrier | null = null;
  let isLossy = false;
  let [began, count, lastMs, order] = [0, 0, 0, 0];
  let marks: number[] = [];
  let cpuBefore = process.cpuUsage();
  let ages: number[] = [];
  let isNoted = false;
  let isPacing = false;
  let paced = 0;

  function arrived(from: number, payload: string): void {
    if (isPacing) {
      if (from !== options.self) ages.push(sharedNowMs() - Number(payload.slice(1, payload.indexOf(" "))));
      return;
    }
    count += 1;
    if (!isNoted)
      setImmediate(() => {
        lastMs = performance.now() - began;
        isNoted = false;
      });
    isNoted = true;
    // Hash the order of messages: combine each sender and number into a 32-bit hash.
    for (let i = 0, unit = 0; unit !== SPACE && i < payload.length; i++) {
      unit = payload.charCodeAt(i);
      order = (Math.imul(order, 31) + unit) | 0;
    }
    if (count % MARK_EVERY === 0) marks.push(order);
  }

  /** Returns a payload of exactly this length, consisting of sender, number and padding. */
  function payloadOf(number: number | string, bytes: number): string {
    const head = `${initial}${number} `;
    return head + FILLING.slice(0, bytes - head.length);
  }

  /** Waits until this many messages have arrived, or no more are arriving. */
  async function until(total: number, arrivals: () => number): Promise<void> {
    let [before, sinceMs] = [arrivals(), performance.now()];
    while (arrivals() < total) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (arrivals() > before) [before, sinceMs] = [arrivals(), performance.now()];
      if (performance.now() - sinceMs > (isLossy ? QUIET_MS.lossy : QUIET_MS.reliable)) break;
    }
  }

  return {
    async open(way: Way): Promise<void> {
      isLossy = way.kind === "dgram";
      [count, lastMs, order, marks, isPacing] = [0, 0, 0, [], false]; // Other members may begin their load earlier.
      carrier = await carrierOf(way, options, member, arrived);
    },
    /**
     * Sends messages until the time is over, but at least one.
     * @returns the number of messages, once all of them have been sent
     */
    async load(bytes: number, ms: number, sends: boolean): Promise<number> {
      began = performance.now();
      cpuBefore = process.cpuUsage();
      if (!sends) return 0;
      let sent = 0;
      const next = (): string | null => {
        if (sent > 0 && sent % READ_EVERY === 0 && performance.now() >= began + ms) return null;
        sent += 1;
        return payloadOf(sent, bytes);
      };
      const by = carrier as Carrier;
      await (by.sendAll?.(next) ?? keepFlying(by, next));
      return sent;
    },
    /**
     * Waits for this many messages. `ms` is the time from the start of the load to the last arrival, and `cpuMs` is
     * this process's CPU time.
     */
    async arrivals(total: number): Promise<Sequence & { readonly ms: number; readonly cpuMs: number }> {
      await until(total, () => count);
      const { user, system } = process.cpuUsage(cpuBefore);
      return { count, marks, order, ms: lastMs, cpuMs: (user + system) / 1_000 };
    },
    /** Starts recording the age of each message from other members. */
    listen(): void {
      [ages, isPacing] = [[], true];
    },
    /**
     * Sends messages at fixed intervals, but at least one.
     * @returns the number of messages
     */
    async pace(bytes: number, ms: number, everyMs: number, sends: boolean): Promise<number> {
      paced = 0;
      if (!sends) return 0;
      const deadline = performance.now() + ms;
      const pending: Promise<unknown>[] = [];
      await new Promise<void>((resolve) => {
        const timer = setInterval(() => {
          if (paced > 0 && performance.now() >= deadline) {
            clearInterval(timer);
            return resolve();
          }
          paced += 1;
          pending.push((carrier as Carrier).send(payloadOf(sharedNowMs().toFixed(3), bytes)));
        }, everyMs);
      });
      await Promise.allSettled(pending);
      return paced;
    },
    /**
     * Waits until all paced messages have arrived.
     * @returns their ages
     */
    async ages(total: number): Promise<number[]> {
      await until(total - paced, () => ages.length);
      return ages;
    },
    async close(): Promise<void> {
      await carrier?.close();
      carrier = null;
    },
  };
}

/** Keeps many messages in flight. */
function keepFlying(by: Carrier, next: () => string | null): Promise<void> {
  let [flying, isOver] = [0, false];
  return new Promise((resolve) => {
    const landed = (): void => {
      flying -= 1;
      if (!isOver && flying < IN_FLIGHT / 2) fill();
      if (isOver && flying === 0) resolve();
    };
    const fill = (): void => {
      while (flying < IN_FLIGHT) {
        const payload = next();
        isOver = payload === null;
        if (payload === null) return;
        flying += 1;
        by.send(payload).then(landed, landed); // Failed messages show up in the count of arrivals.
      }
    };
    fill();
  });
}

const options = JSON.parse(process.argv[2] ?? "{}") as MemberOptions;
const { self: id, members, dataDir, multicast } = options;
serve(callsOf(options, await join({ id, members, cluster: "bench", dataDir, multicast })));

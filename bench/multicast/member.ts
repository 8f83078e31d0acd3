/** One process of `coterie bench multicast`: joins, sends as requested, and counts and times arriving messages. */
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

/** Enough for the batches to grow, and less than the limit of waiting messages. */
const IN_FLIGHT = 8_000;
/** The clock is read after this many messages. */
const READ_EVERY = 32;
/** The time after the last arrival until the rest counts as lost: datagrams get lost, and members may leave a group. */
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
    // The order of messages: the sender and its number, folded into 32 bits.
    for (let i = 0, unit = 0; unit !== SPACE && i < payload.length; i++) {
      unit = payload.charCodeAt(i);
      order = (Math.imul(order, 31) + unit) | 0;
    }
    if (count % MARK_EVERY === 0) marks.push(order);
  }

  /** A payload of exactly this length: the sender, a number, and filling. */
  function payloadOf(number: number | string, bytes: number): string {
    const head = `${initial}${number} `;
    return head + FILLING.slice(0, bytes - head.length);
  }

  /** Resolves once this many have arrived, or when no more arrive. */
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
      [count, lastMs, order, marks, isPacing] = [0, 0, 0, [], false]; // Others may begin their load before this member does.
      carrier = await carrierOf(way, options, member, arrived);
    },
    /** Sends until the time is over, and at least one message. @returns the number of messages, once all are settled */
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
    /** Resolves once this many have arrived. `ms`: from the start of the load to the last arrival. `cpuMs`: of this process. */
    async arrivals(total: number): Promise<Sequence & { readonly ms: number; readonly cpuMs: number }> {
      await until(total, () => count);
      const { user, system } = process.cpuUsage(cpuBefore);
      return { count, marks, order, ms: lastMs, cpuMs: (user + system) / 1_000 };
    },
    /** From now on, records the age of each message from other members. */
    listen(): void {
      [ages, isPacing] = [[], true];
    },
    /** Sends at a pace, and at least one message. @returns the number of messages */
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
    /** Resolves once all paced messages have arrived. */
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
        by.send(payload).then(landed, landed); // Failed messages are missing in the count of arrivals.
      }
    };
    fill();
  });
}

const options = JSON.parse(process.argv[2] ?? "{}") as MemberOptions;
const { self: id, members, dataDir, multicast } = options;
serve(callsOf(options, await join({ id, members, cluster: "bench", dataDir, multicast })));

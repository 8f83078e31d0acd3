/** One process of `coterie bench multicast`: joins, sends as it is asked to, counts and times what arrives. */
import { join } from "../src/cluster/join.ts";
import { type Carrier, carrierOf, FIRST_SENDER } from "./multicast/carriers.ts";
import { type Answers, type Ask, type Being, MARK_EVERY } from "./multicast/orders.ts";

const being = JSON.parse(process.argv[2] ?? "{}") as Being;
const member = await join({
  id: being.self,
  members: being.members,
  cluster: "bench",
  dataDir: being.dataDir,
  multicast: being.multicast,
});

/** Enough for the batches to grow, and less than may wait. */
const IN_FLIGHT = 8_000;
/** After so many messages the clock is looked at. */
const LOOK_EVERY = 32;
/** So long after the last arrival, no more are awaited: bare datagrams get lost, and so do members of a group. */
const QUIET_MS = { lossy: 300, reliable: 3_000 };

let carrier: Carrier | null = null;
let isLossy = false;
let [began, count, lastMs, order] = [0, 0, 0, 0];
let marks: number[] = [];
let cpuBefore = process.cpuUsage();
let ages: number[] = [];
let isNoted = false;
let isPacing = false;
let paced = 0;

const nowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

function arrived(from: number, payload: string): void {
  if (isPacing) {
    if (from !== being.self) ages.push(nowMs() - Number(payload.slice(1, payload.indexOf(" "))));
    return;
  }
  count += 1;
  if (!isNoted)
    setImmediate(() => {
      lastMs = performance.now() - began;
      isNoted = false;
    });
  isNoted = true;
  // Which messages, in which order: the sender and its number, folded into 32 bits.
  for (let i = 0, unit = 0; unit !== SPACE && i < payload.length; i++) {
    unit = payload.charCodeAt(i);
    order = (Math.imul(order, 31) + unit) | 0;
  }
  if (count % MARK_EVERY === 0) marks.push(order);
}

const SPACE = 32;
const FILLING = "x".repeat(64 * 1024);

/** Of exactly so many bytes: who sends it, a number, filling. */
function payloadOf(number: number | string, bytes: number): string {
  const head = `${INITIAL}${number} `;
  return head + FILLING.slice(0, bytes - head.length);
}

const INITIAL = String.fromCharCode(FIRST_SENDER + being.self);

/** Sends until the time is over, and something however late it is; resolves with how many there were once all are settled. */
async function load(by: Carrier, bytes: number, ms: number): Promise<number> {
  const deadline = performance.now() + ms;
  let sent = 0;
  const next = (): string | null => {
    if (sent > 0 && sent % LOOK_EVERY === 0 && performance.now() >= deadline) return null;
    sent += 1;
    return payloadOf(sent, bytes);
  };
  await (by.sendAll?.(next) ?? keepFlying(by, next));
  return sent;
}

/** Keeps many messages on their way. */
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
        by.send(payload).then(landed, landed); // What has failed is missing in the count of arrivals.
      }
    };
    fill();
  });
}

/** One message at least, however late it is. */
async function pace(by: Carrier, { bytes, ms, everyMs }: Extract<Ask, { ask: "pace" }>): Promise<number> {
  const deadline = performance.now() + ms;
  let sent = 0;
  const sends: Promise<unknown>[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (sent > 0 && performance.now() >= deadline) {
        clearInterval(timer);
        return resolve();
      }
      sent += 1;
      sends.push(by.send(payloadOf(nowMs().toFixed(3), bytes)));
    }, everyMs);
  });
  await Promise.allSettled(sends);
  return sent;
}

/** Resolves once that many have arrived, or when no more come. */
async function until(total: number, arrivals: () => number): Promise<void> {
  let [before, sinceMs] = [arrivals(), performance.now()];
  while (arrivals() < total) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (arrivals() > before) [before, sinceMs] = [arrivals(), performance.now()];
    if (performance.now() - sinceMs > (isLossy ? QUIET_MS.lossy : QUIET_MS.reliable)) break;
  }
}

async function allArrived(total: number): Promise<Answers["arrived"]> {
  await until(total, () => count);
  const { user, system } = process.cpuUsage(cpuBefore);
  return { count, marks, order, ms: lastMs, cpuMs: (user + system) / 1_000 };
}

async function answer(ask: Ask): Promise<Answers[Ask["ask"]]> {
  switch (ask.ask) {
    case "open":
      isLossy = ask.way.kind === "dgram";
      [count, lastMs, order, marks, isPacing] = [0, 0, 0, [], false]; // Others may begin their load before this one is asked to.
      carrier = await carrierOf(ask.way, being, member, arrived);
      return {};
    case "load":
      began = performance.now();
      cpuBefore = process.cpuUsage();
      return { sent: ask.sends ? await load(carrier as Carrier, ask.bytes, ask.ms) : 0 };
    case "arrived":
      return allArrived(ask.total);
    case "listen":
      [ages, isPacing] = [[], true];
      return {};
    case "pace":
      paced = ask.sends ? await pace(carrier as Carrier, ask) : 0;
      return { sent: paced };
    case "ages":
      await until(ask.total - paced, () => ages.length);
      return { ages };
    case "close":
      await carrier?.close();
      carrier = null;
      return {};
  }
}

process.on("message", (ask: Ask) => {
  answer(ask).then(
    (it) => process.send?.({ answer: it }),
    (error: unknown) => process.send?.({ error: (error as Error).stack }),
  );
});
process.on("disconnect", () => process.exit(0));
process.send?.({ answer: {} });

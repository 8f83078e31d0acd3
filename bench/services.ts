/**
 * Measures locks, elections and channels with three processes on loopback: locks per second, sends, how long other
 * members wait after a crash, a pause or a graceful leave, which pauses a member survives with each `timing`, and
 * whether members survive on a busy machine. Prints medians with minimum and maximum.
 *
 *     npx coterie bench services --only locks --quick
 */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChannelOptions } from "../src/cluster/services/channel-api.ts";
import { type Timing, timings } from "../src/cluster/services/timing.ts";
import { beforeSignalsEnd, commandLine, progress } from "./command-line.ts";
import { inTurns, printRows, type Row, Rows } from "./results.ts";
import { Group } from "./services/group.ts";
import { failOvers, stalls } from "./services/incidents.ts";
import { Processes } from "./workers.ts";

const SECTIONS = ["locks", "sends", "fail-over", "stalls", "busy"] as const;
const STALLS_MS = "100,200,400,700,1000,2000";
const CLIENTS = 16;
const FIRST_SENDS = 5;
const WRITE_EVERY_MS = 1_000;
const WRITE_MS = 60_000;

const { values, amount, someOf, whole, wholes } = commandLine(
  "services",
  {
    only: {
      such: "locks",
      default: "locks,sends,fail-over,stalls",
      help: `some of ${SECTIONS.join(", ")} (default: all but busy)`,
    },
    timing: {
      such: "fast",
      default: timings.join(),
      help: `for stalls and busy: some of ${timings.join(", ")} (default: all)`,
    },
    stalls: { such: "100,400", help: `how many milliseconds a member is stopped (default: ${STALLS_MS})` },
    rounds: { such: "10", help: "how many rounds of each (default: 5; quick: 1)" },
    seconds: { such: "2", help: "how long each round acquires locks and sends messages (default: 1; quick: 0.2)" },
    loops: { such: "8", default: "8", help: "for busy: how many busy loops run next to the members (default: 8)" },
    minutes: { such: "10", default: "10", help: "for busy: how long, for each timing (default: 10)" },
    quick: { help: "one short round of each, and two stalls" },
    json: { help: "one object for each row, as a list" },
  },
  {
    note: `With its defaults it takes about 12 minutes; shorter, a few seconds:
  coterie bench services --only locks --quick`,
  },
);

const ms = amount("seconds", values.seconds ?? (values.quick ? "0.2" : "1"), 60) * 1_000;
const rounds = whole("rounds", values.rounds ?? (values.quick ? "1" : "5"), 1, 100);
const stallsMs = wholes("stalls", values.stalls ?? (values.quick ? "100,2000" : STALLS_MS), 1, 30_000);
const loops = whole("loops", values.loops, 0, 1_000);
const minutes = amount("minutes", values.minutes, 10_000);
const sections = someOf("only", values.only, SECTIONS);
const chosen: Timing[] = someOf("timing", values.timing, timings);

async function locks(): Promise<Rows> {
  const group = await Group.of("default");
  const rows = new Rows("locks");
  const { leader } = await group.settled();
  const [other = 0] = group.ids.filter((id) => id !== leader);
  const perSecond = async (clients: Readonly<Record<number, number>>): Promise<number> => {
    const loads = Object.entries(clients).map(([id, count]) => group.call(Number(id), "load", "lock", count, ms));
    return (await Promise.all(loads)).reduce((sum, load) => sum + load.perSecond, 0);
  };
  const over = Object.fromEntries(group.ids.map((id) => [id, Math.floor((CLIENTS + id - 1) / group.ids.length)]));
  const found = await inTurns(rounds, {
    "one client, at the leader of the log": () => perSecond({ [leader]: 1 }),
    "one client, in another process": () => perSecond({ [other]: 1 }),
    [`${CLIENTS} clients, in another process`]: () => perSecond({ [other]: CLIENTS }),
    [`${CLIENTS} clients, over three processes`]: () => perSecond(over),
  });
  for (const [what, figures] of Object.entries(found)) for (const figure of figures) rows.add(what, "pairs/s", figure);
  group.end();
  return rows;
}

/** The channels that are measured. All but the last use links. */
const channels: Readonly<Record<string, ChannelOptions>> = {
  none: { order: "none" },
  fifo: { order: "fifo" },
  causal: { order: "causal" },
  total: { order: "total" },
  "causal-total": { order: "causal-total" },
  "total, on the log": { order: "total", transport: "log" },
};

/** Measures sends. The sender changes with each round, because some orders have one member that decides. */
async function sends(): Promise<Rows> {
  const group = await Group.of("default");
  const rows = new Rows("sends");
  for (let round = 0; round <= rounds; round++) {
    const sender = group.ids[round % group.ids.length] as number;
    for (const [kind, options] of Object.entries(channels)) {
      progress(`sends, round ${round} of ${rounds}: ${kind}`);
      const name = `${kind}-${round}`;
      await Promise.all(group.ids.map((id) => group.call(id, "open", name, options)));
      await group.call(sender, "send", name, options, "one", ms / 4); // Warm up.
      const { p50, p99 } = await group.call(sender, "send", name, options, "one", ms);
      const { perSecond } = await group.call(sender, "send", name, options, "many", ms);
      await Promise.all(group.ids.map((id) => group.call(id, "close", name)));
      if (round === 0) continue;
      rows.add(`${kind}, one at a time, median`, "ms", p50);
      rows.add(`${kind}, one at a time, p99`, "ms", p99);
      rows.add(`${kind}, in bulk, one sender`, "messages/s", perSecond);
    }
  }
  for (let round = 0; round < rounds * FIRST_SENDS; round++)
    for (const [kind, options] of Object.entries(channels)) {
      progress(`sends, first on a new channel, ${round + 1} of ${rounds * FIRST_SENDS}: ${kind}`);
      const sender = group.ids[round % group.ids.length] as number;
      const name = `first-${kind}-${round}`;
      rows.add(`${kind}, first on a new channel`, "ms", await group.call(sender, "firstSend", name, options));
      await group.call(sender, "close", name);
    }
  group.end();
  return rows;
}

/**
 * Measures survival on a busy machine: each member holds a lock and writes once a second while busy loops are running.
 */
async function busy(timing: Timing): Promise<Rows> {
  const group = await Group.of(timing);
  const rows = new Rows(`busy, ${timing}`);
  for (const id of group.ids) {
    const holds = group.next("a holder", (from, it) => from === id && it.is === "holds");
    await group.call(id, "seek", "holds", `of ${id}`);
    await holds;
  }
  const others = new Processes("busy-loops");
  for (let loop = 0; loop < loops; loop++) await others.spawn(String(loop), process.execPath, ["-e", "for (;;);"]);
  const until = performance.now() + minutes * 60_000;
  while (performance.now() < until) {
    progress(`busy, ${timing}: ${Math.round((until - performance.now()) / 1_000)} s to go`);
    for (const took of await Promise.all(group.ids.map((id) => group.call(id, "write", WRITE_MS))))
      rows.add("a write", "ms", took ?? Number.POSITIVE_INFINITY);
    await sleep(WRITE_EVERY_MS);
  }
  for (const id of group.ids)
    rows.add("lock of a member", "survived", (await group.call(id, "isUnbroken", "holds", `of ${id}`)) ? 1 : 0);
  others.end();
  group.end();
  return rows;
}

const all: Row[] = [];
function report(title: string, { all: rows }: Rows): void {
  progress("");
  all.push(...rows);
  if (!values.json) printRows(title, rows);
}

beforeSignalsEnd(() => Processes.endAll());
try {
  for (const section of sections) {
    if (section === "locks") report("Locks, acquired and released", await locks());
    if (section === "sends") report("Channels over TCP, and one on the log, payloads of 100 bytes", await sends());
    if (section === "fail-over")
      report("From an incident at a member until another is in its place", await failOvers(rounds));
    for (const timing of section === "stalls" ? chosen : [])
      report(`After a member was stopped, or crashed: ${timing}`, await stalls(timing, stallsMs, rounds));
    for (const timing of section === "busy" ? chosen : [])
      report(`${loops} busy loops on ${availableParallelism()} processors: ${timing}`, await busy(timing));
  }
  if (values.json) console.log(JSON.stringify(all, null, 2));
} finally {
  Processes.endAll();
}
process.exit();

/**
 * Measures the cost of each channel order: messages per second and delay, compared with a bare fan-out of the same
 * messages over `node:net` and `node:dgram` in the same run. A message counts once every member has delivered it. A
 * round ends when all messages have arrived everywhere. All transports take turns, after a warm-up round. Prints
 * medians, and ratios to bare `net`.
 *
 *     npx coterie bench multicast [--processes 3 --order total --seconds 2]
 */
import { join } from "node:path";
import type { Order, Transport } from "../src/cluster/services/channel-api.ts";
import { beforeSignalsEnd, commandLine } from "./command-line.ts";
import { type MemberOptions, sameOrder, type Way } from "./multicast/carriers.ts";
import type { Calls } from "./multicast/member.ts";
import { inTurns, median, printTable, quantile, spread } from "./results.ts";
import { freePorts, Processes, Workers } from "./workers.ts";

const ORDERS: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];
/** Total orders: every member delivers the same sequence. */
const TOTAL: readonly Order[] = ["total", "causal-total"];
const TRANSPORTS: readonly Transport[] = ["tcp", "udp"];
const SENDERS = ["one", "all"] as const;
const MAX_PROCESSES = 32;
const MAX_BYTES = 60_000;
/** The interval between a sender's messages while delays are measured. */
const PACE_MS = 5;

const { values, amount, someOf, whole, wholes } = commandLine(
  "multicast",
  {
    processes: { such: "3,5", default: "3,5,7", help: "how many members (default: 3,5,7)" },
    order: { such: "total", default: ORDERS.join(), help: `some of ${ORDERS.join(", ")} (default: all)` },
    transport: { such: "udp", default: TRANSPORTS.join(), help: "tcp, or udp, or both (default)" },
    bytes: { such: "100,1024", default: "100,1024", help: "length of a payload (default: 100,1024)" },
    senders: { such: "one", default: SENDERS.join(), help: "one, or all, or both (default)" },
    seconds: { such: "2", default: "1", help: "for how long members send in a round (default: 1)" },
    rounds: { such: "5", default: "3", help: "how many rounds of each (default: 3)" },
    json: { help: "one object for each figure, as a list" },
  },
  {
    note: `With its defaults it takes about 20 minutes; shorter, two:
  coterie bench multicast --processes 3 --order total --transport tcp`,
  },
);

const ms = amount("seconds", values.seconds, 60) * 1_000;
const rounds = whole("rounds", values.rounds, 1, 100);
const sizes = wholes("processes", values.processes, 2, MAX_PROCESSES);
const lengths = wholes("bytes", values.bytes, 32, MAX_BYTES);
const orders = someOf("order", values.order, ORDERS);
const transports = someOf("transport", values.transport, TRANSPORTS);

interface Cell {
  readonly processes: number;
  readonly bytes: number;
  readonly senders: (typeof SENDERS)[number];
}

const ways: Readonly<Record<string, Way>> = {
  "bare net": { kind: "net" },
  "bare net in batches": { kind: "net-batches" },
  "bare dgram": { kind: "dgram" },
  ...Object.fromEntries(
    orders.flatMap((order) =>
      transports.map((transport) => [
        `${order} ${transport}`,
        { kind: "channel", name: `${order}-${transport}`, options: { order, transport } },
      ]),
    ),
  ),
};

class Group extends Workers<Calls> {
  readonly #ids: readonly number[];

  private constructor(size: number) {
    super("multicast", "multicast/member");
    this.#ids = Array.from({ length: size }, (_, self) => self);
  }

  static async of(size: number): Promise<Group> {
    const group = new Group(size);
    const ports = await freePorts(2 * size + 1);
    const members = Object.fromEntries(group.#ids.map((self) => [self, `127.0.0.1:${ports[self]}`]));
    const multicast = { group: "239.192.7.9", port: ports[2 * size] as number, interface: "127.0.0.1" };
    for (const self of group.#ids) {
      const dataDir = join(group.folder, String(self));
      const options: MemberOptions = { self, members, dataDir, multicast, barePorts: ports.slice(size, 2 * size) };
      group.start(self, options);
    }
    await group.all((id) => group.call(id, "close")); // Wait until every member has joined.
    return group;
  }

  all<T>(call: (id: number) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#ids.map(call));
  }
}

/** Measures one round of a single transport. */
async function measured(group: Group, way: Way, { bytes, senders }: Cell) {
  const sends = (self: number): boolean => senders === "all" || self === 0;
  const sum = (counts: readonly number[]): number => counts.reduce((all, each) => all + each, 0);
  await group.all((id) => group.call(id, "open", way));
  const total = sum(await group.all((id) => group.call(id, "load", bytes, ms, sends(id))));
  const arrivals = await group.all((id) => group.call(id, "arrivals", total));
  await group.all((id) => group.call(id, "listen")); // Listen before any member sends paced messages.
  const paced = sum(await group.all((id) => group.call(id, "pace", bytes, ms, PACE_MS, sends(id))));
  const ages = (await group.all((id) => group.call(id, "ages", paced))).flat();
  await group.all((id) => group.call(id, "close"));
  const isTotal = way.kind === "channel" && TOTAL.includes(way.options.order);
  return {
    /** Messages per second, counting those that every member delivered. */
    perSecond: Math.min(...arrivals.map(({ count, ms: lastMs }) => count / (lastMs / 1_000))),
    /** The CPU time of all processes per message. */
    cpuUs: (sum(arrivals.map(({ cpuMs }) => cpuMs)) * 1_000) / total,
    /** The fraction of messages that at least one member did not deliver. */
    lost: 1 - Math.min(...arrivals.map(({ count }) => count)) / total,
    agrees: !isTotal || sameOrder(arrivals),
    delayMs: quantile(ages, 0.5),
    delayP99Ms: quantile(ages, 0.99),
  };
}

type Round = Awaited<ReturnType<typeof measured>>;

const titleOf = ({ processes, bytes, senders }: Cell): string =>
  `${processes} processes, payloads of ${bytes} bytes, ${senders === "one" ? "one sends" : "all send"}`;

function rowsOf(cell: Cell, found: Readonly<Record<string, readonly Round[]>>) {
  const bare = found["bare net"] ?? [];
  return Object.entries(found).map(([name, of]) => ({
    ...cell,
    name,
    perSecond: of.map(({ perSecond }) => perSecond),
    ofBareNet: of.map(({ perSecond }, round) => perSecond / (bare[round]?.perSecond ?? Number.NaN)),
    delayMs: median(of.map(({ delayMs }) => delayMs)),
    delayP99Ms: median(of.map(({ delayP99Ms }) => delayP99Ms)),
    cpuUs: median(of.map(({ cpuUs }) => cpuUs)),
    lost: median(of.map(({ lost }) => lost)),
    agrees: of.every(({ agrees }) => agrees),
  }));
}

function print(cell: Cell, rows: ReturnType<typeof rowsOf>): void {
  const head = [
    titleOf(cell),
    "messages/s",
    "of bare net",
    "delay ms: median, p99",
    "µs of processor a message",
    "lost",
  ];
  const lines = rows.map(({ name, perSecond, ofBareNet, delayMs, delayP99Ms, cpuUs, lost, agrees }) => [
    `  ${name}${agrees ? "" : ": DISAGREE"}`,
    spread(perSecond),
    spread(ofBareNet),
    `${delayMs.toFixed(2)}, ${delayP99Ms.toFixed(2)}`,
    cpuUs.toFixed(1),
    lost > 0 ? `${(100 * lost).toFixed(1)} %` : "",
  ]);
  printTable([head, ...lines]);
}

beforeSignalsEnd(() => Processes.endAll());
const all: object[] = [];
const faults = new Map<string, number>();
for (const processes of sizes) {
  const group = await Group.of(processes);
  for (const bytes of lengths)
    for (const senders of someOf("senders", values.senders, SENDERS)) {
      const cell: Cell = { processes, bytes, senders };
      const measurements = Object.entries(ways).map(([name, way]) => [name, () => measured(group, way, cell)] as const);
      const found = await inTurns<string, Round>(rounds, Object.fromEntries(measurements), {
        about: `${titleOf(cell)}: `,
      });
      const rows = rowsOf(cell, found);
      all.push(...rows);
      if (!values.json) print(cell, rows);
      const note = (fault: string, times: number): void => void faults.set(fault, (faults.get(fault) ?? 0) + times);
      for (const [name, of] of Object.entries(found)) {
        note("members delivered in different orders", of.filter(({ agrees }) => !agrees).length);
        if (ways[name]?.kind === "channel")
          note("a message on a channel did not arrive everywhere", of.filter(({ lost }) => lost > 0).length);
      }
    }
  group.end();
}
if (values.json) console.log(JSON.stringify(all, null, 2));
for (const [fault, times] of faults) {
  if (times === 0) continue;
  console.error(`coterie bench multicast: in ${times} rounds ${fault}`);
  process.exitCode = 1;
}

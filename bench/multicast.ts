/**
 * What each order of a channel costs: messages per second and delay, beside a bare fan-out over `node:net` and `node:dgram` of
 * the same messages in the same run. A message counts when every member has delivered it: a round ends when all that was sent
 * has arrived everywhere. Rounds of all ways in turn, after one that warms up; medians, and ratios to bare `net`.
 *
 *     node build/bench/multicast.js [--processes 3 --order total --seconds 2]
 */
import type { Order, Transport } from "../src/cluster/services/channel-api.ts";
import { commandLine } from "./command-line.ts";
import { type Cell, type Figure, type Named, planned, sameOrder, say, title } from "./multicast/figures.ts";
import { Group } from "./multicast/group.ts";

const ORDERS: readonly Order[] = ["none", "fifo", "causal", "total", "causal-total"];
/** With these every member delivers the same sequence. */
const TOTAL: readonly Order[] = ["total", "causal-total"];
const TRANSPORTS: readonly Transport[] = ["tcp", "udp"];
const SENDERS: readonly Cell["senders"][] = ["one", "all"];
const MAX_PROCESSES = 32;
const MAX_BYTES = 60_000;
/** How often a sender sends while delays are measured. */
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
const senders = someOf("senders", values.senders, SENDERS);

function channels(): Named[] {
  const [orders, transports] = [
    someOf("order", values.order, ORDERS),
    someOf("transport", values.transport, TRANSPORTS),
  ];
  return orders.flatMap((order) =>
    transports.map((transport) => ({
      name: `${order} ${transport}`,
      isTotal: TOTAL.includes(order),
      way: { kind: "channel" as const, name: `${order}-${transport}`, options: { order, transport } },
    })),
  );
}

const ways: readonly Named[] = [
  { name: "bare net", isTotal: false, way: { kind: "net" } },
  { name: "bare net in batches", isTotal: false, way: { kind: "net-batches" } },
  { name: "bare dgram", isTotal: false, way: { kind: "dgram" } },
  ...channels(),
];

const inAll = (members: readonly { readonly sent: number }[]): number =>
  members.reduce((sum, { sent }) => sum + sent, 0);

async function measure(group: Group, { way, isTotal }: Named, { bytes, senders: who }: Cell): Promise<Figure> {
  const sends = (self: number): boolean => who === "all" || self === 0;
  await group.all(() => ({ ask: "open", way }));
  const loads = await group.all((self) => ({ ask: "load", bytes, ms, sends: sends(self) }));
  const total = inAll(loads);
  const arrivals = await group.all(() => ({ ask: "arrived", total }));
  await group.all(() => ({ ask: "listen" })); // Before anybody sends at a pace.
  const paced = inAll(await group.all((self) => ({ ask: "pace", bytes, ms, everyMs: PACE_MS, sends: sends(self) })));
  const ages = (await group.all(() => ({ ask: "ages", total: paced }))).flatMap((each) => each.ages);
  await group.all(() => ({ ask: "close" }));
  const least = Math.min(...arrivals.map(({ count }) => count));
  return {
    perSecond: Math.min(...arrivals.map(({ count, ms: lastMs }) => count / (lastMs / 1_000))),
    cpuUs: (arrivals.reduce((sum, { cpuMs }) => sum + cpuMs, 0) * 1_000) / total,
    lost: 1 - least / total,
    agrees: !isTotal || sameOrder(arrivals),
    ages: ages.sort((a, b) => a - b),
  };
}

const isWatched = process.stderr.isTTY;
const progress = (text: string): void => {
  if (isWatched) process.stderr.write(`\r\x1b[K${text}`);
};

const tables = sizes.length * lengths.length * senders.length;
console.error(`coterie bench multicast: ${planned(tables, ways.length, rounds, ms)}`);

async function cellOf(group: Group, cell: Cell, table: string): Promise<ReadonlyMap<Named, readonly Figure[]>> {
  if (!isWatched) console.error(table);
  const figures = new Map<Named, Figure[]>(ways.map((named) => [named, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const named of ways) {
      progress(`${table}, round ${round} of ${rounds}: ${named.name}`);
      const figure = await measure(group, named, cell);
      if (round > 0) figures.get(named)?.push(figure); // The first warms up.
    }
  }
  progress("");
  return figures;
}

const rows: object[] = [];
let begun = 0;
const faults = new Map<string, number>();
const account = (fault: string, isThere: boolean): void => {
  if (isThere) faults.set(fault, (faults.get(fault) ?? 0) + 1);
};
for (const processes of sizes) {
  const group = await Group.of(processes);
  for (const bytes of lengths) {
    for (const who of senders) {
      const cell: Cell = { processes, bytes, senders: who };
      begun += 1;
      const figures = await cellOf(group, cell, `table ${begun} of ${tables}: ${title(cell)}`);
      rows.push(...say(cell, figures, values.json));
      for (const [{ way }, of] of figures) {
        for (const { agrees, lost } of of) {
          account("members delivered in different orders", !agrees);
          account("what was sent on a channel did not arrive everywhere", way.kind === "channel" && lost > 0);
        }
      }
    }
  }
  await group.end();
}
if (values.json) console.log(JSON.stringify(rows, null, 2));
for (const [fault, times] of faults) {
  console.error(`coterie bench multicast: in ${times} rounds ${fault}`);
  process.exitCode = 1;
}

/**
 * One member of an ip-multicast group in a separate process, for `udp.test.ts`. It takes orders as JSON lines,
 * multicasts numbers in batches, and reports results as JSON lines. Its argument is the member's configuration.
 */
import { createInterface } from "node:readline";
import type { MessageOf } from "../../src/core/protocol.ts";
import { variants } from "../../src/core/shape.ts";
import { type IpMulticast, ipMulticast } from "../../src/protocols/multicast/ip-multicast/ip-multicast.ts";
import { type Faults, faultInjector } from "../../src/runtime/fault-injector.ts";
import { Host } from "../../src/runtime/host.ts";
import { createLog } from "../../src/runtime/log.ts";
import { newCounts } from "../../src/runtime/metrics.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { GroupIdentity } from "../../src/runtime/transport/identity.ts";
import { tcpTransport } from "../../src/runtime/transport/tcp.ts";
import { udpMulticast } from "../../src/runtime/transport/udp-multicast.ts";
import type { UdpPlace } from "../../src/runtime/transport/udp-place.ts";

export interface Being {
  readonly self: number;
  readonly members: Readonly<Record<number, { host: string; port: number }>>;
  readonly place: UdpPlace;
  /** How many of its own messages a member multicasts before the first is stable. */
  readonly window: number;
}

export type Order =
  | { do: "fault"; faults: Faults }
  /** Multicasts the numbers 1 … `count`, with `batch` numbers in each message. */
  | { do: "send"; count: number; batch: number }
  | { do: "tell" };

export type Report =
  | { kind: "open" }
  | { kind: "reached"; peers: number[] }
  | { kind: "log"; line: string }
  | ({ kind: "counted" } & Told);

export interface Told {
  /** For each member: the number of its values that have been delivered here. */
  delivered: Record<number, number>;
  /** The number of values that did not directly follow the previous value of their sender. */
  outOfOrder: number;
  /** Whether all of the member's own messages are stable. */
  isStable: boolean;
  datagrams: { sent: number; received: number; unsent: number };
  mostHeapBytes: number;
  mostRssBytes: number;
}

const { self, members, place, window }: Being = JSON.parse(process.argv[2] ?? "{}");

const report = (what: Report): void => void process.stdout.write(`${JSON.stringify(what)}\n`);
const fail = (error: Error): never => {
  throw error;
};

const protocol = ipMulticast({ windowMessages: window });
const [counts, injector] = [newCounts(), faultInjector(realPlatform.random)];
const delivered: Record<number, number> = {};
let outOfOrder = 0;
/** The number of own messages sent, and of those received by all members. */
let [sent, stable] = [0, 0];
let [left, batchSize, next] = [0, 1, 1];
let [mostHeapBytes, mostRssBytes] = [0, 0];

const host = new Host<IpMulticast>({
  platform: realPlatform,
  protocol,
  self,
  peers: Object.keys(members)
    .map(Number)
    .filter((member) => member !== self),
  send: (to, message) => tcp.send(to, message),
  multicast: (message) => udp.send(message),
  trace: { wanted: false, record: () => undefined },
  onEvent(event) {
    if (event.type === "delivered") deliver(event.from, event.payload);
    else if (event.type === "stable") {
      stable = event.count;
      sendMore();
    } else if (event.type === "refused") fail(new Error("a message was refused: more than the window waits"));
  },
  onFatal: fail,
});
const log = createLog((_level, line) => report({ kind: "log", line }));
const ways = {
  cluster: "test",
  self,
  protocol: protocol.name,
  shape: variants(protocol.shapes.message),
  injector,
  counts,
  log,
  deliver: (from: number, message: MessageOf<IpMulticast>, id: () => string) => host.receive(from, message, id),
  onLost: () => undefined,
  onFatal: fail,
};
const tcp = tcpTransport<MessageOf<IpMulticast>>({
  platform: realPlatform,
  ...ways,
  members,
  identity: new GroupIdentity({ self, members: Object.keys(members).map(Number), log }),
});
const udp = udpMulticast<MessageOf<IpMulticast>>({
  platform: realPlatform,
  ...ways,
  members: Object.keys(members).map(Number),
  place,
  fallback: (to, message) => tcp.send(to, message),
  linked: () => tcp.peers.flatMap(({ id, link }) => (link === "open" ? [id] : [])),
});

function deliver(from: number, payload: string): void {
  for (const number of JSON.parse(payload)) {
    const before = delivered[from] ?? 0;
    if (number === before + 1) delivered[from] = number;
    else outOfOrder += 1;
  }
}

function sendMore(): void {
  while (left > 0 && sent - stable < window) {
    const size = Math.min(batchSize, left);
    const payload = JSON.stringify(Array.from({ length: size }, (_, i) => next + i));
    next += size;
    left -= size;
    sent += 1;
    host.command({ type: "send", payload });
  }
}

function obey(order: Order): void {
  if (order.do === "fault") injector.faults = order.faults;
  else if (order.do === "send") {
    left = order.count;
    batchSize = order.batch;
    sendMore();
  } else {
    const { datagramsSent, datagramsReceived, datagramsUnsent } = counts;
    const datagrams = { sent: datagramsSent, received: datagramsReceived, unsent: datagramsUnsent };
    const isStable = left === 0 && sent === stable;
    report({ kind: "counted", delivered, outOfOrder, isStable, datagrams, mostHeapBytes, mostRssBytes });
  }
}

setInterval(() => {
  const { heapUsed, rss } = process.memoryUsage();
  mostHeapBytes = Math.max(mostHeapBytes, heapUsed);
  mostRssBytes = Math.max(mostRssBytes, rss);
}, 100);
let reached = "";
setInterval(() => {
  const peers = [...udp.reached].sort((a, b) => a - b);
  if (reached === peers.join()) return;
  reached = peers.join();
  report({ kind: "reached", peers });
}, 10);

await tcp.open();
await udp.open();
await tcp.tried();
host.start();
createInterface({ input: process.stdin }).on("line", (line) => obey(JSON.parse(line)));
process.stdin.on("end", () => process.exit(0));
report({ kind: "open" });

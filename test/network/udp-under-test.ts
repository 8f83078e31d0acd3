/** A multicast transport whose messages are numbers, with a record of its events. */
import { createSocket } from "node:dgram";
import type { NodeId } from "../../src/core/protocol.ts";
import { type FaultInjector, faultInjector } from "../../src/runtime/fault-injector.ts";
import { createLog } from "../../src/runtime/log.ts";
import { type Counts, newCounts } from "../../src/runtime/metrics.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { DATAGRAM, heardCodec } from "../../src/runtime/transport/udp-datagram.ts";
import { type UdpMulticast, udpMulticast } from "../../src/runtime/transport/udp-multicast.ts";
import type { UdpPlace } from "../../src/runtime/transport/udp-place.ts";
import { Reader } from "../../src/runtime/wire.ts";
import type { LossReason } from "../../src/trace/entry.ts";
import { type Numbered, numberedShape } from "./transport-under-test.ts";

export interface UdpUnderTest {
  readonly transport: UdpMulticast<Numbered>;
  readonly injector: FaultInjector;
  readonly counts: Counts;
  /** The values received from each node, in order of arrival. */
  readonly received: Map<NodeId, number[]>;
  readonly receivedIds: string[];
  /** The messages that were sent over links instead. */
  readonly detours: { readonly to: NodeId; readonly value: number }[];
  readonly lost: { readonly to: NodeId; readonly why: LossReason; readonly ids: readonly string[] }[];
  readonly lines: string[];
  readonly fatal: Error[];
  /** The nodes that have a link to this one. Default: all nodes. */
  linked: readonly NodeId[];
  from(node: NodeId): number[];
  open(): Promise<void>;
  close(): void;
}

export interface AroundUdp {
  readonly self: NodeId;
  readonly members: readonly NodeId[];
  readonly place: UdpPlace;
  readonly cluster?: string;
  readonly protocol?: string;
  readonly maxMessageBytes?: number;
}

/** Returns a multicast group on this machine's loopback interface. */
export const loopbackPlace = (port: number): UdpPlace => ({ group: "239.192.7.7", port, interface: "127.0.0.1" });

export function udpUnderTest(around: AroundUdp): UdpUnderTest {
  const { self, members, cluster = "test", protocol = "numbers" } = around;
  const [received, receivedIds] = [new Map<NodeId, number[]>(), [] as string[]];
  const [lost, detours]: [UdpUnderTest["lost"], UdpUnderTest["detours"]] = [[], []];
  const [lines, fatal]: [string[], Error[]] = [[], []];
  const [counts, injector] = [newCounts(), faultInjector(realPlatform.random)];
  const from = (node: NodeId): number[] => {
    const values = received.get(node) ?? [];
    received.set(node, values);
    return values;
  };
  const transport = udpMulticast<Numbered>({
    platform: realPlatform,
    ...around,
    cluster,
    protocol,
    shape: numberedShape,
    injector,
    counts,
    log: createLog((_level, line) => lines.push(line)),
    deliver(node, { value }, id) {
      from(node).push(value);
      if (receivedIds.length < 1_000) receivedIds.push(id());
    },
    onLost: (to, ids, why) => lost.push({ to, why, ids: ids() }),
    fallback(to, { value }) {
      detours.push({ to, value });
      return { id: () => `detour-${to}-${value}`, lost: null };
    },
    linked: () => under.linked,
    onFatal: (error) => fatal.push(error),
  });
  const under: UdpUnderTest = {
    transport,
    injector,
    counts,
    received,
    receivedIds,
    detours,
    lost,
    lines,
    fatal,
    linked: members.filter((member) => member !== self),
    from,
    open: () => transport.open(),
    close: () => transport.close(),
  };
  return under;
}

/** The messages that members without a key send in a group, where any process can receive them. */
export interface Overheard {
  /** For each member, the nodes that it receives messages from, according to its hellos. */
  readonly hears: ReadonlyMap<NodeId, readonly NodeId[]>;
  /** For each member, the number of datagrams that contain messages or fragments of messages. */
  readonly carriers: ReadonlyMap<NodeId, number>;
  close(): Promise<void>;
}

/** The length of the part of a datagram that precedes the sender. */
const PREFIX_BYTES = 12;

export async function overhear({ group, port, interface: through }: UdpPlace): Promise<Overheard> {
  const ear = createSocket({ type: "udp4", reuseAddr: true });
  await new Promise<void>((resolve) => ear.bind(port, group, resolve));
  ear.addMembership(group, through);
  const [hears, carriers] = [new Map<NodeId, NodeId[]>(), new Map<NodeId, number>()];
  ear.on("message", (datagram) => {
    const reader = new Reader(datagram, PREFIX_BYTES);
    const [from] = [reader.natural(), reader.natural(), reader.natural()] as const; // The run and the number follow.
    for (let excluded = reader.natural(); excluded > 0; excluded--) reader.natural();
    if (datagram[3] !== DATAGRAM.hello) carriers.set(from, (carriers.get(from) ?? 0) + 1);
    else hears.set(from, [...new Set(heardCodec.read(reader).map(({ node }) => node))]);
  });
  return { hears, carriers, close: () => new Promise((resolve) => ear.close(() => resolve())) };
}

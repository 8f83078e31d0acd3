/** A TCP transport whose messages are numbers, with a record of its events. */
import type { NodeId } from "../../src/core/protocol.ts";
import { list, natural, type Shape, text, variants } from "../../src/core/shape.ts";
import { type FaultInjector, faultInjector } from "../../src/runtime/fault-injector.ts";
import type { HostPort } from "../../src/runtime/host-port.ts";
import { createLog } from "../../src/runtime/log.ts";
import { type Counts, newCounts } from "../../src/runtime/metrics.ts";
import type { Platform, TlsMaterial } from "../../src/runtime/platform/platform.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { type Disagreement, GroupIdentity, type Memory } from "../../src/runtime/transport/identity.ts";
import type { Limits } from "../../src/runtime/transport/limits.ts";
import { type TcpTransport, tcpTransport } from "../../src/runtime/transport/tcp.ts";
import type { LossReason } from "../../src/trace/entry.ts";

export interface Numbered {
  type: "numbered";
  value: number;
  payload: string;
  more: number[];
}

const MAX_PAYLOAD_BYTES = 2 ** 20;

export const numberedShape: Shape<Numbered> = variants<Numbered>({
  numbered: { value: natural, payload: text(MAX_PAYLOAD_BYTES), more: list(natural, 1_000) },
});

export const numbered = (value: number, payload = ""): Numbered => ({ type: "numbered", value, payload, more: [] });

export interface TransportUnderTest {
  readonly transport: TcpTransport<Numbered>;
  readonly identity: GroupIdentity;
  readonly injector: FaultInjector;
  readonly counts: Counts;
  /** The values received from each node, in order of arrival. */
  readonly received: Map<NodeId, number[]>;
  readonly receivedIds: string[];
  readonly lost: { readonly to: NodeId; readonly why: LossReason; readonly ids: readonly string[] }[];
  readonly disagreements: (readonly [NodeId, Disagreement | null])[];
  readonly lines: string[];
  readonly fatal: Error[];
  from(node: NodeId): number[];
  open(): Promise<void>;
  close(): Promise<void>;
}

export interface Around {
  readonly self: NodeId;
  /** The port of each node, all of them on this machine. */
  readonly ports?: Readonly<Record<NodeId, number>>;
  /** The address of each node, as an alternative to `ports`. */
  readonly addresses?: Readonly<Record<NodeId, HostPort>>;
  readonly platform?: Platform;
  readonly cluster?: string;
  readonly protocol?: string;
  readonly shape?: Shape<Numbered>;
  readonly limits?: Partial<Limits>;
  readonly tls?: TlsMaterial;
  /** Null if the node does not have a journal. */
  readonly memory?: Memory | null;
}

export function transportUnderTest({
  platform = realPlatform,
  self,
  ports = {},
  addresses = Object.fromEntries(Object.entries(ports).map(([id, port]) => [id, { host: "127.0.0.1", port }])),
  cluster = "test",
  protocol = "numbers",
  shape = numberedShape,
  limits = {},
  tls,
  memory = null,
}: Around): TransportUnderTest {
  const received = new Map<NodeId, number[]>();
  const receivedIds: string[] = [];
  const lost: TransportUnderTest["lost"] = [];
  const disagreements: TransportUnderTest["disagreements"] = [];
  const lines: string[] = [];
  const fatal: Error[] = [];
  const counts = newCounts();
  const injector = faultInjector(platform.random);
  const from = (node: NodeId): number[] => {
    const values = received.get(node) ?? [];
    received.set(node, values);
    return values;
  };
  const log = createLog((_level, line) => lines.push(line));
  const identity = new GroupIdentity({ self, members: Object.keys(addresses).map(Number), log, memory });
  identity.onDisagreement = (node, disagreement) => disagreements.push([node, disagreement]);
  const transport = tcpTransport<Numbered>({
    platform,
    cluster,
    self,
    members: addresses,
    protocol,
    shape,
    limits,
    tls: tls ?? null,
    injector,
    counts,
    log,
    identity,
    deliver(node, { value }, id) {
      from(node).push(value);
      if (receivedIds.length < 1_000) receivedIds.push(id());
    },
    onLost: (to, ids, why) => lost.push({ to, why, ids: ids() }),
    onFatal: (error) => fatal.push(error),
  });
  return {
    transport,
    identity,
    injector,
    counts,
    received,
    receivedIds,
    lost,
    disagreements,
    lines,
    fatal,
    from,
    open: () => transport.open(),
    close: () => transport.close(),
  };
}

/**
 * Hosts in one process that exchange messages as bytes, as separate processes would, in an order that the test
 * determines.
 */
import {
  type MessageOf,
  type NodeId,
  type Protocol,
  type StateOf,
  type Vocabulary,
  variants,
} from "../../src/core/index.ts";
import { Host, keepsJournal } from "../../src/runtime/host.ts";
import type { HostOptions } from "../../src/runtime/host-options.ts";
import { protocolSlot } from "../../src/runtime/journal/protocol-slot.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { codecOf, Reader, Writer } from "../../src/runtime/wire.ts";
import { memoryJournal } from "../journal/memory-journal.ts";

export interface HostsInMemory<V extends Vocabulary> {
  readonly hosts: ReadonlyMap<NodeId, Host<V>>;
  /** The events emitted by each node, to be read at the end. */
  readonly events: ReadonlyMap<NodeId, readonly unknown[]>;
  state(node: NodeId): StateOf<V>;
  /** Delivers all messages in transit, in the order they were sent. */
  deliver(): void;
  /** Ends the node's process and starts a new one with the same journal. */
  restart(node: NodeId): Promise<void>;
}

export function hostsInMemory<V extends Vocabulary>(
  protocol: Protocol<V>,
  nodes: readonly NodeId[],
  more: (self: NodeId) => Partial<HostOptions<V>> = () => ({}),
): HostsInMemory<V> {
  const codec = codecOf<MessageOf<V>>(variants((protocol.shapes.message ?? {}) as never));
  const onTheirWay: { from: NodeId; to: NodeId; bytes: Buffer }[] = [];
  const events = new Map<NodeId, unknown[]>(nodes.map((node) => [node, []]));
  const journals = new Map(nodes.map((node) => [node, new Map<string, unknown[]>()]));
  const id = (): string => "-";
  const begin = (self: NodeId): Host<V> => {
    const slot = keepsJournal(protocol) ? protocolSlot(memoryJournal(journals.get(self)), "own", protocol) : null;
    const host = new Host<V>({
      platform: realPlatform,
      protocol,
      self,
      peers: nodes.filter((node) => node !== self),
      slot,
      send(to, message) {
        const into = new Writer();
        codec.write(message, into);
        onTheirWay.push({ from: self, to, bytes: into.bytes() });
        return { id, lost: null };
      },
      trace: { wanted: false, record: () => undefined },
      onEvent: (event) => void events.get(self)?.push(event),
      onFatal: (error) => {
        throw error;
      },
      ...more(self),
    });
    host.start();
    return host;
  };
  const hosts = new Map(nodes.map((node) => [node, begin(node)]));
  const hostOf = (node: NodeId): Host<V> => hosts.get(node) as Host<V>;
  return {
    hosts,
    events,
    state: (node) => (hostOf(node).snapshot() as unknown as { state: StateOf<V> }).state,
    deliver() {
      for (let next = onTheirWay.shift(); next !== undefined; next = onTheirWay.shift())
        hostOf(next.to).receive(next.from, codec.read(new Reader(next.bytes)), id);
    },
    async restart(node) {
      await new Promise((done) => setImmediate(done)); // Wait until the node's journal records are durable.
      hostOf(node).stop();
      hosts.set(node, begin(node));
    },
  };
}

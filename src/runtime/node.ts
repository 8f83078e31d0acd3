/**
 * Runs a protocol on real processes. This process is one of the nodes, and has a journal, links to the other nodes, and
 * a host.
 */
import { type EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import type {
  CommandOf,
  EventOf,
  NodeId,
  Protocol,
  ReplyOf,
  Signatures,
  StateOf,
  Tagged,
  View,
  Vocabulary,
} from "../core/protocol.ts";
import { type Shapes, variants } from "../core/shape.ts";
import { bodyOf } from "../core/wrapping.ts";
import type { Unnumbered } from "../driver/requests.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { PeerStatus } from "./admin-pages.ts";
import { type Broadcast, broadcast } from "./broadcast.ts";
import { CertificateRenewal, readTls, type TlsFiles } from "./certificate-files.ts";
import { type FaultInjector, faultInjector } from "./fault-injector.ts";
import { Host, keepsJournal } from "./host.ts";
import { formatHostPort, type HostPort, isLoopback, parseHostPort } from "./host-port.ts";
import { openJournal } from "./journal/disk-journal.ts";
import { groupMemory } from "./journal/group-memory.ts";
import { protocolSlot } from "./journal/protocol-slot.ts";
import { createLog, type Log, type Logger, logThrough } from "./log.ts";
import { type KeyFiles, readKeys } from "./member-keys.ts";
import { type Counts, count, countReceived, newCounts } from "./metrics.ts";
import type { Platform } from "./platform/platform.ts";
import { realPlatform } from "./platform/real.ts";
import { sleep } from "./platform/sleep.ts";
import { GroupIdentity } from "./transport/identity.ts";
import type { Limits } from "./transport/limits.ts";
import { type TcpTransport, tcpTransport } from "./transport/tcp.ts";
import { wrongSignatures } from "./wrong-signatures.ts";

/** Options of `host`. */
export interface HostingOptions<V extends Vocabulary> {
  /** This node's id, one of `members`. */
  readonly id: NodeId;
  /** The address at which each node can be reached by the others, as `host:port`. Must be the same for all nodes. */
  readonly members: Readonly<Record<NodeId, string>>;
  /**
   * The folder for this node's journal. `{id}` is replaced with the node's id. Required if the protocol persists
   * records.
   */
  readonly dataDir?: string | undefined;
  /** The name of the cluster. Nodes from other clusters are rejected. Default: `coterie`. */
  readonly cluster?: string | undefined;
  /**
   * PEM files. `{id}` in a path is replaced with the node's id. Use `"off"` on a trusted network. Required unless all
   * addresses are loopback.
   */
  readonly tls?: "off" | TlsFiles | undefined;
  /**
   * PEM files with Ed25519 keys: this node's private key and the public keys of all nodes. Required if the protocol
   * signs.
   */
  readonly keys?: KeyFiles | undefined;
  /** Called with each event that the protocol emits, once the records that the event depends on are durable. */
  readonly onEvent?: ((event: EventOf<V>) => void) | undefined;
  /**
   * Called when the protocol violates its own invariants or the disk fails. By then the node has stopped. Default:
   * throws an uncaught error.
   */
  readonly onFatal?: ((error: Error) => void) | undefined;
  /** Receives log lines. Default: warnings and errors go to stderr. */
  readonly log?: Logger | undefined;
}

/** A running node. To shut it down, dispose of it or call `stop`. */
export interface HostedNode<V extends Vocabulary> extends AsyncDisposable {
  /** This node's id, as given to `host()`. */
  readonly id: NodeId;
  /** The address at which the other nodes can reach this one, as `host:port`. */
  readonly address: string;
  /** A copy of the protocol's state. */
  readonly state: StateOf<V>;
  /** A summary of the state, such as role, leader and term. */
  readonly view: View;
  /** The links to the other nodes. */
  readonly peers: readonly PeerStatus[];
  /**
   * Runs a command.
   * @throws UsageError if the protocol has no such command
   */
  command(command: CommandOf<V>): void;
  /**
   * Runs a command that expects a reply, and returns the reply. Leave out its field `request`. Rejects if the node stops first.
   *
   * @example
   * const node = await host(replicated(raft), { id: 1, members, dataDir: "./data" });
   * const reply = await node.request({ type: "client", body: { type: "execute", operation: "append hello" } });
   */
  request(command: Unnumbered<CommandOf<V>>): Promise<ReplyOf<V>>;
  /** Closes the links and the journal. */
  stop(): Promise<void>;
}

/**
 * Runs one node of a protocol in this process.
 *
 * @param protocol the protocol, with the same options on all nodes
 * @example
 * const node = await host(bully(), {
 *   id: 2,
 *   members: { 1: "127.0.0.1:7101", 2: "127.0.0.1:7102", 3: "127.0.0.1:7103" },
 *   onEvent: (event) => console.log(event),
 * });
 * node.command({ type: "call" });
 * @throws UsageError if an option is invalid; EnvironmentError if the address or the folder is in use
 */
export async function host<V extends Vocabulary>(
  protocol: Protocol<V>,
  options: HostingOptions<V>,
): Promise<HostedNode<V>> {
  const { id, dataDir, cluster = "coterie", tls, keys, onEvent, onFatal = rethrow } = options;
  const log = options.log === undefined ? createLog(toStderr) : logThrough(options.log, realPlatform.clock.wall);
  const members = addressesOf(options);
  const files = typeof tls === "object" ? tls : null;
  const node = await openNode<V>(protocol, {
    ...{ id, cluster, members, log, tls: files, agreement: canonical([protocol.name]) },
    folder: dataDir?.replaceAll("{id}", String(id)) ?? null,
    signatures: keys === undefined ? null : readKeys(keys, id, Object.keys(members).map(Number)),
    onEvent: (event) => onEvent?.(event),
    onFatal,
  });
  await node.start();
  return {
    id,
    address: formatHostPort(members[id] as HostPort),
    get state() {
      return node.host.state;
    },
    get view() {
      return node.host.view;
    },
    get peers() {
      return node.transport.peers;
    },
    command: (command) => node.host.command(command),
    request: (command) => node.host.request(command),
    stop: () => node.close(),
    [Symbol.asyncDispose]: () => node.close(),
  };
}

const toStderr = (level: string, text: string): void => {
  if (level !== "info") process.stderr.write(`coterie: ${text}\n`);
};

function rethrow(error: Error): never {
  throw error;
}

/** @throws UsageError if an option is invalid. The message names the option. */
function addressesOf({
  id,
  members,
  tls,
}: Pick<HostingOptions<never>, "id" | "members" | "tls">): Readonly<Record<NodeId, HostPort>> {
  const wrong = (what: string, wanted: string, got: unknown): UsageError =>
    new UsageError("bad-option", unexpected(`${what} of host()`, wanted, got));
  const addresses: Record<NodeId, HostPort> = {};
  for (const [node, text] of Object.entries(members)) {
    const address = parseHostPort(text);
    if (address === null) throw wrong(`members.${node}`, "host:port", text);
    if (tls === undefined && !isLoopback(address.host))
      throw wrong("tls", `certificates or "off", because members.${node} is reachable from other machines`, tls);
    addresses[Number(node)] = address;
  }
  if (!Object.hasOwn(addresses, id)) throw wrong("id", `one of ${Object.keys(members).join(", ")}`, id);
  return addresses;
}

/** The parts of one node. */
export interface NodeSetup<V extends Vocabulary> {
  readonly id: NodeId;
  readonly cluster: string;
  readonly members: Readonly<Record<NodeId, HostPort>>;
  readonly listen?: HostPort | undefined;
  readonly limits?: Partial<Limits>;
  /**
   * Identifies the protocol and its options, which must be the same on all nodes. A node with different ones is
   * rejected.
   */
  readonly agreement: string;
  /** The name of the node's journal slot. Default: the name of the protocol. */
  readonly slot?: string;
  /** The folder of the journal. Null: no journal. */
  readonly folder: string | null;
  readonly tls: TlsFiles | null;
  readonly log: Log;
  readonly signatures?: Signatures | null;
  /** The platform that the host runs on. Default: the real one. */
  readonly platform?: Pick<Platform, "clock" | "timers" | "random">;
  onEvent(event: EventOf<V>): void;
  onFatal(error: Error): void;
}

/** The parts of a running node. */
export interface OpenNode<V extends Vocabulary> {
  readonly host: Host<V>;
  readonly transport: TcpTransport<never>;
  readonly identity: GroupIdentity;
  readonly counts: Counts;
  readonly trace: Broadcast<TraceEntry>;
  readonly injector: FaultInjector;
  /** Resolves after every other node has been dialed once, or after a short wait. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The maximum number of entries queued for a slow listener. Any further entries are lost. */
const TRACE_CAPACITY = 20_000;
/** The maximum time that a starting node waits for its peers. */
const FIRST_CONTACT_MS = 250;

/**
 * @throws UsageError if an option is invalid; EnvironmentError if an address is in use, or if a certificate or the
 * journal cannot be read
 */
export async function openNode<V extends Vocabulary>(protocol: Protocol<V>, setup: NodeSetup<V>): Promise<OpenNode<V>> {
  const { id, cluster, members, folder, log, onFatal } = setup;
  const ids = Object.keys(members).map(Number);
  const isKept = keepsJournal(protocol);
  if (isKept && folder === null)
    throw new UsageError(
      "no-data-directory",
      `expected a directory for the journal of ${protocol.name}, because the journal must outlive the process: pass dataDir to host(), or set --data DIR or "dataDir" in the config file`,
    );
  const journal = isKept
    ? await openJournal(folder as string, {
        ...{ platform: realPlatform, owner: `member ${id} of ${cluster}`, log },
        onFailure: (error: EnvironmentError) => onFatal(error),
      })
    : null;
  try {
    const slot = journal && protocolSlot<V>(journal, setup.slot ?? protocol.name, protocol);
    const memory = journal && (await groupMemory(journal, ids, folder as string, realPlatform.random));
    const identity = new GroupIdentity({ self: id, members: ids, log, memory });
    const [counts, trace] = [newCounts(), broadcast<TraceEntry>(TRACE_CAPACITY)];
    const injector = faultInjector(realPlatform.random);
    const node: Host<V> = new Host<V>({
      platform: setup.platform ?? realPlatform,
      ...{ protocol, slot, self: id, peers: ids.filter((member) => member !== id), onFatal },
      ...(setup.signatures && { signatures: setup.signatures }),
      send(to, message) {
        count(counts.messagesSent, typeOf(message));
        return transport.send(to, message as never);
      },
      trace: {
        get wanted() {
          return trace.wanted;
        },
        record: (entry) => trace.publish(entry),
      },
      onWrongSignature: wrongSignatures(id, counts, log),
      onEvent: (event) => setup.onEvent(event),
    });
    const transport = tcpTransport<never>({
      ...{ platform: realPlatform, cluster, self: id, members, identity, injector, counts, log, onFatal },
      ...{ listen: setup.listen, limits: setup.limits ?? {}, tls: await readTls(setup.tls, id) },
      protocol: setup.agreement,
      shape: variants((protocol.shapes.message ?? {}) as Shapes<never>),
      deliver(from, message, messageId) {
        countReceived(counts, from, typeOf(message));
        node.receive(from, message, messageId);
      },
      onLost(to, lost, why) {
        if (!trace.wanted) return;
        const at = realPlatform.clock.stamp();
        for (const each of lost()) trace.publish({ at, node: id, kind: "lost", id: each, to, why });
      },
    });
    await transport.open();
    const renewal = new CertificateRenewal<TlsFiles>({
      ...{ platform: realPlatform, id, use: "members", counts, log, files: setup.tls },
      renew: (tls) => transport.renew(tls),
    } as const);
    return {
      ...{ host: node, transport, identity, counts, trace, injector },
      async start() {
        await Promise.race([transport.tried(), sleep(realPlatform.timers, FIRST_CONTACT_MS, { ref: false })]);
        node.start();
      },
      async close() {
        renewal.stop();
        node.stop();
        await transport.close();
        await journal?.close();
      },
    };
  } catch (error) {
    await journal?.close();
    throw error;
  }
}

/** Returns the message's declared type. In an assembly, it is prefixed with the part's name. */
function typeOf(message: Tagged): string {
  const body = bodyOf(message);
  return body === null ? message.type : `${message.type}.${body.type}`;
}

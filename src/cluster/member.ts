/** One member of a cluster, running in this process: protocol, transport, admin pages. */
import { setTimeout as sleep } from "node:timers/promises";
import { UsageError, unexpected } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import type { NodeId, Tagged, Vocabulary } from "../core/protocol.ts";
import { random } from "../core/random.ts";
import { type ShapeNode, type Shapes, variants } from "../core/shape.ts";
import { bodyOf } from "../core/wrapping.ts";
import { type BehaviourName, behaviourSummaries, byzantine, onProcesses } from "../protocols/byzantine.ts";
import { type AnyProtocol, protocolNamed } from "../protocols/index.ts";
import { withPositions } from "../protocols/position.ts";
import type { NodeStatus } from "../runtime/admin-pages.ts";
import { type Broadcast, broadcast } from "../runtime/broadcast.ts";
import { type FaultInjector, faultInjector } from "../runtime/fault-injector.ts";
import { Host, keepsJournal } from "../runtime/host.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import { openJournal } from "../runtime/journal/disk-journal.ts";
import { groupMemory } from "../runtime/journal/group-memory.ts";
import type { Journal, Slot } from "../runtime/journal/journal.ts";
import { protocolSlot } from "../runtime/journal/protocol-slot.ts";
import type { Log } from "../runtime/log.ts";
import { linksOf, networkMetrics, traceListeners } from "../runtime/metric-table.ts";
import { type Counts, count, countReceived, newCounts } from "../runtime/metrics.ts";
import type { Platform, TlsMaterial } from "../runtime/platform/platform.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { GroupIdentity, standingOf } from "../runtime/transport/identity.ts";
import { tcpTransport } from "../runtime/transport/tcp.ts";
import { wrongSignatures } from "../runtime/wrong-signatures.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { CertificateRenewal, readTls } from "./certificate-files.ts";
import { type ClusterConfig, transportPlaces } from "./config.ts";
import { exposedLiars } from "./exposed-liars.ts";
import { readKeys } from "./member-keys.ts";

export interface Member {
  /** Where the other members reach this one, `host:port`. */
  readonly address: string;
  /** The base URL of its admin pages. */
  readonly admin: string;
  /** Gives what it runs a command. @throws UsageError if it is none of its commands */
  command(command: Tagged & Readonly<Record<string, unknown>>): void;
  /** Closes every connection and listener. */
  stop(): Promise<void>;
}

/** How a member lies, and the seed that its choices come from. */
export interface Liar {
  readonly behaviour: BehaviourName;
  readonly seed: number;
}

export interface MemberOptions {
  readonly log: Log;
  /** Lets `PUT /faults` drop, delay and cut this member's messages. Off unless somebody asks for it. */
  readonly faultInjector?: boolean;
  /** It lies. Absent: it is honest. */
  readonly liar?: Liar;
  /** Called with what the protocol emits. */
  readonly onEvent?: (event: Tagged) => void;
  /** What runs in the place of the protocol, which the others take it for: to see how they bear it. */
  readonly alter?: (protocol: AnyProtocol) => AnyProtocol;
  /** Called when the protocol violates its own invariants: the process must not go on. */
  readonly onFatal: (error: Error) => void;
}

/** How many entries a slow listener may fall behind before it loses some. */
const TRACE_CAPACITY = 20_000;
/** How long a starting member waits for its peers at most. */
const FIRST_CONTACT_MS = 250;

/**
 * Starts member `id`.
 * @throws UsageError, EnvironmentError if an address is taken, a certificate cannot be read or its journal not be opened.
 */
export async function runMember(config: ClusterConfig, id: NodeId, options: MemberOptions): Promise<Member> {
  placeOf(id, config);
  const { node, presentation } = protocolNamed(config.protocol);
  const declared = withPositions(node(config.options), presentation.position, config.options);
  const honest = options.alter?.(declared) ?? declared;
  const { liar } = options;
  const protocol = liar === undefined ? honest : byzantine(honest, new Map([[id, onProcesses(liar.behaviour)]]));
  const journal = keepsJournal(protocol) ? await journalOf(config, id, options) : null;
  try {
    const slot = journal && protocolSlot<Vocabulary>(journal, config.protocol, protocol);
    const members = Object.keys(config.members).map(Number);
    const memory = journal && (await groupMemory(journal, members, folderOf(config, id), realPlatform.random));
    const identity = new GroupIdentity({ self: id, members, log: options.log, memory });
    const member = await runHost({ config, id, options, protocol, slot, identity });
    return {
      ...member,
      async stop() {
        await member.stop();
        await journal?.close();
      },
    };
  } catch (error) {
    await journal?.close();
    throw error;
  }
}

/** What the parts of one member share. */
interface Inside {
  readonly config: ClusterConfig;
  readonly id: NodeId;
  readonly options: MemberOptions;
  readonly protocol: AnyProtocol;
  readonly slot: Slot<never> | null;
  readonly identity: GroupIdentity;
  readonly counts: Counts;
  readonly trace: Broadcast<TraceEntry>;
  readonly injector: FaultInjector;
}

/** The protocol, and the transport that carries what it says. */
async function wired({ config, id, options, protocol, slot, identity, counts, trace, injector }: Inside) {
  const { keys } = config;
  const exposed = exposedLiars(counts, options.log);
  const host = new Host<Vocabulary>({
    platform: options.liar === undefined ? realPlatform : seededPlatform(options.liar.seed, id),
    protocol,
    slot,
    ...(keys && { signatures: readKeys(keys, id, Object.keys(config.members).map(Number)) }),
    self: id,
    peers: Object.keys(config.members)
      .map(Number)
      .filter((member) => member !== id),
    send(to, message) {
      count(counts.messagesSent, typeOf(message));
      return transport.send(to, message);
    },
    trace: {
      get wanted() {
        return trace.wanted;
      },
      record: (entry) => trace.publish(entry),
    },
    onWrongSignature: wrongSignatures(id, counts, options.log),
    onEvent(event) {
      exposed(event);
      options.onEvent?.(event);
    },
    onFatal: options.onFatal,
  });
  const transport = tcpTransport<never>({
    platform: realPlatform,
    cluster: config.cluster,
    self: id,
    ...transportPlaces(id, config),
    protocol: canonical([config.protocol, config.options]),
    shape: variants((protocol.shapes.message ?? {}) as Shapes<never>),
    identity,
    tls: await readTls(config.tls, id),
    injector,
    counts,
    log: options.log,
    deliver(from, message, messageId) {
      countReceived(counts, from, typeOf(message));
      host.receive(from, message, messageId);
    },
    onLost(to, ids, why) {
      if (!trace.wanted) return;
      const at = realPlatform.clock.stamp();
      for (const lost of ids()) trace.publish({ at, node: id, kind: "lost", id: lost, to, why });
    },
    onFatal: options.onFatal,
  });
  return { host, transport };
}

async function runHost(parts: Omit<Inside, "counts" | "trace" | "injector">): Promise<Member> {
  const { config, id, options, protocol, identity } = parts;
  const place = placeOf(id, config);
  const [counts, trace, injector] = [
    newCounts(),
    broadcast<TraceEntry>(TRACE_CAPACITY),
    faultInjector(realPlatform.random),
  ];
  const { host, transport } = await wired({ ...parts, counts, trace, injector });
  const began = realPlatform.clock.now();
  const address = formatHostPort(place.address);
  const commands = commandNames(protocol.shapes.command ?? {});
  function status(): NodeStatus {
    const { view } = host;
    return {
      id,
      pid: process.pid,
      cluster: config.cluster,
      protocol: config.protocol,
      leader: view.leader ?? null,
      term: view.term ?? null,
      role: view.role,
      view,
      uptimeMs: Math.round(realPlatform.clock.now() - began),
      address,
      peers: transport.peers,
      ...(options.liar === undefined ? {} : { byzantine: options.liar.behaviour }),
      ...standingOf(identity),
      commands,
    };
  }

  const { serveAdmin } = await import("../runtime/admin.ts");
  const { metricsPage } = await import("../runtime/metrics-page.ts");
  await transport.open();
  const admin = await serveAdmin({
    address: place.admin,
    status,
    missing: () => {
      const open = transport.peers.filter(({ link }) => link === "open").length;
      return 2 * (open + 1) > transport.peers.length + 1 ? null : "no-majority";
    },
    metrics: metricsPage([
      ...networkMetrics(
        counts,
        linksOf(() => transport.peers),
      ),
      traceListeners(() => trace.listeners),
    ]),
    trace,
    snapshot: () => host.snapshot() as TraceEntry,
    command: (command) => host.command(command),
    request: (command) => host.request(command as never),
    injector: options.faultInjector === true ? injector : null,
    counts,
  }).catch(async (error: unknown) => {
    await transport.close();
    throw error;
  });
  // Members that are there are connected before the first message is sent; those that are paused are not waited for.
  if (options.liar !== undefined)
    options.log.warn(
      `this member lies (${options.liar.behaviour}: ${behaviourSummaries[options.liar.behaviour]}), seed ${options.liar.seed}`,
      { event: "byzantine", ...options.liar },
    );
  await Promise.race([transport.tried(), sleep(FIRST_CONTACT_MS, undefined, { ref: false })]);
  host.start();
  const renew = (tls: TlsMaterial): void => transport.renew(tls);
  const { log } = options;
  const of = { platform: realPlatform, id, use: "members", counts, log } as const;
  const renewal = new CertificateRenewal({ ...of, files: config.tls, renew });
  return {
    address,
    admin: admin.url,
    command: (command) => host.command(command),
    async stop() {
      renewal.stop();
      host.stop();
      await Promise.all([transport.close(), admin.close()]);
    },
  };
}

/** Chance that comes from a seed: what the member chooses, and the times that it draws. */
function seededPlatform(seed: number, id: NodeId): Pick<Platform, "clock" | "timers" | "random"> {
  const drawn = random(seed).stream(`node ${id}`);
  const { clock, timers, random: chance } = realPlatform;
  return { clock, timers, random: { ...chance, fraction: () => drawn.between(0, 1) } };
}

/** The member's own journal, in the directory that the config names. */
function journalOf(config: ClusterConfig, id: NodeId, { log, onFatal }: MemberOptions): Promise<Journal> {
  const { cluster, protocol, dataDir } = config;
  if (dataDir === null)
    throw new UsageError(
      "no-data-directory",
      `expected a directory for the journal of ${protocol}, which must outlive its process: name one with --data DIR, or as "dataDir" in the config file`,
    );
  return openJournal(folderOf(config, id), {
    platform: realPlatform,
    owner: `member ${id} of ${cluster}`,
    log,
    onFailure: onFatal,
  });
}

const folderOf = ({ dataDir }: ClusterConfig, id: NodeId): string => (dataDir ?? "").replaceAll("{id}", String(id));

function placeOf(id: NodeId, { members }: ClusterConfig): ClusterConfig["members"][NodeId] {
  const place = members[id];
  if (place !== undefined) return place;
  throw new UsageError("unknown-node", unexpected("the node", `one of ${Object.keys(members).join(", ")}`, id));
}

/** As declared: with the name of the part of an assembly that says it. */
function typeOf(message: Tagged): string {
  const body = bodyOf(message);
  return body === null ? message.type : `${message.type}.${body.type}`;
}

type CommandShapes = Readonly<Record<string, Readonly<Record<string, ShapeNode>>>>;

/** The commands that the protocol takes, such as `election.call`, each with the names of its fields. */
function commandNames(shapes: CommandShapes): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(shapes).flatMap(([type, { body, ...fields }]) =>
      body?.kind !== "variants"
        ? [[type, Object.keys(fields)]]
        : Object.entries(body.variants).map(([inner, shape]) => [
            `${type}.${inner}`,
            shape.kind === "struct" ? Object.keys(shape.fields) : [],
          ]),
    ),
  );
}

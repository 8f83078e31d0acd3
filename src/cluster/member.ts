/** A member that runs a single protocol in this process, with its transport and admin pages. */
import { UsageError, unexpected } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import type { NodeId, Tagged, Vocabulary } from "../core/protocol.ts";
import { random } from "../core/random.ts";
import type { ShapeNode } from "../core/shape.ts";
import { type BehaviourName, behaviourSummaries, byzantine, onProcesses } from "../protocols/byzantine.ts";
import { type AnyProtocol, protocolNamed } from "../protocols/index.ts";
import { withPositions } from "../protocols/presentation.ts";
import type { NodeStatus } from "../runtime/admin-pages.ts";
import { formatHostPort, isLoopback } from "../runtime/host-port.ts";
import type { Log } from "../runtime/log.ts";
import { readKeys } from "../runtime/member-keys.ts";
import { linksOf, networkMetrics, traceListeners } from "../runtime/metric-table.ts";
import { openNode } from "../runtime/node.ts";
import type { Platform } from "../runtime/platform/platform.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { standingOf } from "../runtime/transport/identity.ts";
import { transportPlaces } from "./config.ts";
import { exposedLiars } from "./exposed-liars.ts";
import type { ClusterConfig } from "./protocol-config.ts";
import { isProtocolFile } from "./protocol-file.ts";

/** A running member. */
export interface Member {
  /** The address at which the other members reach this one, `host:port`. */
  readonly address: string;
  /** The base URL of the member's admin pages. */
  readonly admin: string;
  /**
   * Sends a command to the member's protocol.
   * @throws UsageError if the protocol has no such command
   */
  command(command: Tagged & Readonly<Record<string, unknown>>): void;
  /** Closes every connection and listener. */
  stop(): Promise<void>;
}

/** A Byzantine behavior, and the seed for its choices. */
export interface Liar {
  readonly behaviour: BehaviourName;
  readonly seed: number;
}

export interface MemberOptions {
  readonly log: Log;
  /** Enables `PUT /faults`, which drops, delays or blocks this member's messages. Default: false. */
  readonly faultInjector?: boolean;
  /** The member's Byzantine behavior. Absent if the member is honest. */
  readonly liar?: Liar;
  /** Called when the protocol violates its own invariants. The process must then stop. */
  readonly onFatal: (error: Error) => void;
}

/**
 * Starts member `id`.
 * @throws UsageError; EnvironmentError if an address is in use, or if a certificate or the journal cannot be read
 */
export async function runMember(config: ClusterConfig, id: NodeId, options: MemberOptions): Promise<Member> {
  const place = placeOf(id, config);
  const { liar, log, onFatal } = options;
  const { node: made, presentation } = protocolNamed(config.protocol);
  const honest = withPositions(made(config.options), presentation.position, config.options);
  const protocol = liar === undefined ? honest : byzantine(honest, new Map([[id, onProcesses(liar.behaviour)]]));
  let exposed: (event: Tagged) => void = () => {};
  const { keys, cluster, tls, dataDir } = config;
  const node = await openNode<Vocabulary>(protocol, {
    ...{ id, cluster, tls, log, onFatal, ...transportPlaces(id, config) },
    agreement: canonical([agreedName(config.protocol, protocol), config.options]),
    slot: agreedName(config.protocol, protocol),
    folder: dataDir?.replaceAll("{id}", String(id)) ?? null,
    signatures: keys === undefined ? null : readKeys(keys, id, Object.keys(config.members).map(Number)),
    ...(liar && { platform: seededPlatform(liar.seed, id) }),
    onEvent: (event) => exposed(event),
  });
  exposed = exposedLiars(node.counts, log);
  const { host, transport, identity, counts, trace, injector } = node;
  const began = realPlatform.clock.now();
  const address = formatHostPort(place.address);
  const commands = commandNames(protocol.shapes.command ?? {});
  function status(): NodeStatus {
    const { view } = host;
    return {
      ...{ id, pid: process.pid, cluster, protocol: config.protocol },
      ...{ leader: view.leader ?? null, term: view.term ?? null, role: view.role, view },
      uptimeMs: Math.round(realPlatform.clock.now() - began),
      ...{ address, peers: transport.peers, commands },
      ...(liar && { byzantine: liar.behaviour }),
      ...standingOf(identity),
    };
  }
  try {
    const { serveAdmin } = await import("../runtime/admin.ts");
    const { metricsPage } = await import("../runtime/metrics-page.ts");
    const peers = () => transport.peers;
    const admin = await serveAdmin({
      address: place.admin,
      isReadOnly: !isLoopback(place.admin.host),
      status,
      missing: () => {
        const open = transport.peers.filter(({ link }) => link === "open").length;
        return 2 * (open + 1) > transport.peers.length + 1 ? null : "no-majority";
      },
      metrics: metricsPage([...networkMetrics(counts, linksOf(peers)), traceListeners(() => trace.listeners)]),
      trace,
      snapshot: () => host.snapshot(),
      command: (command) => host.command(command),
      request: (command) => host.request(command as never),
      injector: options.faultInjector === true ? injector : null,
      counts,
    });
    if (liar !== undefined)
      log.warn(
        `this member is Byzantine (${liar.behaviour}: ${behaviourSummaries[liar.behaviour]}), seed ${liar.seed}`,
        {
          event: "byzantine",
          ...liar,
        },
      );
    await node.start();
    return {
      address,
      admin: admin.url,
      command: (command) => host.command(command),
      stop: async () => void (await Promise.all([node.close(), admin.close()])),
    };
  } catch (error) {
    await node.close();
    throw error;
  }
}

/** Returns a platform with seeded randomness, for the member's choices and its random timeouts. */
function seededPlatform(seed: number, id: NodeId): Pick<Platform, "clock" | "timers" | "random"> {
  const drawn = random(seed).stream(`node ${id}`);
  const { clock, timers, random: chance } = realPlatform;
  return { clock, timers, random: { ...chance, fraction: () => drawn.between(0, 1) } };
}

/** Returns a name that is the same on all members, even if they load the protocol's file from different folders. */
const agreedName = (protocol: string, { name }: AnyProtocol): string => (isProtocolFile(protocol) ? name : protocol);

function placeOf(id: NodeId, { members }: ClusterConfig): ClusterConfig["members"][NodeId] {
  const place = members[id];
  if (place !== undefined) return place;
  throw new UsageError("unknown-node", unexpected("the node", `one of ${Object.keys(members).join(", ")}`, id));
}

type CommandShapes = Readonly<Record<string, Readonly<Record<string, ShapeNode>>>>;

/** Returns the protocol's commands, such as `election.call`, with the names of their fields. */
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

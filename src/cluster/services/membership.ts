/** Validates the options of `join()` before anything is opened. */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { readPems, readTls } from "../../runtime/certificate-files.ts";
import { formatHostPort, isLoopback, parseHostPort } from "../../runtime/host-port.ts";
import type { Journal } from "../../runtime/journal/journal.ts";
import { createLog, type Log, type LogLevel, logThrough } from "../../runtime/log.ts";
import type { MetricRegistry } from "../../runtime/metric-table.ts";
import { type Counts, newCounts } from "../../runtime/metrics.ts";
import type { Platform, TlsMaterial } from "../../runtime/platform/platform.ts";
import type { GroupIdentity } from "../../runtime/transport/identity.ts";
import type { Limits } from "../../runtime/transport/limits.ts";
import { settlePlace, type UdpPlace } from "../../runtime/transport/udp-place.ts";
import { type ClusterPlaces, parsePlaces } from "../config.ts";
import type { AdminOptions, ClientsOptions, EtcdOptions, JoinOptions, MulticastPlace, ServiceLimits } from "./api.ts";
import type { KnownMembers } from "./known-members.ts";
import * as may from "./known-options.ts";
import { type Rules, refusedIn, requireOptions } from "./known-options.ts";
import type { AdminPlace } from "./member-pages.ts";
import { type Timing, timings } from "./timing.ts";

/** A member's validated options, journal and identity. */
export interface Membership {
  readonly platform: Platform;
  readonly id: NodeId;
  readonly config: ClusterPlaces;
  readonly limits: ServiceLimits;
  readonly tls: TlsMaterial | null;
  readonly log: Log;
  readonly admin: AdminPlace | null;
  readonly faultInjector: boolean;
  readonly counts: Counts;
  /** The caller's registry for the member's metrics. Null if there is none. */
  readonly registry: MetricRegistry | null;
  readonly timing: Timing;
  readonly journal: Journal;
  readonly identity: GroupIdentity;
  /** The founders of the cluster, according to this member's journal. Empty for a new member. */
  readonly founders: readonly NodeId[];
  readonly known: KnownMembers;
  /** The multicast group, port and interface. Null if this member does not use multicast. */
  readonly multicast: UdpPlace | null;
}

export const DEFAULT_CLUSTER = "coterie";
export const defaultLimits: ServiceLimits = { maxInstances: 10_000, maxWaiters: 10_000 };

/** The number of slots in a member's journal: its owner, the group, the member list, and the slots of the service. */
export const MAX_SLOTS = 16;

function toStderr(level: LogLevel, text: string): void {
  if (level !== "info") process.stderr.write(`coterie: ${text}\n`);
}

const CALL = "join";
const path = may.text;

const known: Rules<JoinOptions> = {
  id: may.needed({
    ...may.natural,
    wanted: "a whole number of 0 or more, one of the members",
    shown: (value) =>
      typeof value === "string" && /^\d+$/.test(value) ? `the string ${value}: convert it with Number()` : undefined,
  }),
  members: may.needed({ wanted: 'an object that maps ids to "host:port"', accepts: areMembers }),
  listen: path,
  dataDir: may.needed(path),
  cluster: may.text,
  tls: {
    wanted: '"off" or an object with ca, cert and key',
    accepts: (value) => value === "off" || may.fields.accepts(value),
  },
  limits: may.fields,
  registry: may.registry,
  log: may.logger,
  admin: {
    wanted: '"host:port" or an object with address',
    accepts: (value) => typeof value === "string" || may.fields.accepts(value),
  },
  multicast: may.fields,
  clients: {
    wanted: '"host:port" or an object with listen',
    accepts: (value) => typeof value === "string" || may.fields.accepts(value),
  },
  etcd: {
    wanted: '"host:port" or an object with listen',
    accepts: (value) => typeof value === "string" || may.fields.accepts(value),
  },
  signal: may.signal,
  timing: { wanted: `one of ${timings.join(", ")}`, accepts: (value) => timings.includes(value as Timing) },
  faultInjector: may.flag,
  existing: may.flag,
};
const knownTls: Rules<Exclude<JoinOptions["tls"], "off" | undefined>> = {
  ca: may.needed(path),
  cert: may.needed(path),
  key: may.needed(path),
};
const knownAdmin: Rules<AdminOptions> = {
  address: may.needed(may.text),
  tls: { wanted: '"off" or an object with cert and key', accepts: known.tls.accepts },
  readOnly: may.flag,
};
const knownAdminTls: Rules<Exclude<AdminOptions["tls"], "off" | undefined>> = {
  cert: may.needed(path),
  key: may.needed(path),
  ca: path,
};
const knownEtcd: Rules<EtcdOptions> = { listen: may.needed(may.text), tls: knownAdmin.tls };
const knownClients: Rules<ClientsOptions> = {
  listen: may.needed(may.text),
  url: may.text,
  roles: path,
  tls: { wanted: '"off" or an object with cert and key', accepts: known.tls.accepts },
  origins: {
    wanted: 'a list of origins such as "https://console.example.org"',
    accepts: (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  },
};
const knownLimits: Rules<ServiceLimits & Limits> = {
  maxInstances: may.positive,
  maxWaiters: may.positive,
  maxFrameBytes: may.positive,
  maxQueueBytes: may.positive,
  handshakeTimeoutMs: may.positive,
  maxStrangers: may.positive,
};
const knownPlace: Rules<MulticastPlace> = {
  group: may.needed(may.text),
  port: may.needed(may.natural),
  interface: may.needed(may.text),
  ttl: may.natural,
  // `settlePlace` validates the key, and keeps it out of error messages.
  key: { wanted: "a string or null", accepts: () => true },
  maxDatagramBytes: may.positive,
};

/**
 * Validates the options before anything is opened.
 * @throws UsageError that names the option
 */
export function requireJoinOptions(options: unknown): asserts options is JoinOptions {
  requireOptions<JoinOptions>(CALL, options, known);
  const { tls, admin, clients, etcd, limits, multicast } = options as JoinOptions;
  requireWayIn(options as JoinOptions);
  if (typeof tls === "object") requireOptions(CALL, tls, knownTls, "tls");
  if (typeof admin === "object") requireOptions(CALL, admin, knownAdmin, "admin");
  if (typeof admin === "object" && typeof admin.tls === "object")
    requireOptions(CALL, admin.tls, knownAdminTls, "admin.tls");
  if (typeof clients === "object") requireOptions(CALL, clients, knownClients, "clients");
  if (typeof etcd === "object") requireOptions(CALL, etcd, knownEtcd, "etcd");
  if (typeof etcd === "object" && typeof etcd.tls === "object")
    requireOptions(CALL, etcd.tls, knownAdminTls, "etcd.tls");
  if (typeof clients === "object" && typeof clients.tls === "object")
    requireOptions(CALL, clients.tls, knownAdminTls, "clients.tls");
  if (limits !== undefined) requireOptions(CALL, limits, knownLimits, "limits");
  if (multicast !== undefined) requireOptions(CALL, multicast, knownPlace, "multicast");
}

/** Requires that a new member knows the address of another member. */
export function requireWayIn({ existing = false, id, members }: JoinOptions): void {
  if (!existing) return;
  if (Object.keys(members).every((member) => Number(member) === id))
    throw new UsageError(
      "bad-option",
      "expected members of join() to name other members as well: with `existing`, this member contacts them",
    );
}

function areMembers(value: unknown): boolean {
  return may.fields.accepts(value) && Object.values(value as object).every((each) => typeof each === "string");
}

/** @throws UsageError that names the field; EnvironmentError if a certificate cannot be read */
export async function membershipOf(
  platform: Platform,
  options: JoinOptions,
): Promise<Omit<Membership, "journal" | "identity" | "founders" | "known">> {
  requireJoinOptions(options);
  const { id, faultInjector = false, timing = "default" } = options;
  const { config, limits, multicast, admin } = checked(platform, options);
  const { wall } = platform.clock;
  return {
    platform,
    id,
    config,
    limits,
    tls: await readTls(config.tls, id),
    log: options.log === undefined ? createLog(toStderr, wall) : logThrough(options.log, wall),
    admin: admin && { ...admin, tls: await readAdminTls(options.admin, id) },
    faultInjector,
    counts: newCounts(),
    registry: options.registry ?? null,
    timing,
    multicast,
  };
}

/** @throws UsageError whose message names the options of `join()` */
function checked(
  platform: Platform,
  options: JoinOptions,
): Pick<Membership, "config" | "limits" | "multicast" | "admin"> {
  const { id, listen, cluster = DEFAULT_CLUSTER, tls } = options;
  const members = listen === undefined ? options.members : withListen(options.members, id, listen);
  const { maxInstances, maxWaiters, ...transport } = { ...defaultLimits, ...options.limits };
  try {
    const file = { cluster, members, limits: transport, ...(tls === undefined ? {} : { tls }) };
    const config = parsePlaces(file, process.cwd());
    if (!Object.hasOwn(config.members, id))
      throw refusal(unexpected("id", `one of ${Object.keys(config.members).join(", ")}`, id));
    const limits = { maxInstances, maxWaiters };
    return { config, limits, multicast: placeOf(options, platform), admin: adminPlace(options.admin) };
  } catch (error) {
    throw refusedIn(CALL, error);
  }
}

const withListen = (members: JoinOptions["members"], id: NodeId, listen: string) => ({
  ...members,
  ...(Object.hasOwn(members, id) && { [id]: { address: members[id], listen } }),
});

/** @throws UsageError that names the field */
function placeOf({ multicast, tls }: JoinOptions, { datagrams }: Platform): UdpPlace | null {
  if (multicast === undefined) return null;
  const place = { ...multicast, tls: typeof tls === "object" ? "on" : (tls ?? null) } as const;
  settlePlace(place, datagrams);
  return place;
}

/**
 * Returns the address of the admin pages, and how to access them. They have no password, so unless the address is a
 * loopback address, they are read-only, and encrypted unless TLS is explicitly off.
 */
function adminPlace(given: JoinOptions["admin"]): AdminPlace | null {
  if (given === undefined) return null;
  const { address: text, tls, readOnly }: AdminOptions = typeof given === "string" ? { address: given } : given;
  const name = typeof given === "string" ? "admin" : "admin.address";
  const address = parseHostPort(text);
  if (address === null) throw refusal(unexpected(name, "host:port", text));
  if (isLoopback(address.host)) return { address, tls: null, isReadOnly: readOnly === true };
  if (tls === undefined)
    throw refusal(
      `${unexpected(name, "a loopback address", formatHostPort(address))}: to serve reports to a network, set admin: { address, tls: { cert, key } }, or tls: "off" on a trusted network`,
    );
  if (readOnly === false)
    throw refusal(
      `${unexpected("admin.readOnly", "true or absent", readOnly)}: admin pages have no password, so outside loopback they are read-only`,
    );
  return { address, tls: null, isReadOnly: true };
}

async function readAdminTls(given: JoinOptions["admin"], id: NodeId): Promise<AdminPlace["tls"]> {
  if (typeof given !== "object" || typeof given.tls !== "object") return null;
  return readPems(given.tls, id);
}

const refusal = (message: string): UsageError => new UsageError("bad-option", message);

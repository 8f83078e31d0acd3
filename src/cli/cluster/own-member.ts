/** Joins a cluster as a member, using the settings in a config file. */
import { readServiceConfig, type ServiceConfig } from "../../cluster/config.ts";
import { join } from "../../cluster/join.ts";
import type { JoinOptions, Member } from "../../cluster/services/api.ts";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { formatHostPort, type HostPort, isLoopback, parseHostPort } from "../../runtime/host-port.ts";
import type { Log } from "../../runtime/log.ts";

/** The id and settings of the member that this process runs. */
interface Place {
  readonly config: string;
  readonly id: number;
  /** Overrides the config's `dataDir`. */
  readonly data?: string;
  readonly faultInjector?: true;
  /** Whether the member joins a cluster that is already running. */
  readonly existing?: true;
  /** The address for clients, and the roles file. */
  readonly clients?: string;
  readonly clientRoles?: string;
  /** The URL for clients. */
  readonly clientUrl?: string;
  /** The address of the etcd API: a port on loopback, or `host:port`. */
  readonly etcd?: string;
}

/**
 * Joins the cluster.
 * @throws UsageError if the config, id, address or folder cannot be used
 */
export async function joinCluster(options: Place, log: Log): Promise<Member> {
  const { cluster, members, tls, limits, dataDir, timing } = readServiceConfig(options.config);
  const { listen, admin } = requireMember(members, options);
  const addresses = Object.entries(members).map(([id, { address }]) => [id, formatHostPort(address)]);
  const folder = options.data ?? dataDir;
  if (folder === null || folder === undefined)
    throw new UsageError(
      "bad-config",
      `expected "dataDir" in ${options.config}, or --data, because a member keeps a journal`,
    );
  return join({
    id: options.id,
    members: Object.fromEntries(addresses),
    ...(listen && { listen: formatHostPort(listen) }),
    cluster,
    tls: tls ?? "off",
    limits,
    timing,
    dataDir: folder.replaceAll("{id}", String(options.id)),
    ...(admin.port === 0 ? {} : { admin: adminOf(admin) }),
    ...clientsOf(options, tls),
    ...etcdOf(options, tls),
    faultInjector: options.faultInjector === true,
    ...(options.existing === true && { existing: true }),
    log,
  }).catch(blameTheCaller);
}

/** Returns the settings for etcd's API. On a network, callers need certificates of the members' authority. */
function etcdOf({ etcd }: Place, tls: ServiceConfig["tls"]): Pick<JoinOptions, "etcd"> {
  if (etcd === undefined) return {};
  const listen = /^\d+$/.test(etcd) ? `127.0.0.1:${etcd}` : etcd;
  const address = parseHostPort(listen);
  if (address === null || isLoopback(address.host)) return { etcd: listen };
  if (tls === null)
    throw new UsageError(
      "bad-argument",
      `${unexpected("--etcd", "a loopback address without tls in the config", etcd)}: to serve a network, add tls to the config`,
    );
  return { etcd: { listen, tls } };
}

/** Returns the settings for the client server. It uses the members' certificates, if they have any. */
function clientsOf(
  { clients: listen, clientRoles: roles, clientUrl: url }: Place,
  tls: ServiceConfig["tls"],
): Pick<JoinOptions, "clients"> {
  if (listen === undefined) return {};
  const address = parseHostPort(listen);
  if (address !== null && !isLoopback(address.host) && roles === undefined)
    throw new UsageError(
      "bad-argument",
      `${unexpected("--clients", "a loopback address without --client-roles", listen)}: to serve a network, add --client-roles FILE`,
    );
  return { clients: { listen, tls: tls ?? "off", roles, url } };
}

/**
 * Returns the settings for the admin pages. A config that exposes them on a network declares that the network is
 * trusted.
 */
const adminOf = (admin: HostPort) =>
  isLoopback(admin.host) ? formatHostPort(admin) : { address: formatHostPort(admin), tls: "off" as const };

/** @throws UsageError if the config has no such member */
export function requireMember<T>(members: Readonly<Record<number, T>>, { id, config }: Place): T {
  const member = members[id];
  if (member !== undefined) return member;
  const known = Object.keys(members).join(", ");
  throw new UsageError("unknown-node", unexpected("--id", `one of the members ${known} in ${config}`, id));
}

/** The codes of errors about a file in the config that only the user can fix. */
const FILE_CODES = ["EACCES", "ENOENT", "EISDIR", "ENOTDIR", "EEXIST", "EROFS"];
const JOURNAL_CODES = [
  "journal-in-use",
  "damaged-journal",
  "foreign-journal",
  "journal-path",
  "journal-version",
  "other-journal",
  "journal-full",
  "wrong-members",
  "member-removed",
];

/** Rethrows an error, converted to a UsageError if the caller can fix it. */
export function blameTheCaller(error: unknown): never {
  if (!(error instanceof EnvironmentError)) throw error;
  // The address may become available soon: a port is freed, an interface comes up, or a name resolves. Supervisors
  // retry.
  if (error.code === "cannot-listen") throw error;
  const { code = "" } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (JOURNAL_CODES.includes(error.code) || FILE_CODES.includes(code)) throw new UsageError(error.code, error.message);
  throw error;
}

/** Joins a cluster as a member with the settings of a config file. */
import { readServiceConfig, type ServiceConfig } from "../../cluster/config.ts";
import { join } from "../../cluster/join.ts";
import type { JoinOptions, Member } from "../../cluster/services/api.ts";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { formatHostPort, type HostPort, isLoopback } from "../../runtime/host-port.ts";
import type { Log } from "../../runtime/log.ts";

/** The member to join as. */
interface Place {
  readonly config: string;
  readonly id: number;
  /** Overrides the config's `dataDir`. */
  readonly data?: string;
  readonly faultInjector?: true;
  /** It joins a running cluster. */
  readonly existing?: true;
  /** The address for clients, and the file of roles. */
  readonly clients?: string;
  readonly clientRoles?: string;
  /** The URL for clients. */
  readonly clientUrl?: string;
  /** The address of etcd's API: a port on loopback, or `host:port`. */
  readonly etcd?: string;
}

/** Joins the cluster. @throws UsageError for an unusable config, id, address or folder */
export async function joinCluster(options: Place, log: Log): Promise<Member> {
  const { cluster, members, tls, limits, dataDir, timing } = readServiceConfig(options.config);
  const { listen, admin } = requireMember(members, options);
  const addresses = Object.entries(members).map(([id, { address }]) => [id, formatHostPort(address)]);
  const folder = options.data ?? dataDir;
  if (folder === null || folder === undefined)
    throw new UsageError("bad-config", `expected "dataDir" in ${options.config}, or --data: a member keeps a journal`);
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
    ...(options.etcd === undefined ? {} : { etcd: placeOf(options.etcd) }),
    faultInjector: options.faultInjector === true,
    ...(options.existing === true && { existing: true }),
    log,
  }).catch(blameTheCaller);
}

const placeOf = (etcd: string): string => (/^\d+$/.test(etcd) ? `127.0.0.1:${etcd}` : etcd);

/** The settings of the client server. It uses the certificates of the members, if any. */
function clientsOf(
  { clients: listen, clientRoles: roles, clientUrl: url }: Place,
  tls: ServiceConfig["tls"],
): Pick<JoinOptions, "clients"> {
  return listen === undefined ? {} : { clients: { listen, tls: tls ?? "off", roles, url } };
}

/** A config that exposes admin pages to a network declares that network trusted. */
const adminOf = (admin: HostPort) =>
  isLoopback(admin.host) ? formatHostPort(admin) : { address: formatHostPort(admin), tls: "off" as const };

/** @throws UsageError if the config has no such member. */
export function requireMember<T>(members: Readonly<Record<number, T>>, { id, config }: Place): T {
  const member = members[id];
  if (member !== undefined) return member;
  const known = Object.keys(members).join(", ");
  throw new UsageError("unknown-node", unexpected("--id", `one of the members ${known} in ${config}`, id));
}

/**
 * Errors for a wrong address or file in the config, which the user must change. A port in use is not included: it may be free
 * soon, as after a restart, so a supervisor should try again.
 */
const CALLERS_CODES = [
  ...["EADDRNOTAVAIL", "EACCES", "ENOTFOUND", "EAI_AGAIN"],
  ...["ENOENT", "EISDIR", "ENOTDIR", "EEXIST", "EROFS"],
];
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

/** Rethrows an error, as a UsageError if the caller can fix it. */
export function blameTheCaller(error: unknown): never {
  if (!(error instanceof EnvironmentError)) throw error;
  const { code = "" } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (JOURNAL_CODES.includes(error.code) || CALLERS_CODES.includes(code))
    throw new UsageError(error.code, error.message);
  throw error;
}

/** Joins a cluster as a member, as a config file describes it. */
import { readServiceConfig, type ServiceConfig } from "../../cluster/config.ts";
import { join } from "../../cluster/join.ts";
import type { JoinOptions, Member } from "../../cluster/services/api.ts";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { formatHostPort, type HostPort, isLoopback } from "../../runtime/host-port.ts";
import type { Log } from "../../runtime/log.ts";

/** A member of a cluster. */
interface Place {
  readonly config: string;
  readonly id: number;
  /** Instead of the config's `dataDir`. */
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

/** Joins with the settings of a config file. @throws UsageError for an unusable config, id, address or folder */
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

/** With the certificates that members have, if they have any. */
function clientsOf(
  { clients: listen, clientRoles: roles, clientUrl: url }: Place,
  tls: ServiceConfig["tls"],
): Pick<JoinOptions, "clients"> {
  return listen === undefined ? {} : { clients: { listen, tls: tls ?? "off", roles, url } };
}

/** A config that exposes admin pages to a network has declared it trusted. */
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
 * An address or a file of the config is wrong, and the user must change it. A taken port is not among them: it may be free in a
 * moment, as after a restart, so a supervisor should try again.
 */
const CALLERS_CODES = [
  ...["EADDRNOTAVAIL", "EACCES", "ENOTFOUND", "EAI_AGAIN"],
  ...["ENOENT", "EISDIR", "ENOTDIR", "EEXIST", "EROFS"],
];
const JOURNAL_CODES = [
  "journal-in-use",
  "damaged-journal",
  "foreign-journal",
  "other-journal",
  "journal-full",
  "wrong-members",
  "member-removed",
];

/** @throws UsageError if the caller can fix it, otherwise the error itself */
export function blameTheCaller(error: unknown): never {
  if (!(error instanceof EnvironmentError)) throw error;
  const { code = "" } = (error.cause ?? {}) as NodeJS.ErrnoException;
  if (JOURNAL_CODES.includes(error.code) || CALLERS_CODES.includes(code))
    throw new UsageError(error.code, error.message);
  throw error;
}

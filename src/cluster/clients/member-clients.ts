/** Lets a member started with `join()` serve clients (processes that are not members). */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { FIRST_CLIENT } from "../../protocols/service/coordination-service/operations.ts";
import { readPems } from "../../runtime/certificate-files.ts";
import { formatHostPort, type HostPort, isLoopback, isWildcard, parseHostPort } from "../../runtime/host-port.ts";
import type { Log } from "../../runtime/log.ts";
import type { ClientCounts } from "../../runtime/metrics.ts";
import { packageVersion } from "../../runtime/package-files.ts";
import type { SessionHost } from "../../runtime/session-pages.ts";
import type { ClientsOptions, JoinOptions } from "../services/api.ts";
import type { ClusterMembers } from "../services/cluster-api.ts";
import type { SharedState } from "../services/state/shared-state.ts";
import { announceToClients } from "./announce.ts";
import type { ClientDoor } from "./client-door.ts";
import type { ClientServer } from "./client-server.ts";
import { socketUrl } from "./endpoints.ts";

/** The parts of a member that its client server uses. */
export interface ClientsOfMember {
  readonly id: NodeId;
  readonly cluster: string;
  readonly state: SharedState;
  readonly members: ClusterMembers;
  readonly door: ClientDoor;
  readonly sessions: SessionHost;
  readonly counts: ClientCounts;
  readonly log: Log;
}

interface Place {
  /** The URL at which clients reach the member. Null if it is the address that the member listens on. */
  readonly url: string | null;
  /** The host to use in that URL if the member listens on all interfaces. */
  readonly host: string;
  readonly origins: readonly string[];
  readonly address: HostPort;
  readonly tls: ClientsOptions["tls"];
  readonly roles: string | null;
}

/**
 * Returns the address at which the member serves clients, or null if it does not serve any. If that is not a loopback
 * address, any program on the network could call, so roles are required, and so is TLS unless it is explicitly off.
 * @throws UsageError that names the field
 */
export function clientPlaceOf({ id, clients, dataDir, members }: JoinOptions): Place | null {
  if (clients === undefined) return null;
  const given: ClientsOptions = typeof clients === "string" ? { listen: clients } : clients;
  const { listen, url = null, tls, roles = null, origins = [] } = given;
  const name = typeof clients === "string" ? "clients" : "clients.listen";
  const address = parseHostPort(listen);
  if (address === null) throw refusal(unexpected(name, "host:port", listen));
  if (dataDir === undefined)
    throw refusal(
      `${unexpected("clients", "absent without a dataDir", listen)}: shared state is stored in a journal, so set dataDir`,
    );
  if (Object.keys(members).some((id) => Number(id) >= FIRST_CLIENT))
    throw refusal(`expected member ids below ${FIRST_CLIENT}, because higher numbers are reserved for clients`);
  if (url !== null) socketUrl(url, "clients.url");
  const own = parseHostPort(members[id] ?? "")?.host ?? address.host;
  const place = { address, url, host: isWildcard(address.host) ? own : address.host, tls, roles, origins };
  if (isLoopback(address.host)) return place;
  const off = `${unexpected(name, "a loopback address", formatHostPort(address))}: to serve a network, set clients`;
  if (roles === null) throw refusal(`${off}: { listen, roles }, with a roles file`);
  if (tls === undefined)
    throw refusal(`${off}: { listen, roles, tls: { cert, key } }, or tls: "off" on a trusted network`);
  return place;
}

/**
 * Loads the server modules only if they are used.
 * @throws EnvironmentError if the server cannot listen or a file cannot be read
 */
export async function serveClientsOf(
  { address, url, host, tls, roles, origins }: Place,
  { id, cluster, state, members, door, sessions, counts, log }: ClientsOfMember,
): Promise<ClientServer> {
  const { serveClients } = await import("./client-server.ts");
  const { AccessFile, everybody } = await import("./access-file.ts");
  let recheck = (): void => {};
  const { timers } = state.host.platform;
  const path = roles?.replaceAll("{id}", String(id));
  const file = path === undefined ? null : await AccessFile.open({ path, timers, log, onChange: () => recheck() });
  state.host.listen((event) => {
    if (event.type === "closed") file?.stop();
  });
  const server = await serveClients({
    place: {
      address,
      tls: typeof tls === "object" ? await readPems(tls, id) : null,
      access: file ?? everybody,
      isOpen: roles === null,
      origins,
    },
    served: { state, members, member: id, cluster, clients: () => counts.connected },
    door,
    sessions,
    counts,
    version: packageVersion(),
  });
  recheck = () => server.recheck();
  announceToClients(state.host, url ?? server.urlAt(host));
  return server;
}

const refusal = (message: string): UsageError => new UsageError("bad-option", message);

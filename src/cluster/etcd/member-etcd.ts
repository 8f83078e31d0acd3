/** Lets a member started with `join()` serve etcd's API. */
import { createHash } from "node:crypto";
import { UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { ETCD_ENDPOINTS } from "../../protocols/service/coordination-service/operations.ts";
import { type Pems, readPems } from "../../runtime/certificate-files.ts";
import { formatHostPort, type HostPort, isLoopback, isWildcard, parseHostPort } from "../../runtime/host-port.ts";
import type { Log } from "../../runtime/log.ts";
import type { EtcdCounts } from "../../runtime/metrics.ts";
import { announce } from "../clients/announce.ts";
import type { EtcdOptions, JoinOptions } from "../services/api.ts";
import type { ClusterMembers } from "../services/cluster-api.ts";
import type { Door } from "../services/state/doors.ts";
import type { SharedState } from "../services/state/shared-state.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import type { HeaderOf } from "./kv-service.ts";
import type { LeaseClock } from "./lease-clock.ts";

/** Where a member serves etcd's API. */
interface EtcdPlace {
  readonly address: HostPort;
  /** The host to announce to clients. */
  readonly host: string;
  /** The paths of the certificate files. Null: no TLS. */
  readonly tls: Pems | null;
}

/**
 * Returns the address at which the member serves etcd's API, or null if it does not. If that is not a loopback address,
 * callers must have certificates, unless TLS is explicitly off.
 * @throws UsageError that names the field
 */
export function etcdPlaceOf({ id, members, etcd, dataDir }: JoinOptions): EtcdPlace | null {
  if (etcd === undefined) return null;
  const { listen, tls }: EtcdOptions = typeof etcd === "string" ? { listen: etcd } : etcd;
  const name = `${typeof etcd === "string" ? "etcd" : "etcd.listen"} of join()`;
  const address = parseHostPort(listen);
  if (address === null) throw refusal(unexpected(name, "host:port", listen));
  if (dataDir === undefined)
    throw refusal(
      `${unexpected(name, "absent without a dataDir", listen)}: shared state is stored in a journal, so set dataDir`,
    );
  const isProven = tls === "off" || tls?.ca !== undefined;
  if (!isLoopback(address.host) && !isProven) {
    const wanted = unexpected(name, "a loopback address", formatHostPort(address));
    const remedy = `set etcd: { listen, tls: { cert, key, ca } }, or tls: "off" on a trusted network`;
    throw refusal(`${wanted}: to serve a network, ${remedy}`);
  }
  const own = parseHostPort(members[id] ?? "")?.host ?? address.host;
  const host = isWildcard(address.host) ? own : address.host;
  return { address, host, tls: tls === "off" || tls === undefined ? null : tls };
}

export interface EtcdDoor extends Door {
  /** Uses the given certificates for new connections. */
  renew(tls: Pems): void;
}

/** The parts of a member that its etcd server uses. */
export interface EtcdOfMember {
  readonly id: NodeId;
  readonly cluster: string;
  readonly state: SharedState;
  readonly members: ClusterMembers;
  readonly keyspace: KeyspaceClient;
  readonly leases: LeaseClock;
  readonly counts: EtcdCounts;
  readonly log: Log;
}

/**
 * Loads the server modules only if they are used.
 * @throws EnvironmentError if the server cannot listen
 */
export async function serveEtcdOf(
  { address, host: shownHost, tls }: EtcdPlace,
  { id, cluster, state, members, keyspace, leases, counts, log }: EtcdOfMember,
): Promise<EtcdDoor> {
  const { serveGrpc } = await import("./grpc-door.ts");
  const { DoorRoom } = await import("./door-room.ts");
  const { kvService } = await import("./kv-service.ts");
  const { leaseService } = await import("./lease-service.ts");
  const { API_VERSION, authService, clusterService, maintenanceService } = await import("./cluster-service.ts");
  const { Gateway } = await import("./gateway.ts");
  const { electionService, lockService } = await import("./lock-service.ts");
  const { Leadership } = await import("./leadership.ts");
  const { Watches } = await import("./watches.ts");
  const { host } = state;
  const clusterId = idOf(cluster);
  const memberId = memberIdOf(cluster, id);
  const headerOf: HeaderOf = (revision) => ({
    cluster_id: clusterId,
    member_id: memberId,
    revision,
    raft_term: host.term,
  });
  const watches = new Watches(keyspace, headerOf, counts);
  const parts = { host, members, keyspace, headerOf, idOf: (member: NodeId) => memberIdOf(cluster, member) };
  const services = {
    "etcdserverpb.KV": kvService(keyspace, headerOf),
    "etcdserverpb.Watch": watches.service,
    "etcdserverpb.Lease": leaseService({ keyspace, clock: leases, headerOf }),
    "v3lockpb.Lock": lockService(keyspace, headerOf),
    "v3electionpb.Election": electionService(keyspace, headerOf),
    "etcdserverpb.Cluster": clusterService(parts),
    "etcdserverpb.Maintenance": maintenanceService(parts),
    "etcdserverpb.Auth": authService(),
  };
  const leadership = new Leadership(host);
  const served = { services, room: new DoorRoom(counts, log), leadership };
  const gateway = new Gateway({ ...served, version: API_VERSION });
  const pems = tls === null ? null : await readPems(tls, id);
  const door = await serveGrpc(address, { ...served, tls: pems, onHttp1: (socket) => gateway.accept(socket) });
  const url = `${pems === null ? "http" : "https"}://${formatHostPort({ host: shownHost, port: door.port })}`;
  announce(host, ETCD_ENDPOINTS, url);
  return {
    url,
    renew: (material) => door.renew(material),
    async close() {
      watches.close();
      leadership.close();
      await door.close();
    },
  };
}

/** etcd's clients identify members by nonzero 64-bit numbers. */
const memberIdOf = (cluster: string, id: NodeId): string => idOf(`${cluster} ${id}`);

const idOf = (text: string): string => String(createHash("sha256").update(text).digest().readBigUInt64BE() | 1n);

const refusal = (message: string): UsageError => new UsageError("bad-option", message);

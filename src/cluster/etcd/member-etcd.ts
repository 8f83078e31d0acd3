/** Lets a member started with `join()` serve etcd's API. */
import { createHash } from "node:crypto";
import { UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { ETCD_ENDPOINTS } from "../../protocols/service/coordination-service/operations.ts";
import { formatHostPort, type HostPort, isLoopback, parseHostPort } from "../../runtime/host-port.ts";
import type { Log } from "../../runtime/log.ts";
import type { EtcdCounts } from "../../runtime/metrics.ts";
import { announce } from "../clients/announce.ts";
import type { JoinOptions } from "../services/api.ts";
import type { ClusterMembers } from "../services/cluster-api.ts";
import type { Door } from "../services/state/doors.ts";
import type { SharedState } from "../services/state/shared-state.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import type { HeaderOf } from "./kv-service.ts";
import type { LeaseClock } from "./lease-clock.ts";

/** @throws UsageError that names the field */
export function etcdPlaceOf({ etcd, dataDir }: JoinOptions): HostPort | null {
  if (etcd === undefined) return null;
  const address = parseHostPort(etcd);
  if (address === null) throw refusal(unexpected("etcd", "host:port", etcd));
  if (dataDir === undefined)
    throw refusal(
      `${unexpected("etcd", "absent without a dataDir", etcd)}: shared state is stored in a journal, so set dataDir`,
    );
  if (!isLoopback(address.host))
    throw refusal(`${unexpected("etcd", "a loopback address", etcd)}: its clients do not authenticate`);
  return address;
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
  address: HostPort,
  { id, cluster, state, members, keyspace, leases, counts, log }: EtcdOfMember,
): Promise<Door> {
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
  const door = await serveGrpc(address, { ...served, onHttp1: (socket) => gateway.accept(socket) });
  const url = `http://${formatHostPort({ host: address.host, port: door.port })}`;
  announce(host, ETCD_ENDPOINTS, url);
  return {
    url,
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

/** etcd's service Lease. */
import { NO_LEASE } from "../../protocols/service/keyspace/store.ts";
import { atLeastZero } from "./calls.ts";
import { EtcdError } from "./errors.ts";
import { bidirectional, type Duplex, type Method, unary } from "./grpc-door.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import type { HeaderOf } from "./kv-service.ts";
import type { LeaseClock } from "./lease-clock.ts";
import * as of from "./messages.ts";
import { newLease } from "./new-lease.ts";

/** The parts of a member that the service uses. */
export interface LeaseParts {
  readonly keyspace: KeyspaceClient;
  readonly clock: LeaseClock;
  readonly headerOf: HeaderOf;
}

/** Returns the methods of the service Lease. */
export function leaseService({ keyspace, clock, headerOf }: LeaseParts): Record<string, Method> {
  const keepAlive = async (stream: Duplex<{ ID: string }, object>): Promise<void> => {
    for await (const { ID } of stream.requests) {
      const { revision, ttl } = await keyspace.execute({ type: "renew", lease: ID }).catch(orNone);
      await stream.send({ header: headerOf(revision), ID, TTL: ttl });
    }
  };
  return {
    LeaseGrant: unary(of.leaseGrantRequest, of.leaseGrantResponse, async ({ ID, TTL }) => {
      const lease = ID === NO_LEASE ? newLease() : ID;
      const { revision, ttl } = await keyspace.execute({ type: "grant", lease, ttl: atLeastZero(TTL) });
      return { header: headerOf(revision), ID: lease, TTL: ttl };
    }),
    LeaseRevoke: unary(of.leaseRequest, of.headerOnly, async ({ ID }) => {
      const { revision } = await keyspace.execute({ type: "revoke", lease: ID });
      return { header: headerOf(revision) };
    }),
    LeaseKeepAlive: bidirectional(of.leaseRequest, of.leaseKeepAliveResponse, keepAlive),
    LeaseTimeToLive: unary(of.leaseTimeToLiveRequest, of.leaseTimeToLiveResponse, async ({ ID, keys }) => {
      const found = await keyspace.ask({ type: "lease", lease: ID, keys }).catch(orNone);
      const header = headerOf(found.revision);
      if (found.ttl === 0) return { header, ID, TTL: -1 };
      return { header, ID, TTL: clock.remaining(ID) ?? found.ttl, grantedTTL: found.ttl, keys: found.keys };
    }),
    LeaseLeases: unary(of.nothing, of.leaseLeasesResponse, async () => {
      const { revision, leases } = await keyspace.ask({ type: "leases" });
      return { header: headerOf(revision), leases: clock.inOrder(leases).map(({ lease }) => ({ ID: lease })) };
    }),
  };
}

/** Converts the error for an ended lease to a TTL of 0, as etcd does. */
function orNone(error: unknown): { revision: number; ttl: number; keys: string[] } {
  if (error instanceof EtcdError && error.is("leaseNotFound")) return { revision: error.revision, ttl: 0, keys: [] };
  throw error;
}

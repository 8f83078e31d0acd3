/** etcd's services Cluster and Maintenance: the members, member changes, and the leader. */
import type { NodeId } from "../../core/protocol.ts";
import { ETCD_ENDPOINTS } from "../../protocols/service/coordination-service/operations.ts";
import { parseHostPort } from "../../runtime/host-port.ts";
import { MAX_ENDPOINTS } from "../clients/endpoints.ts";
import type { ClusterMember, ClusterMembers } from "../services/cluster-api.ts";
import type { ServiceHost } from "../services/state/service-host.ts";
import type { Header } from "./calls.ts";
import { EtcdError } from "./errors.ts";
import { type Method, unary } from "./grpc-door.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import type { HeaderOf } from "./kv-service.ts";
import * as of from "./messages.ts";

/** The parts of a member that these services use. */
export interface ClusterParts {
  readonly host: ServiceHost;
  readonly members: ClusterMembers;
  readonly keyspace: KeyspaceClient;
  readonly headerOf: HeaderOf;
  /** Returns the id that etcd clients see for the member. */
  idOf(member: NodeId): string;
}

/**
 * The etcd release whose API is served. Kubernetes' API server (1.31 and later) sends progress requests to servers that
 * report 3.4.31 or later, and serves lists from its cache after the response. It requires that progress responses never
 * overtake earlier changes, which `watches.ts` guarantees.
 */
export const API_VERSION = "3.4.31";

/** Returns the methods of the service Cluster. */
export function clusterService(parts: ClusterParts): Record<string, Method> {
  const { members, idOf } = parts;
  const known = async (id: string): Promise<ClusterMember> => {
    const member = staying(await members.members()).find((each) => idOf(each.id) === id);
    if (member === undefined) throw new EtcdError("memberNotFound");
    return member;
  };
  const changed = async (change: () => Promise<void>): Promise<ListedMembers> => {
    try {
      await change();
    } catch (error) {
      throw inWordsOfEtcd(error);
    }
    return listed(parts);
  };
  return {
    MemberList: unary(of.nothing, of.memberListResponse, () => listed(parts)),
    MemberAdd: unary(of.memberAddRequest, of.memberAddResponse, async ({ peerURLs, isLearner }) => {
      const address = addressOf(peerURLs);
      const id = await nextId(parts.host, await members.members());
      const list = await changed(() => members.add({ id, address }, { learner: isLearner }));
      return { ...list, member: list.members.find(({ ID }) => ID === idOf(id)) ?? null };
    }),
    MemberRemove: unary(of.memberRequest, of.memberListResponse, async ({ ID }) => {
      const { id } = await known(ID);
      return changed(() => members.remove(id));
    }),
    MemberUpdate: unary(of.memberUpdateRequest, of.memberListResponse, async ({ ID, peerURLs }) => {
      const { id } = await known(ID);
      return changed(() => members.move(id, addressOf(peerURLs)));
    }),
    MemberPromote: unary(of.memberRequest, of.memberListResponse, async ({ ID }) => {
      const { id } = await known(ID);
      const { answer } = await parts.host.query({ type: "members" });
      const listed = answer.list?.members.find(({ member }) => member === id);
      if (listed?.wish !== "learner") throw new EtcdError("notLearner");
      if (listed.journal === "") throw new EtcdError("learnerNotReady"); // The member has never been started.
      return changed(() => members.promote(id));
    }),
  };
}

/** Excludes members whose removal has begun, as etcd does. */
const staying = (list: readonly ClusterMember[]): ClusterMember[] => list.filter(({ role }) => role !== "leaving");

/** etcd's term for a member that does not vote. */
const isLearner = ({ role }: Pick<ClusterMember, "role">): boolean => role === "learner" || role === "joining";

interface ListedMembers {
  readonly header: Header;
  readonly members: of.ValueOf<typeof of.member>[];
}

async function listed({ host, members, keyspace, headerOf, idOf }: ClusterParts): Promise<ListedMembers> {
  const range = { type: "range", map: ETCD_ENDPOINTS, from: "", to: null, limit: MAX_ENDPOINTS } as const;
  const [list, { answer }, { revision }] = await Promise.all([
    members.members(),
    host.query(range),
    keyspace.ask({ type: "size" }),
  ]);
  const urls = new Map(answer.entries.map(({ key, value }) => [key, JSON.parse(value) as string]));
  const shown = staying(list).map(({ id, address, role }) => ({
    ID: idOf(id),
    name: String(id),
    peerURLs: [`http://${address}`],
    // Omit http://, because 3.4 clients mistake it for a host name when they contact each member; see
    // docs/guide/etcd-api.md.
    clientURLs: [urls.get(String(id))?.replace("http://", "") ?? []].flat(),
    isLearner: isLearner({ role }),
  }));
  // etcd sorts the members in the same way.
  const byId = shown.sort((a, b) => (BigInt(a.ID) < BigInt(b.ID) ? -1 : 1));
  return { header: headerOf(revision), members: byId };
}

/** Returns an id that no member has ever had. The ids of removed members are never reused. */
async function nextId(host: ServiceHost, now: readonly ClusterMember[]): Promise<NodeId> {
  const { answer } = await host.query({ type: "members" });
  return Math.max(...now.map(({ id }) => id), ...(answer.list?.removed ?? [])) + 1;
}

function addressOf([url = "", ...others]: readonly string[]): string {
  const [, address] = /^https?:\/\/([^/]+)\/?$/.exec(url) ?? [];
  if (address === undefined || others.length > 0 || parseHostPort(address) === null)
    throw new EtcdError("badMemberUrls");
  return address;
}

function inWordsOfEtcd(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  if (code === "unknown-member") return new EtcdError("memberNotFound", { cause: error });
  if (code === "member-exists") return new EtcdError("memberExists", { cause: error });
  if (code === "last-voter") return new EtcdError("lastVoter", { cause: error });
  if (code === "bad-option") return new EtcdError("badMemberUrls", { cause: error });
  return code === "change-under-way" ? new EtcdError("unhealthy", { cause: error }) : error;
}

/** Returns the supported methods of the service Maintenance. */
export function maintenanceService({ host, members, keyspace, headerOf, idOf }: ClusterParts): Record<string, Method> {
  const header = async (): Promise<Header> => headerOf((await keyspace.ask({ type: "size" })).revision);
  return {
    /** There are no alarms: a full store refuses puts until keys are deleted. */
    Alarm: unary(of.alarmRequest, of.alarmResponse, async () => ({ header: await header() })),
    /** Deleted keys leave nothing to defragment. */
    Defragment: unary(of.nothing, of.headerOnly, async () => ({ header: await header() })),
    MoveLeader: unary(of.moveLeaderRequest, of.headerOnly, async ({ targetID }) => {
      if (host.leader !== host.self) throw new EtcdError("notLeader");
      const target = (await members.members()).find(({ id }) => idOf(id) === targetID);
      if (target === undefined || target.role !== "voter") throw new EtcdError("badTransferee");
      if (target.id !== host.self) await members.transfer(target.id);
      return { header: await header() };
    }),
    Status: unary(of.nothing, of.statusResponse, async () => {
      const [{ revision, bytes }, { revision: index }, list] = await Promise.all([
        keyspace.ask({ type: "size" }),
        // Any linearizable query returns the revision of all shared state, which is reported as the Raft index.
        host.query({ type: "members" }),
        members.members(),
      ]);
      return {
        header: headerOf(revision),
        version: API_VERSION,
        dbSize: bytes,
        dbSizeInUse: bytes,
        leader: host.leader === null ? "0" : idOf(host.leader),
        raftIndex: index,
        raftAppliedIndex: index,
        raftTerm: host.term,
        isLearner: list.some((each) => each.id === host.self && isLearner(each)),
      };
    }),
  };
}

/** Returns the methods of the service Auth that clients call before anything else. There are no users or roles. */
export const authService = (): Record<string, Method> => ({
  Authenticate: unary(of.authenticateRequest, of.authenticateResponse, () =>
    Promise.reject(new EtcdError("authNotEnabled")),
  ),
});

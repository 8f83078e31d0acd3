/**
 * The messages of etcd's API v3 that this server supports, with etcd's field names and numbers, from rpc.proto,
 * kv.proto, v3lock.proto and v3election.proto in etcd 3.4 and 3.5.
 */
import { bool, bytes, code, id, list, type Message, message, number, part, string, unsignedId } from "./protobuf.ts";

/** The decoded value of a message. */
export type ValueOf<M> = M extends Message<infer T> ? T : never;

export const responseHeader = message({
  cluster_id: unsignedId(1),
  member_id: unsignedId(2),
  revision: number(3),
  raft_term: number(4),
});
const header = part(1, () => responseHeader);

export const keyValue = message({
  key: bytes(1),
  create_revision: number(2),
  mod_revision: number(3),
  version: number(4),
  value: bytes(5),
  lease: id(6),
});

export const rangeRequest = message({
  key: bytes(1),
  range_end: bytes(2),
  limit: number(3),
  revision: number(4),
  sort_order: code(5, ["NONE", "ASCEND", "DESCEND"]),
  sort_target: code(6, ["KEY", "VERSION", "CREATE", "MOD", "VALUE"]),
  serializable: bool(7),
  keys_only: bool(8),
  count_only: bool(9),
  min_mod_revision: number(10),
  max_mod_revision: number(11),
  min_create_revision: number(12),
  max_create_revision: number(13),
});
export const rangeResponse = message({ header, kvs: list(part(2, () => keyValue)), more: bool(3), count: number(4) });

export const putRequest = message({
  key: bytes(1),
  value: bytes(2),
  lease: id(3),
  prev_kv: bool(4),
  ignore_value: bool(5),
  ignore_lease: bool(6),
});
export const putResponse = message({ header, prev_kv: part(2, () => keyValue) });

export const deleteRangeRequest = message({ key: bytes(1), range_end: bytes(2), prev_kv: bool(3) });
export const deleteRangeResponse = message({ header, deleted: number(2), prev_kvs: list(part(3, () => keyValue)) });

export interface WireOp {
  request_range: ValueOf<typeof rangeRequest> | null;
  request_put: ValueOf<typeof putRequest> | null;
  request_delete_range: ValueOf<typeof deleteRangeRequest> | null;
  request_txn: WireTxn | null;
}

export interface WireTxn {
  compare: ValueOf<typeof compare>[];
  success: WireOp[];
  failure: WireOp[];
}

export const compare = message({
  result: code(1, ["EQUAL", "GREATER", "LESS", "NOT_EQUAL"]),
  target: code(2, ["VERSION", "CREATE", "MOD", "VALUE", "LEASE"]),
  key: bytes(3),
  version: number(4),
  create_revision: number(5),
  mod_revision: number(6),
  value: bytes(7),
  lease: id(8),
  range_end: bytes(64),
});

const requestOp: Message<WireOp> = message({
  request_range: part(1, () => rangeRequest),
  request_put: part(2, () => putRequest),
  request_delete_range: part(3, () => deleteRangeRequest),
  request_txn: part(4, () => txnRequest),
}) as never;

export const txnRequest: Message<WireTxn> = message({
  compare: list(part(1, () => compare)),
  success: list(part(2, () => requestOp)),
  failure: list(part(3, () => requestOp)),
}) as never;

export interface WireResponseOp {
  response_range?: Partial<ValueOf<typeof rangeResponse>>;
  response_put?: Partial<ValueOf<typeof putResponse>>;
  response_delete_range?: Partial<ValueOf<typeof deleteRangeResponse>>;
  response_txn?: Partial<WireTxnResponse>;
}

export interface WireTxnResponse {
  header: Partial<ValueOf<typeof responseHeader>> | null;
  succeeded: boolean;
  responses: WireResponseOp[];
}

const responseOp: Message<WireResponseOp> = message({
  response_range: part(1, () => rangeResponse),
  response_put: part(2, () => putResponse),
  response_delete_range: part(3, () => deleteRangeResponse),
  response_txn: part(4, () => txnResponse),
}) as never;

export const txnResponse: Message<WireTxnResponse> = message({
  header,
  succeeded: bool(2),
  responses: list(part(3, () => responseOp)),
}) as never;

export const compactionRequest = message({ revision: number(1), physical: bool(2) });
/** The type of all responses that contain only a header. */
export const headerOnly = message({ header });

export const watchCreateRequest = message({
  key: bytes(1),
  range_end: bytes(2),
  start_revision: number(3),
  progress_notify: bool(4),
  filters: list(code(5, ["NOPUT", "NODELETE"])),
  prev_kv: bool(6),
  watch_id: number(7),
  fragment: bool(8),
});
const watchCancelRequest = message({ watch_id: number(1) });
const empty = message({});
export const watchRequest = message({
  create_request: part(1, () => watchCreateRequest),
  cancel_request: part(2, () => watchCancelRequest),
  progress_request: part(3, () => empty),
});
const event = message({
  type: code(1, ["PUT", "DELETE"]),
  kv: part(2, () => keyValue),
  prev_kv: part(3, () => keyValue),
});
export const watchResponse = message({
  header,
  watch_id: number(2),
  created: bool(3),
  canceled: bool(4),
  compact_revision: number(5),
  cancel_reason: string(6),
  fragment: bool(7),
  events: list(part(11, () => event)),
});

export const leaseGrantRequest = message({ TTL: number(1), ID: id(2) });
export const leaseGrantResponse = message({ header, ID: id(2), TTL: number(3), error: string(4) });
export const leaseRequest = message({ ID: id(1) });
export const leaseKeepAliveResponse = message({ header, ID: id(2), TTL: number(3) });
export const leaseTimeToLiveRequest = message({ ID: id(1), keys: bool(2) });
export const leaseTimeToLiveResponse = message({
  header,
  ID: id(2),
  TTL: number(3),
  grantedTTL: number(4),
  keys: list(bytes(5)),
});
export const nothing = empty;
export const leaseLeasesResponse = message({ header, leases: list(part(2, () => leaseRequest)) });

export const member = message({
  ID: unsignedId(1),
  name: string(2),
  peerURLs: list(string(3)),
  clientURLs: list(string(4)),
  isLearner: bool(5),
});
export const memberListResponse = message({ header, members: list(part(2, () => member)) });

export const memberAddRequest = message({ peerURLs: list(string(1)), isLearner: bool(2) });
export const memberAddResponse = message({
  header,
  member: part(2, () => member),
  members: list(part(3, () => member)),
});
/** The request to remove or promote a member. */
export const memberRequest = message({ ID: unsignedId(1) });
export const memberUpdateRequest = message({ ID: unsignedId(1), peerURLs: list(string(2)) });

export const moveLeaderRequest = message({ targetID: unsignedId(1) });
export const statusResponse = message({
  header,
  version: string(2),
  dbSize: number(3),
  leader: unsignedId(4),
  raftIndex: number(5),
  raftTerm: number(6),
  raftAppliedIndex: number(7),
  errors: list(string(8)),
  dbSizeInUse: number(9),
  isLearner: bool(10),
});

const alarms = ["NONE", "NOSPACE", "CORRUPT"];
const alarm = message({ memberID: unsignedId(1), alarm: code(2, alarms) });
export const alarmRequest = message({
  action: code(1, ["GET", "ACTIVATE", "DEACTIVATE"]),
  memberID: unsignedId(2),
  alarm: code(3, alarms),
});
export const alarmResponse = message({ header, alarms: list(part(2, () => alarm)) });

export const authenticateRequest = message({ name: string(1), password: string(2) });
export const authenticateResponse = message({ header, token: string(2) });

export const lockRequest = message({ name: bytes(1), lease: id(2) });
export const lockResponse = message({ header, key: bytes(2) });
export const unlockRequest = message({ key: bytes(1) });

export const leaderKey = message({ name: bytes(1), key: bytes(2), rev: number(3), lease: id(4) });
export const campaignRequest = message({ name: bytes(1), lease: id(2), value: bytes(3) });
export const campaignResponse = message({ header, leader: part(2, () => leaderKey) });
export const leaderRequest = message({ name: bytes(1) });
export const leaderResponse = message({ header, kv: part(2, () => keyValue) });
export const resignRequest = message({ leader: part(1, () => leaderKey) });
export const proclaimRequest = message({ leader: part(1, () => leaderKey), value: bytes(2) });

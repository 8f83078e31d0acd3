/** The shapes of a keyspace's commands, questions and responses. */
import { boolean, list, natural, nullable, oneOf, type Shape, struct, text, variants } from "../../../core/shape.ts";
import {
  type Compare,
  type GrantedLease,
  type KeyEvent,
  type KeyspaceCommand,
  type KeyspaceQuestion,
  type KeyspaceResponse,
  type KeyValue,
  keyspaceErrorCodes,
  type RequestOp,
  type ResponseOp,
} from "./vocabulary.ts";

/** The maximum size of a request, and thus of each of its parts. */
const MAX_BYTES = 1_048_576;
/** The maximum length of each list in a transaction, which is etcd's default. */
export const MAX_TXN_OPERATIONS = 128;
/** The maximum nesting depth of transactions. */
const MAX_TXN_DEPTH = 4;

const bytes = text(2 * MAX_BYTES);
const lease = text(20);
const interval = { key: bytes, end: bytes };

const range = {
  ...interval,
  limit: natural,
  revision: natural,
  order: oneOf("none", "ascend", "descend"),
  target: oneOf("key", "version", "create", "mod", "value"),
  keysOnly: boolean,
  countOnly: boolean,
  minMod: natural,
  maxMod: natural,
  minCreate: natural,
  maxCreate: natural,
} as const;
const put = { key: bytes, value: bytes, lease, prev: boolean, ignoreValue: boolean, ignoreLease: boolean };
const remove = { ...interval, prev: boolean };

const comparing = { ...interval, result: oneOf("equal", "greater", "less", "notEqual") } as const;
const compare = variants<Compare>({
  version: { ...comparing, number: natural },
  create: { ...comparing, number: natural },
  mod: { ...comparing, number: natural },
  value: { ...comparing, value: bytes },
  lease: { ...comparing, lease },
});

const operations = (depth: number): Shape<RequestOp[]> =>
  list(
    variants<RequestOp>({
      range,
      put,
      delete: remove,
      ...((depth > 0 ? { txn: transaction(depth - 1) } : {}) as { txn: ReturnType<typeof transaction> }),
    }),
    MAX_BYTES, // `flawOf` checks etcd's limit and returns etcd's error.
  );

const transaction = (depth: number) => ({
  compare: list(compare, MAX_BYTES),
  success: operations(depth),
  failure: operations(depth),
});

/** The shape of a command. */
export const keyspaceCommandShape: Shape<KeyspaceCommand> = variants<KeyspaceCommand>({
  put,
  delete: remove,
  txn: transaction(MAX_TXN_DEPTH - 1),
  compact: { revision: natural },
  grant: { lease, ttl: natural },
  renew: { lease },
  revoke: { lease },
  expire: { lease, renewal: natural },
});

/** The shape of a question. */
export const keyspaceQuestionShape: Shape<KeyspaceQuestion> = variants<KeyspaceQuestion>({
  range,
  lease: { lease, keys: boolean },
  leases: {},
  size: {},
  events: { ...interval, from: natural, maxBytes: natural },
});

/** An upper bound on the length of any list in a response or in the state. */
const MANY = Number.MAX_SAFE_INTEGER;

/** The shape of a key with its value. */
export const keyValueShape: Shape<KeyValue> = struct<KeyValue>({
  key: bytes,
  create: natural,
  mod: natural,
  version: natural,
  value: bytes,
  lease,
});
/** The shape of a change to a key. */
export const keyEventShape: Shape<KeyEvent> = struct<KeyEvent>({
  type: oneOf("put", "delete"),
  kv: keyValueShape,
  prev: nullable(keyValueShape),
});

const responses = {
  range: { revision: natural, kvs: list(keyValueShape, MANY), more: boolean, count: natural },
  put: { revision: natural, prev: nullable(keyValueShape) },
  delete: { revision: natural, deleted: natural, prev: list(keyValueShape, MANY) },
} as const;

const responseList = (depth: number): Shape<ResponseOp[]> =>
  list(
    variants<ResponseOp>({
      ...responses,
      ...((depth > 0 ? { txn: transactionResponse(depth - 1) } : {}) as {
        txn: ReturnType<typeof transactionResponse>;
      }),
    }),
    MAX_BYTES,
  );

const transactionResponse = (depth: number) => ({
  revision: natural,
  succeeded: boolean,
  responses: responseList(depth),
});

/** The shape of a response. */
export const keyspaceResponseShape: Shape<KeyspaceResponse> = variants<KeyspaceResponse>({
  ...responses,
  txn: transactionResponse(MAX_TXN_DEPTH - 1),
  done: { revision: natural },
  lease: { revision: natural, ttl: natural, keys: list(bytes, MANY) },
  leases: {
    revision: natural,
    leases: list(struct<GrantedLease>({ lease, ttl: natural, renewal: natural }), MANY),
  },
  size: { revision: natural, bytes: natural },
  events: { revision: natural, events: list(keyEventShape, MANY), next: natural },
  refused: { code: oneOf(...keyspaceErrorCodes), revision: natural, compacted: natural },
});

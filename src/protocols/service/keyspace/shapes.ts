/** The shapes of a keyspace's commands and questions. */
import { boolean, list, natural, oneOf, type Shape, text, variants } from "../../../core/shape.ts";
import type { Compare, KeyspaceCommand, KeyspaceQuestion, RequestOp } from "./vocabulary.ts";

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

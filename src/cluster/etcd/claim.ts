/**
 * Queues of keys under a prefix. Each key is bound to its owner's lease, and the oldest key wins. etcd's locks and
 * elections consist of such keys, created by client libraries or by a member.
 */
import { putOf, rangeOf, txnOf } from "../../protocols/service/keyspace/new-requests.ts";
import { NO_LEASE } from "../../protocols/service/keyspace/store.ts";
import type { Compare, Interval, KeyValue, LeaseId } from "../../protocols/service/keyspace/vocabulary.ts";
import { EtcdError } from "./errors.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import { newLease } from "./new-lease.ts";

/** The TTL for callers that pass no lease. Their lease is not renewed. */
const SESSION_S = 60;

/** The key of a caller that holds the lock or waits for it. */
export interface Claim extends Pick<KeyValue, "key" | "create" | "value"> {
  readonly prefix: string;
  readonly lease: LeaseId;
  readonly revision: number;
}

/** Returns the range of keys under a name. The prefix ends with a slash, and `0` is the next character. */
export const under = (name: string): Interval => ({ key: `${name}/`, end: `${name}0` });

/** Returns the oldest key under a name. */
export async function firstUnder(
  keyspace: KeyspaceClient,
  name: string,
): Promise<{ readonly first: KeyValue | null; readonly revision: number }> {
  const { key, end } = under(name);
  const { kvs, revision } = await keyspace.ask(rangeOf(key, end, { order: "ascend", target: "create", limit: 1 }));
  return { first: kvs[0] ?? null, revision };
}

/**
 * Creates this lease's key under a name, or returns the existing one.
 * @throws EtcdError if the lease does not exist
 */
export async function claim(keyspace: KeyspaceClient, name: string, given: LeaseId, value: string): Promise<Claim> {
  const lease = given === NO_LEASE ? newLease() : given;
  if (given === NO_LEASE) await keyspace.execute({ type: "grant", lease, ttl: SESSION_S });
  const key = `${name}/${BigInt(lease).toString(16)}`;
  const isAbsent: Compare = { type: "create", key, end: "", result: "equal", number: 0 };
  const { responses, revision } = await keyspace.execute(
    txnOf([isAbsent], [putOf(key, value, { lease })], [rangeOf(key)]),
  );
  const [response] = responses;
  const found = response?.type === "range" ? response.kvs[0] : undefined;
  const { create, value: stands } = found ?? { create: revision, value };
  return { prefix: `${name}/`, key, create, value: stands, lease, revision };
}

/**
 * Resolves once the prefix has no older key.
 * @throws EtcdError `sessionExpired` if the key no longer exists; the reason of `signal`
 */
export async function untilFirst(
  keyspace: KeyspaceClient,
  { prefix, key, create }: Claim,
  signal: AbortSignal,
): Promise<number> {
  const name = prefix.slice(0, -1);
  let wake = (): void => {};
  let isMissed = false;
  let deleted = new Set<string>();
  const forget = keyspace.listen((change) => {
    if (change === null) isMissed = true;
    for (const { type, kv } of change?.events ?? []) if (type === "delete") deleted.add(kv.key);
    wake();
  });
  const abort = (): void => wake();
  signal.addEventListener("abort", abort);
  try {
    for (;;) {
      signal.throwIfAborted();
      isMissed = false;
      deleted = new Set();
      const latest = { maxCreate: create, keysOnly: true, order: "descend", target: "create", limit: 2 } as const;
      const { kvs, revision } = await keyspace.ask(rangeOf(under(name).key, under(name).end, latest));
      const [own, before] = kvs;
      if (own?.key !== key || own.create !== create) throw new EtcdError("sessionExpired");
      if (before === undefined) return revision;
      while (!isMissed && !signal.aborted && !deleted.has(before.key) && !deleted.has(key)) {
        deleted.clear();
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  } finally {
    forget();
    signal.removeEventListener("abort", abort);
  }
}

/**
 * etcd's services Lock and Election. The member itself performs the key operations that etcd's client libraries would
 * otherwise perform.
 */
import { deleteOf, putOf, txnOf } from "../../protocols/service/keyspace/new-requests.ts";
import type { Compare, TxnResponse } from "../../protocols/service/keyspace/vocabulary.ts";
import { wireKeyValue } from "./calls.ts";
import { type Claim, claim, firstUnder, under, untilFirst } from "./claim.ts";
import { EtcdError } from "./errors.ts";
import { type Method, serverStreaming, unary } from "./grpc-door.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import type { HeaderOf } from "./kv-service.ts";
import * as of from "./messages.ts";

type LeaderKey = of.ValueOf<typeof of.leaderKey>;

/** Returns the methods of the service Lock. */
export function lockService(keyspace: KeyspaceClient, headerOf: HeaderOf): Record<string, Method> {
  const remove = async (key: string): Promise<number> => {
    const { revision } = await keyspace.execute(deleteOf(key));
    return revision;
  };
  return {
    Lock: unary(of.lockRequest, of.lockResponse, async ({ name, lease }, signal) => {
      const claimed = await claim(keyspace, name, lease, "");
      const revision = await orGivenUp(first(keyspace, claimed, signal), () => remove(claimed.key));
      return { header: headerOf(revision), key: claimed.key };
    }),
    Unlock: unary(of.unlockRequest, of.headerOnly, async ({ key }) => ({ header: headerOf(await remove(key)) })),
  };
}

async function first(keyspace: KeyspaceClient, claimed: Claim, signal: AbortSignal): Promise<number> {
  const revision = await untilFirst(keyspace, claimed, signal);
  signal.throwIfAborted();
  return revision;
}

/** Removes the caller's key if its request failed, so that the caller no longer waits in the queue. */
async function orGivenUp<T>(asked: Promise<T>, giveUp: () => Promise<unknown>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    await giveUp().catch(() => {}); // The caller's lease will expire.
    throw error;
  }
}

/** Returns the methods of the service Election. */
export function electionService(keyspace: KeyspaceClient, headerOf: HeaderOf): Record<string, Method> {
  const withLeader = async (
    leader: Partial<LeaderKey> | null,
    change: "delete" | { value: string },
  ): Promise<TxnResponse> => {
    if (leader === null) throw new EtcdError("noLeaderKey");
    const { key = "", rev = 0, lease = "0" } = leader;
    const isStill: Compare = { type: "create", key, end: "", result: "equal", number: rev };
    const done = change === "delete" ? deleteOf(key) : putOf(key, change.value, { lease });
    return keyspace.execute(txnOf([isStill], [done], []));
  };
  const proclaim = async (leader: Partial<LeaderKey> | null, value: string): Promise<number> => {
    const { succeeded, revision } = await withLeader(leader, { value });
    if (!succeeded) throw new EtcdError("electionNotLeader");
    return revision;
  };
  return {
    Campaign: unary(of.campaignRequest, of.campaignResponse, async ({ name, lease, value }, signal) => {
      const claimed = await claim(keyspace, name, lease, value);
      const leader = { name, key: claimed.key, rev: claimed.create, lease: claimed.lease };
      const giveUp = (): Promise<unknown> => withLeader(leader, "delete");
      if (claimed.value !== value) await orGivenUp(proclaim(leader, value), giveUp);
      await orGivenUp(first(keyspace, claimed, signal), giveUp);
      return { header: headerOf(claimed.revision), leader };
    }),
    Proclaim: unary(of.proclaimRequest, of.headerOnly, async ({ leader, value }) => ({
      header: headerOf(await proclaim(leader, value)),
    })),
    Leader: unary(of.leaderRequest, of.leaderResponse, async ({ name }) => {
      const { first, revision } = await firstUnder(keyspace, name);
      if (first === null) throw new EtcdError("electionNoLeader");
      return { header: headerOf(revision), kv: wireKeyValue(first) };
    }),
    Observe: serverStreaming(of.leaderRequest, of.leaderResponse, async ({ name }, { signal, send }) => {
      let last = 0;
      for await (const { first, revision } of leadersOf(keyspace, name, signal)) {
        if (first.mod === last) continue;
        last = first.mod;
        await send({ header: headerOf(revision), kv: wireKeyValue(first) });
      }
    }),
    Resign: unary(of.resignRequest, of.headerOnly, async ({ leader }) => {
      const { revision } = await withLeader(leader, "delete");
      return { header: headerOf(revision) };
    }),
  };
}

/** Yields the leader each time it may have changed. A slow reader gets only the latest one. */
async function* leadersOf(keyspace: KeyspaceClient, name: string, signal: AbortSignal) {
  const { key: prefix } = under(name);
  let isStale = true;
  let wake = (): void => {};
  const forget = keyspace.listen((change) => {
    isStale ||= change === null || change.events.some(({ kv }) => kv.key.startsWith(prefix));
    wake();
  });
  const abort = (): void => wake();
  signal.addEventListener("abort", abort);
  try {
    while (!signal.aborted) {
      if (!isStale) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      isStale = false;
      const { first, revision } = await firstUnder(keyspace, name);
      if (first !== null) yield { first, revision };
    }
  } finally {
    forget();
    signal.removeEventListener("abort", abort);
  }
}

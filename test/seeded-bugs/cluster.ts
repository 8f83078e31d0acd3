/**
 * Bugs that only a whole cluster can show: in watches during snapshots, with full disks, in large transactions and in
 * sessions.
 */
export interface ClusterBug {
  readonly name: string;
  readonly summary: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Matches the violation that the swarm reports. */
  readonly finds: RegExp;
  /** The first seed of the search, shortly before one that finds the bug. */
  readonly from?: number;
}

export const clusterBugs: readonly ClusterBug[] = [
  {
    name: "watch-continues-over-a-snapshot",
    summary: "a watch continues after its replica installed a snapshot, without the changes in between",
    file: "src/cluster/services/state/watch.ts",
    find: `      return this.#isLive ? this.#missed() : undefined;\n`,
    replace: `      return undefined;\n`,
    finds: /received \d+ of \d+ changes|did not receive the last write/,
    from: 7,
  },
  {
    name: "client-not-notified-of-snapshot",
    summary:
      "a member does not notify its clients that it installed a snapshot, and their watches continue without the changes in between",
    file: "src/cluster/clients/client-door.ts",
    find: ` else if (event.type === "restored") this.#all({ type: "restored", revision: event.revision });\n`,
    replace: `\n`,
    finds: /1\d\d\d\/\d+ received \d+ of \d+ changes|did not receive the last write/,
    from: 8,
  },
  {
    name: "transaction-in-part",
    summary: "a transaction with three writes leaves out the last one",
    file: "src/protocols/service/coordination-service/keys.ts",
    find: `success.map(request)`,
    replace: `success.slice(0, 2).map(request)`,
    finds: /store is not linearizable/,
  },
  {
    name: "transaction-looks-at-one-key",
    summary: "a transaction is applied if the first key that it read is unchanged",
    file: "src/protocols/service/coordination-service/keys.ts",
    find: `compare.map(compareOf)`,
    replace: `compare.slice(0, 1).map(compareOf)`,
    finds: /store is not linearizable/,
  },
  {
    name: "session-given-up-by-guess",
    summary: "a member considers its session lost before its next keep-alive can have arrived",
    file: "src/protocols/service/coordination-service/lease.ts",
    find: `  ctx.setTimer(timer, leaseMs);`,
    replace: `  ctx.setTimer(timer, leaseMs / 6);`,
    finds: /has lost its session, though it was well/,
  },
  {
    name: "session-kept-for-long",
    summary: "a leader expires a session only after four times its time to live",
    file: "src/protocols/service/coordination-service/expiry.ts",
    find: `if (sweeps >= sweepsOf(ttlMs, options))`,
    replace: `if (sweeps >= 4 * sweepsOf(ttlMs, options))`,
    finds: /held was kept for \d+ ms after it had crashed/,
  },
  {
    name: "full-disk-taken-for-durable",
    summary: "a write that did not fit on a full disk is reported as durable",
    file: "src/runtime/journal/disk-journal.ts",
    find: `    await this.#write(batch);\n    for (`,
    replace: `    try {\n      await this.#write(batch);\n    } catch (error) {\n      if ((error as { code?: string }).code !== "ENOSPC") throw error;\n      this.#leaving = null;\n      return batch.waiting;\n    }\n    for (`,
    finds: /Replay/,
    from: 247,
  },
];

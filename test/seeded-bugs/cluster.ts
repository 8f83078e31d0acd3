/** Bugs that take a whole cluster to be seen: snapshots of the log beside watches, full disks, transactions of many, sessions. `cluster.test.ts` looks for them. */
export interface ClusterBug {
  readonly name: string;
  readonly summary: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** What the swarm says of it. */
  readonly finds: RegExp;
  /** The seed with which the hunt begins, of a bug that few find. */
  readonly from?: number;
}

export const clusterBugs: readonly ClusterBug[] = [
  {
    name: "watch-goes-on-over-a-snapshot",
    summary: "a watch goes on where it was, though its replica was given a snapshot of what came between",
    file: "src/cluster/services/state/watch.ts",
    find: `      return this.#isLive ? this.#missed() : undefined;\n`,
    replace: `      return undefined;\n`,
    finds: /was told \d+ of \d+ changes|was not told of what was written last/,
  },
  {
    name: "client-not-told-of-a-snapshot",
    summary: "a member does not tell its clients that it was given a snapshot, and their watches go on where they were",
    file: "src/cluster/clients/client-door.ts",
    find: ` else if (event.type === "restored") this.#all({ type: "restored", revision: event.revision });\n`,
    replace: `\n`,
    finds: /1\d\d\d\/\d+ was told \d+ of \d+ changes|was not told of what was written last/,
  },
  {
    name: "transaction-in-part",
    summary: "of what a transaction writes, the last is left out where there are three",
    file: "src/protocols/service/coordination-service/keys.ts",
    find: `results: steps.map((step) => carryOut(on, session, step, revision)) };`,
    replace: `results: steps.map((step, at) => (at < 2 ? carryOut(on, session, step, revision) : { type: "stored", previous: null })) as never };`,
    finds: /store is not linearizable/,
  },
  {
    name: "transaction-looks-at-one-key",
    summary: "a transaction is carried out if the first key that it has read is unchanged",
    file: "src/protocols/service/coordination-service/keys.ts",
    find: `operation.compare.every((comparison)`,
    replace: `operation.compare.slice(0, 1).every((comparison)`,
    finds: /store is not linearizable/,
  },
  {
    name: "session-given-up-by-guess",
    summary: "a member takes its session for lost before its next keep-alive can have been heard",
    file: "src/protocols/service/coordination-service/lease.ts",
    find: `  ctx.setTimer(timer, leaseMs);`,
    replace: `  ctx.setTimer(timer, leaseMs / 6);`,
    finds: /has lost its session, though it was well/,
  },
  {
    name: "session-kept-for-long",
    summary: "a leader has a session expire after four times as long as it may last",
    file: "src/protocols/service/coordination-service/expiry.ts",
    find: `if (sweeps >= sweepsOf(ttlMs, options))`,
    replace: `if (sweeps >= 4 * sweepsOf(ttlMs, options))`,
    finds: /held was kept for \d+ ms after it had crashed/,
  },
  {
    name: "full-disk-taken-for-durable",
    summary: "what did not fit on a full disk is told to be durable",
    file: "src/runtime/journal/disk-journal.ts",
    find: `    await this.#write(batch);\n    for (`,
    replace: `    try {\n      await this.#write(batch);\n    } catch (error) {\n      if ((error as { code?: string }).code !== "ENOSPC") throw error;\n      this.#leaving = null;\n      return batch.waiting;\n    }\n    for (`,
    finds: /Replay/,
    from: 247,
  },
];

/** Bugs in the coordination service. Each one breaks a promise in its header comment. */
export interface ServiceBug {
  readonly name: string;
  readonly summary: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /**
   * The search that finds it: random runs under faults, random operations on one replica, a change of leaders, or a
   * holder with slow links.
   */
  readonly by: "adversity" | "operations" | "failover" | "slow link";
}

const FOLDER = "src/protocols/service";

const inFile = (name: string, bugs: readonly Omit<ServiceBug, "file">[]): ServiceBug[] => {
  const file = name.includes("/") ? `${FOLDER}/${name}` : `${FOLDER}/coordination-service/${name}`;
  return bugs.map((bug) => ({ ...bug, file }));
};

export const serviceBugs: readonly ServiceBug[] = [
  ...inFile("sessions.ts", [
    {
      name: "expires-who-was-heard",
      summary: "a session expires although the log contains a keep-alive after the position that the leader had seen",
      find: `if (session?.seen !== seen) return null;`,
      replace: `if (session === null) return null;`,
      by: "operations",
    },
    {
      name: "ended-and-still-holding",
      summary: "the end of a session does not release its grants",
      find: `  releaseGrants(on, id);\n`,
      replace: ``,
      by: "operations",
    },
  ]),
  ...inFile("lease.ts", [
    {
      name: "lease-from-when-applied",
      summary: "a lease starts when its keep-alive is applied, not when it was proposed",
      find: `  ctx.emit({ type: "confirmed", session }, leaseTimer(round));`,
      replace: `  ctx.setTimer(leaseTimer(round), 1_000);\n  ctx.emit({ type: "confirmed", session }, leaseTimer(round));`,
      by: "slow link",
    },
  ]),
  ...inFile("expiry.ts", [
    {
      name: "counts-on-after-keep-alive",
      summary: "a leader continues to count although it has received a keep-alive of the session meanwhile",
      find: `before?.seen === seen ? before.sweeps + 1 : 0;`,
      replace: `before === undefined ? 0 : before.sweeps + 1;`,
      by: "failover",
    },
    {
      name: "half-a-lease-is-enough",
      summary: "a leader waits for half of the time that the lease may last",
      find: `if (sweeps >= sweepsOf(ttlMs, options))`,
      replace: `if (sweeps >= sweepsOf(ttlMs, options) / 2)`,
      by: "adversity",
    },
  ]),
  ...inFile("replica.ts", [
    {
      name: "numbers-not-in-the-snapshot",
      summary: "a snapshot forgets which operations of a session have been applied",
      find: `beginWriting(state.index, asItStands(state.data), `,
      replace: `beginWriting(state.index, { ...asItStands(state.data), sessions: state.data.sessions.map((each) => ({ ...each, applied: 0, replies: [] })) }, `,
      by: "adversity",
    },
  ]),
  ...inFile("apply.ts", [
    {
      name: "applied-twice",
      summary: "an operation that is proposed again is applied again",
      find: `if (first + at !== session.applied + 1) continue;`,
      replace: `if (first + at > session.applied + 1) continue;`,
      by: "adversity",
    },
  ]),
  ...inFile("keyspace/store.ts", [
    {
      name: "plain-put-stays-leased",
      summary: "a plain put to a leased key keeps the lease",
      find: `  attach(space, kv.key, prev?.lease ?? NO_LEASE, kv.lease);\n`,
      replace: `  if (kv.lease !== NO_LEASE) attach(space, kv.key, prev?.lease ?? NO_LEASE, kv.lease);\n`,
      by: "operations",
    },
    {
      name: "lease-stays-with-the-first",
      summary: "a leased put to the leased key of another session does not take over the lease",
      find: `  attach(space, kv.key, prev?.lease ?? NO_LEASE, kv.lease);\n`,
      replace: `  if (kv.lease === NO_LEASE || (prev?.lease ?? NO_LEASE) === NO_LEASE) attach(space, kv.key, prev?.lease ?? NO_LEASE, kv.lease);\n`,
      by: "operations",
    },
    {
      name: "discards-without-report",
      summary: "discarded changes are not reported as forgotten",
      find: `  space.trimmed = revision;\n`,
      replace: ``,
      by: "adversity",
    },
  ]),
  ...inFile("queues.ts", [
    {
      name: "put-back-in-reverse",
      summary: "items of a session that ended return to the queue in reverse order",
      find: `.sort((a, b) => a.id - b.id)`,
      replace: `.sort((a, b) => b.id - a.id)`,
      by: "operations",
    },
    {
      name: "finishes-the-item-of-another",
      summary: "a session can finish an item taken by another session",
      find: `item.token === operation.token && item.session === session);`,
      replace: `item.token === operation.token);`,
      by: "operations",
    },
  ]),
  ...inFile("barriers.ts", [
    {
      name: "arrives-twice",
      summary: "a repeated arrival counts as another party",
      find: `if (!barrier.arrivals.some((arrival) => arrival.session === session && arrival.wait === wait))`,
      replace: `if (known !== null || barrier.arrivals.length === 0)`,
      by: "operations",
    },
    {
      name: "ended-and-still-at-the-barrier",
      summary: "the end of a session does not withdraw its arrivals",
      find: `leave(on, name, (arrival) => arrival.session === session);`,
      replace: `leave(on, name, (arrival) => arrival.session === session && arrival.wait < 0);`,
      by: "operations",
    },
  ]),
  ...inFile("reads.ts", [
    {
      name: "reads-what-it-has",
      summary: "a read does not wait until its replica is up to date",
      find: `  ctx.emit({ type: "reading", read: readNumber(state) });`,
      replace: `  readAll(state, readNumber(state), retryMs, ctx);`,
      by: "adversity",
    },
  ]),
  ...inFile("grants.ts", [
    {
      name: "releases-by-name",
      summary: "a release does not check which session holds the grant",
      find: `(holder) => holder.token === token && holder.session === session);`,
      replace: `(holder) => holder.token >= token || holder.session === session);`,
      by: "operations",
    },
    {
      name: "acquired-twice",
      summary: "a session that repeats its request is granted the lock twice",
      find: `if (!lock.holders.some(isMine) && !lock.waiters.some(isMine)) {`,
      replace: `if (!lock.waiters.some(isMine)) {`,
      by: "operations",
    },
    {
      name: "writer-overtaken",
      summary: "a compatible request is granted although another one has waited longer",
      find: `    lock.waiters.push({ session, wait, mode, permits: mode === "exclusive" ? capacity : permits, note });`,
      replace: `    lock.waiters[mode === "shared" ? "unshift" : "push"]({ session, wait, mode, permits: mode === "exclusive" ? capacity : permits, note });`,
      by: "operations",
    },
  ]),
];

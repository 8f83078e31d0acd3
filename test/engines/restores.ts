/** The guarantees of an engine whose server is restored from an older backup, so that the last changes are lost. */
import { expect } from "vitest";
import type { EngineMember } from "../../src/index.ts";
import { eventually, type Network, type Time } from "./fenced-counter.ts";

export interface Restore {
  readonly name: string;
  check(stage: RestoreStage): Promise<void>;
}

export interface RestoreStage extends Time {
  /** Joins from another process. */
  join(sessionMs: number): Promise<EngineMember>;
  /** Joins from a process with its own network, which the test can cut. */
  joinBehind(sessionMs: number): Promise<{ readonly member: EngineMember; readonly network: Network }>;
  backUp(): Promise<void>;
  /** Restores the server to the last backup. */
  restore(): Promise<void>;
}

/** How long a restore takes at least: tokens may be two seconds behind the clock. */
export const RESTORING_MS = 2_500;
const SESSION_MS = 4_000;
/** For checks that do not wait for a session to end: the longest that ZooKeeper's servers grant. */
const LONG_SESSION_MS = 40_000;
/** More revisions than all checks together write after the restore. They share a server. */
const AHEAD = 1_000;
/** Calls wait until the server answers again. */
const SOON = { timeoutMs: 60_000 } as const;

interface Reading {
  readonly seen: unknown[];
  /** The error that ended the watch, or null while it runs. */
  readonly error: { readonly code: unknown } | null;
}

/** Reads a watch of a map until it ends. */
function reading(member: EngineMember, map: string, after?: number): Reading {
  const read: { seen: unknown[]; error: Reading["error"] } = { seen: [], error: null };
  const work = async (): Promise<void> => {
    for await (const change of member.map(map).watch(after === undefined ? {} : { after }))
      read.seen.push(change.type === "put" ? change.value : null);
  };
  work().catch((error: unknown) => {
    read.error = error as Reading["error"];
  });
  return read;
}

/** The first write after a restore may reject with `outcome-unknown`. It is then retried once. */
async function putAfterRestore(member: EngineMember, map: string, value: number): Promise<void> {
  const put = (): Promise<number> => member.map(map).put("k", value, SOON);
  await put().catch(async (error: unknown) => {
    expect(error).toMatchObject({ code: "outcome-unknown" });
    await put();
  });
}

async function putAll(member: EngineMember, map: string, from: number, to: number): Promise<number> {
  let revision = 0;
  for (let value = from; value <= to; value++) revision = await member.map(map).put("k", value, SOON);
  return revision;
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1);

export const restores: readonly Restore[] = [
  {
    name: "ends watches with `compacted` when the server is restored from a backup",
    async check(stage) {
      const { join, backUp, restore } = stage;
      const [a, b] = [await join(SESSION_MS), await join(SESSION_MS)];
      const first = await a.map("m").put("k", 0);
      await backUp();
      const read = reading(b, "m", first);
      const last = await putAll(a, "m", 1, 10);
      await eventually(stage, "to read all changes", () => read.seen.length === 10);
      await restore();
      await putAfterRestore(a, "m", 11);
      await eventually(stage, "to end the watch", () => read.error !== null);
      expect([read.seen, read.error]).toMatchObject([upTo(10), { code: "compacted" }]);
      const late = reading(a, "m", last + AHEAD);
      await eventually(stage, "to end a watch from a lost revision", () => late.error !== null);
      expect(late).toMatchObject({ seen: [], error: { code: "compacted" } });
      const { revision, entries } = await b.map("m").range(SOON);
      expect(entries).toMatchObject([{ key: "k", value: 11 }]);
      const next = reading(b, "m", revision);
      await putAll(a, "m", 12, 14);
      await eventually(stage, "to read new changes", () => next.seen.length === 3);
      expect(next.seen).toEqual([12, 13, 14]);
    },
  },
  {
    name: "ends the watch of a process that was cut off while others wrote more than the restore lost",
    async check(stage) {
      const { join, joinBehind, backUp, restore } = stage;
      const a = await join(SESSION_MS);
      const { member: b, network } = await joinBehind(SESSION_MS);
      const first = await a.map("m2").put("k", 0);
      await backUp();
      const read = reading(b, "m2", first);
      await putAll(a, "m2", 1, 5);
      await eventually(stage, "to read all changes", () => read.seen.length === 5);
      network.cut();
      await restore();
      await putAfterRestore(a, "m2", 6);
      await putAll(a, "m2", 7, 30);
      network.heal();
      network.reset();
      await eventually(stage, "to end the watch", () => read.error !== null);
      expect([read.seen, read.error]).toMatchObject([upTo(5), { code: "compacted" }]);
    },
  },
  {
    name: "ends the grants of a session at the first answer after a restore, and grants them again with a higher token",
    async check(stage) {
      const { join, backUp, restore } = stage;
      const [a, b] = [await join(SESSION_MS), await join(SESSION_MS)];
      await a.map("m3").put("k", 0);
      await backUp();
      const held = await a.mutex("l3").acquire();
      const permit = await a.semaphore("s3", { permits: 1 }).acquire();
      await putAll(a, "m3", 1, 20);
      await restore();
      const next = b.mutex("l3").acquire(SOON);
      await eventually(stage, "to lose its grants", () => !held.isHeld && !permit.isHeld);
      expect(held.signal.reason).toMatchObject({ code: "grant-lost" });
      const tokens = [held.token, (await next).token];
      await (await next).release(); // This grant may have been lost with its session, too.
      for (const member of [a, b]) await member.mutex("l3").use(({ token }) => void tokens.push(token), SOON);
      expect(tokens).toEqual([...new Set(tokens)].sort((x, y) => x - y));
      expect((await b.semaphore("s3", { permits: 1 }).acquire(SOON)).token).toBeGreaterThan(permit.token);
    },
  },
  {
    name: "gives a process that joins after a restore higher tokens than before",
    async check({ join, backUp, restore }) {
      const a = await join(SESSION_MS);
      await a.mutex("l4").use(() => {});
      await backUp();
      let before = 0;
      for (let round = 0; round < 10; round++) before = await a.mutex("l4").use(({ token }) => token);
      await a.leave();
      await restore();
      const b = await join(SESSION_MS);
      await b.mutex("l4").use(({ token }) => expect(token).toBeGreaterThan(before));
    },
  },
  {
    name: "does not let a new process share a session that a restore lost",
    async check(stage) {
      const { join, joinBehind, backUp, restore } = stage;
      await backUp();
      const { member: a, network } = await joinBehind(LONG_SESSION_MS);
      const held = await a.mutex("l5").acquire();
      network.cut();
      await restore();
      const others = [await join(LONG_SESSION_MS), await join(LONG_SESSION_MS), await join(LONG_SESSION_MS)];
      const next = await (others[0] as EngineMember).mutex("l5").acquire(SOON);
      network.heal();
      network.reset();
      await eventually(stage, "to lose its grants", () => !held.isHeld);
      expect([next.isHeld, next.token > held.token]).toEqual([true, true]);
    },
  },
  {
    name: "ends a leadership that a restore lost, and the next one has a higher token",
    async check(stage) {
      const { join, backUp, restore } = stage;
      const [a, b] = [await join(SESSION_MS), await join(SESSION_MS)];
      await a.map("m6").put("k", 0);
      await backUp();
      const terms: { readonly of: string; readonly token: number; readonly signal: AbortSignal }[] = [];
      const over = new AbortController();
      /** Leads until the end of the check. If the check fails, the member leaves. */
      const lead = (member: EngineMember, of: string): Promise<void> =>
        member
          .election("chief")
          .lead(
            async ({ token, signal }) => {
              terms.push({ of, token, signal });
              await new Promise((resolve) => signal.addEventListener("abort", resolve));
            },
            { signal: over.signal },
          )
          .catch(() => {});
      const leading = [lead(a, "a")];
      await eventually(stage, "to lead", () => terms.length === 1);
      await putAll(a, "m6", 1, 10);
      leading.push(lead(b, "b"));
      await restore();
      await eventually(stage, "to lose the leadership", () => terms[0]?.signal.aborted === true);
      await eventually(stage, "to lead again", () => terms.length === 2);
      expect(terms[1]?.token).toBeGreaterThan(terms[0]?.token as number);
      over.abort();
      await Promise.all(leading);
    },
  },
];

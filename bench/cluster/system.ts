/** What is measured, ours or a peer's: members on loopback that keep what they are given on disk. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Throughput } from "../load.ts";

export type Work =
  | "write"
  | "read"
  | "lock"
  /** One write through the leader after the other, each timed until a watcher at another member has it. */
  | "watch";
/** Of etcd's API also reads that may be late, and locks that each have a session of their own. */
export type EtcdWork = Work | "serializable-read" | "session-lock";

export interface System<W = Work> {
  readonly name: string;
  /** False: it cannot do `watch`. */
  readonly hasWatches?: boolean;
  /** A number of clients at the leader, each with one request under way. */
  load(work: W, inFlight: number, ms: number): Promise<Throughput>;
  /** Of all members together. */
  residentBytes(): number;
}

/** With members of which one leads. */
export interface LedSystem extends System {
  readonly members: readonly string[];
  /** The member that leads, once one does. */
  leader(): Promise<string>;
  /** One write through that member. @returns whether it was accepted in time. */
  write(member: string, timeoutMs: number): Promise<boolean>;
  signal(member: string, signal: NodeJS.Signals): void;
  /** A member that was killed runs again. */
  restart(member: string): Promise<void>;
}

const WRITE_EVERY_MS = 10;
/** A write that has no answer by then is given up; others are on their way. */
const WRITE_MS = 2_000;
const PATIENCE_MS = 30_000;

/** From the signal to the leader until a write through another member is accepted, in milliseconds. */
export async function failOver(system: LedSystem, signal: "SIGKILL" | "SIGSTOP"): Promise<number> {
  const leader = await system.leader();
  const others = system.members.filter((member) => member !== leader);
  for (const member of others) await system.write(member, WRITE_MS); // All connections are open.
  const began = performance.now();
  system.signal(leader, signal);
  const took = await firstAccepted(system, others, began);
  if (signal === "SIGSTOP") system.signal(leader, "SIGCONT");
  else await system.restart(leader);
  await system.leader();
  return took;
}

async function firstAccepted(system: LedSystem, members: readonly string[], began: number): Promise<number> {
  let took: number | null = null;
  const writes: Promise<void>[] = [];
  while (took === null) {
    if (performance.now() - began > PATIENCE_MS)
      throw new Error(`${system.name} has accepted no write within ${PATIENCE_MS} ms`);
    for (const member of members)
      writes.push(
        system.write(member, WRITE_MS).then((isAccepted) => {
          if (isAccepted) took ??= performance.now() - began;
        }),
      );
    await sleep(WRITE_EVERY_MS);
  }
  await Promise.all(writes);
  return took;
}

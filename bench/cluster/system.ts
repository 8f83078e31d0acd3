/** A measured system, ours or a peer's: members on loopback with durable data. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Throughput } from "../load.ts";

export type Work =
  | "write"
  | "read"
  | "lock"
  /** Writes through the leader one after the other, each timed until a watcher at another member has it. */
  | "watch";
/** For etcd's API: also possibly stale reads, and locks with a session each. */
export type EtcdWork = Work | "serializable-read" | "session-lock";

export interface System<W = Work> {
  readonly name: string;
  /** False if it does not support `watch`. */
  readonly hasWatches?: boolean;
  /** Several clients at the leader, each with one request in flight. */
  load(work: W, inFlight: number, ms: number): Promise<Throughput>;
  /** The total of all members. */
  residentBytes(): number;
}

/** A system whose members elect a leader. */
export interface LedSystem extends System {
  readonly members: readonly string[];
  /** Waits for a leading member. */
  leader(): Promise<string>;
  /** One write through that member. @returns whether it was accepted in time */
  write(member: string, timeoutMs: number): Promise<boolean>;
  signal(member: string, signal: NodeJS.Signals): void;
  /** Restarts a killed member. */
  restart(member: string): Promise<void>;
}

const WRITE_EVERY_MS = 10;
/** A write without an answer is given up after this time. Others are in flight meanwhile. */
const WRITE_MS = 2_000;
const PATIENCE_MS = 30_000;

/** From the signal to the leader until a write through another member is accepted, in milliseconds. */
export async function failOver(system: LedSystem, signal: "SIGKILL" | "SIGSTOP"): Promise<number> {
  const leader = await system.leader();
  const others = system.members.filter((member) => member !== leader);
  for (const member of others) await system.write(member, WRITE_MS); // Opens all connections.
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

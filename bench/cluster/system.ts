/** A measured system, either ours or a peer's: members on loopback with durable data. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Throughput } from "../load.ts";

export type Work =
  | "write"
  | "read"
  | "lock"
  /** Sequential writes through the leader, each timed until a watcher on another member receives it. */
  | "watch";
/** Work for etcd's API, which also includes reads that may be stale, and locks with one session each. */
export type EtcdWork = Work | "serializable-read" | "session-lock";

export interface System<W = Work> {
  readonly name: string;
  /** Whether it supports `watch`. Default: true. */
  readonly hasWatches?: boolean;
  /** Runs `inFlight` clients against the leader, each with one request in flight. */
  load(work: W, inFlight: number, ms: number): Promise<Throughput>;
  /** Returns the total resident memory of all members. */
  residentBytes(): number;
}

/** A system whose members elect a leader. */
export interface LedSystem extends System {
  readonly members: readonly string[];
  /** Waits for a member that is the leader. */
  leader(): Promise<string>;
  /**
   * Sends a single write through a member.
   * @returns whether it was accepted in time
   */
  write(member: string, timeoutMs: number): Promise<boolean>;
  signal(member: string, signal: NodeJS.Signals): void;
  /** Restarts a killed member. */
  restart(member: string): Promise<void>;
}

const WRITE_EVERY_MS = 10;
/** The timeout for a write. Other writes are in flight at the same time. */
const WRITE_MS = 2_000;
const PATIENCE_MS = 30_000;

/**
 * Measures the time in milliseconds from when the leader is signaled until a write through another member is accepted.
 */
export async function failOver(system: LedSystem, signal: "SIGKILL" | "SIGSTOP"): Promise<number> {
  const leader = await system.leader();
  const others = system.members.filter((member) => member !== leader);
  for (const member of others) await system.write(member, WRITE_MS); // This opens all connections.
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

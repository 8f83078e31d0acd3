/** What is measured, ours or a peer: members on loopback that keep what they are given on disk. */
export type Work =
  | "write"
  | "read"
  | "lock"
  /** One write through the leader after the other, each timed until a watcher at another member has it. */
  | "watch";
/** Of etcd's API also reads that may be late, and locks that each have a session of their own. */
export type EtcdWork = Work | "serializable-read" | "session-lock";

/** Of one round: `p50` and `p99` in milliseconds. */
export interface Throughput {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly errors: number;
}

export interface Loaded<W = Work> {
  readonly name: string;
  /** False: it cannot do `watch`. */
  readonly hasWatches?: boolean;
  /** So many clients at the leader, each with one request under way, for so long. */
  load(work: W, inFlight: number, ms: number): Promise<Throughput>;
  /** Of all members together. */
  residentBytes(): number;
  end(): void;
}

/** With its members: who leads, and what becomes of writes where one of them fails. */
export interface Subject extends Loaded {
  readonly members: readonly string[];
  /** Who leads, once somebody does. */
  leader(among?: readonly string[]): Promise<string>;
  /** One write through that member. @returns whether it was accepted in time. */
  write(member: string, timeoutMs: number): Promise<boolean>;
  signal(member: string, signal: NodeJS.Signals): void;
  /** One that was killed runs again. */
  startAgain(member: string): Promise<void>;
}

/** Looks now and then until somebody leads. */
export async function untilLed(name: string, look: () => Promise<string | null>): Promise<string> {
  const until = performance.now() + PATIENCE_MS;
  while (performance.now() < until) {
    const leader = await look();
    if (leader !== null) return leader;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  throw new Error(`${name} has no leader within ${PATIENCE_MS} ms`);
}

const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 20;

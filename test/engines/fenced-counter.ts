/**
 * Three processes increment a counter under a lock: each reads the counter and writes the value plus one, with its
 * token. A write is accepted only if its token is not lower than any before. One process is killed and replaced. One is
 * paused past its session and one is cut off, both between their read and their write, which arrives late and must be
 * rejected. All connections are reset, and the engine is paused, killed and restarted. If two processes had held the
 * lock at once, or a stale write had been accepted, the count would be too low.
 */
import { guard, StaleToken } from "../../src/index.ts";
import { PATIENCE_MS } from "../patience.ts";

export const SESSION_MS = 3_000;

/** The process that is killed, paused and restarted: one server, or the leader among several. */
export interface Away {
  pause(): void | Promise<void>;
  resume(): void;
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** The network between a process and the engine. */
export interface Network {
  cut(): void;
  heal(): void;
  reset(): void;
}

/** Real or virtual time. */
export interface Time {
  now(): number;
  sleep(ms: number): Promise<void>;
}

/**
 * A request of a process with its token: a read if `value` is null, otherwise a write. If the token is stale, the
 * answer is -1.
 */
export interface Asked {
  readonly token: number;
  readonly value: number | null;
  answer(value: number): void;
}

export interface CountingProcess {
  readonly network: Network;
  kill(): void;
  stop(): void;
  goOn(): void;
}

export interface CounterStage extends Time {
  readonly server: Away;
  begin(hear: (asked: Asked) => void): Promise<CountingProcess>;
}

export interface Counted {
  readonly value: number;
  readonly accepted: number;
  /** The writes whose token was too low: of the paused process, and of the one that was cut off. */
  readonly stale: readonly [number, number];
  readonly kills: number;
}

interface Counting extends CountingProcess {
  stale: number;
  /** Called at the next read of this process, with the function that answers the read. */
  onRead: ((answer: () => void) => void) | null;
}

/** Resolves when the process holds the lock and has read the counter. @returns the function that answers the read. */
const inside = (counting: Counting): Promise<() => void> =>
  new Promise((resolve) => {
    counting.onRead = resolve;
  });

export async function eventually({ now, sleep }: Time, what: string, isSo: () => boolean): Promise<void> {
  const until = now() + PATIENCE_MS;
  while (!isSo()) {
    if (now() > until) throw new Error(`${what}: not in ${PATIENCE_MS} ms`);
    await sleep(20);
  }
}

export async function fencedCounter(stage: CounterStage): Promise<Counted> {
  const { server, sleep } = stage;
  const counted = { value: 0, accepted: 0, kills: 0 };
  const accept = guard();
  const hear = (counting: { stale: number; onRead: Counting["onRead"] }, { token, value, answer }: Asked): void => {
    try {
      accept(token);
    } catch (error) {
      if (!(error instanceof StaleToken)) throw error;
      counting.stale += 1;
      return answer(-1);
    }
    if (value !== null) {
      counted.accepted += 1;
      counted.value = value;
    }
    const read = counted.value;
    const { onRead } = counting;
    if (value !== null || onRead === null) return answer(read);
    counting.onRead = null;
    onRead(() => answer(read));
  };
  const all: Counting[] = [];
  const begin = async (): Promise<Counting> => {
    const seen = { stale: 0, onRead: null };
    const counting: Counting = Object.assign(seen, await stage.begin((asked) => hear(seen, asked)));
    all.push(counting);
    return counting;
  };
  const more = (by = 3): Promise<void> => {
    const wanted = counted.accepted + by;
    return eventually(stage, `to count up to ${wanted}`, () => counted.accepted >= wanted);
  };
  try {
    const [killed, paused, cutOff] = [await begin(), await begin(), await begin()];
    await more(10);
    killed.kill();
    await begin();
    counted.kills += 1;
    await more();
    const answerPaused = await inside(paused);
    paused.stop();
    await sleep(1.5 * SESSION_MS);
    await more();
    answerPaused();
    paused.goOn();
    await eventually(stage, "to write the value it read before its pause", () => paused.stale > 0);
    await more();
    const answerCutOff = await inside(cutOff);
    cutOff.network.cut();
    await sleep(1.5 * SESSION_MS);
    await more();
    answerCutOff();
    await eventually(stage, "to write the value it read before it was cut off", () => cutOff.stale > 0);
    cutOff.network.heal();
    await more();
    for (const { network } of all) network.reset();
    await more();
    await server.pause();
    await sleep(SESSION_MS / 2);
    server.resume();
    await more();
    await server.kill();
    await server.start();
    counted.kills += 1;
    await more(10);
    return { ...counted, stale: [paused.stale, cutOff.stale] };
  } finally {
    for (const counting of all) counting.kill();
  }
}

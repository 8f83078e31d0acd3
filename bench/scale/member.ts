/** A process started by `coterie bench scale`: joins a cluster, and writes, reads and watches many keys. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { join } from "../../src/cluster/join.ts";
import type { Member } from "../../src/cluster/services/api.ts";
import { loadOf, type Throughput, throughputOf } from "../load.ts";
import { serve, sharedNowMs } from "../workers.ts";

export interface MemberOptions {
  readonly id: number;
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
  /** Whether the member joins a cluster that others have founded. */
  readonly existing: boolean;
}

/** The throughput of some work, and the longest time for which it blocked the event loop, in milliseconds. */
export interface Work extends Throughput {
  readonly longestStallMs: number;
}

const VALUE = "x".repeat(1_024);
const NS_PER_MS = 1e6;
/** The longest wait for a member that reads a large journal or a large snapshot. */
const PATIENCE_MS = 600_000;

export type Calls = ReturnType<typeof callsOf>;

function callsOf(ready: Promise<Member>) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();

  async function measured(work: (member: Member) => Promise<Throughput>): Promise<Work> {
    const member = await ready;
    delay.reset();
    const throughput = await work(member);
    return { ...throughput, longestStallMs: delay.max / NS_PER_MS };
  }

  return {
    /** Waits until the member answers a linearizable read, and returns that time on the clock that all processes share. */
    async answers(): Promise<number> {
      const member = await ready;
      await member.map("scale").get("0", { timeoutMs: PATIENCE_MS });
      return sharedNowMs();
    },
    async isLeader(): Promise<boolean> {
      const member = await ready;
      return member.status().leader === member.id;
    },
    /** Writes keys with the numbers from `from` up to `to`, each of 1 KiB. */
    fill: (from: number, to: number, inFlight: number): Promise<Work> =>
      measured((member) => {
        const map = member.map<string>("scale");
        let next = from;
        return timed(inFlight, () => (next < to ? map.put(String(next++), VALUE) : null));
      }),
    /** Overwrites keys below `count` for some time. */
    overwrite: (count: number, inFlight: number, ms: number): Promise<Work> =>
      measured((member) => {
        const map = member.map<string>("scale");
        let next = 0;
        return loadOf(inFlight, ms, () => map.put(String(next++ % count), VALUE));
      }),
    /** Acquires locks with different names and keeps them. */
    lock: (count: number, inFlight: number): Promise<Work> =>
      measured((member) => {
        let next = 0;
        return timed(inFlight, () => (next < count ? member.mutex(`lock-${next++}`).acquire() : null));
      }),
    async watch(count: number): Promise<void> {
      const member = await ready;
      const map = member.map<string>("watched");
      for (let number = 0; number < count; number++) void first(map.watch({ prefix: `${number}/` }));
    },
    async add(id: number, address: string): Promise<void> {
      await (await ready).cluster.add({ id, address });
    },
    async settled(): Promise<number> {
      await (await ready).cluster.settled({ timeoutMs: PATIENCE_MS });
      return sharedNowMs();
    },
  };
}

async function first(changes: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of changes) return;
}

/** Generates load until there is nothing left to do. @param request begins the next request; null if there is none */
async function timed(inFlight: number, request: () => Promise<unknown> | null): Promise<Throughput> {
  const took: number[] = [];
  const began = performance.now();
  const client = async (): Promise<void> => {
    for (;;) {
      const since = performance.now();
      const next = request();
      if (next === null) return;
      await next;
      took.push(performance.now() - since);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  return throughputOf(took, performance.now() - began);
}

const { id, members, dataDir, existing } = JSON.parse(process.argv[2] as string) as MemberOptions;
serve(callsOf(join({ id, members, dataDir, existing, tls: "off" })));

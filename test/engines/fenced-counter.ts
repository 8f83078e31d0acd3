/**
 * Three processes count under a lock: each reads the counter and writes one more, with its token, and what is written is taken only
 * with a token that is not lower than any before. One is killed and another started; one is paused past its session, and one cut off,
 * both between their read and their write, which comes late and has to be turned away; all connections are reset, the engine is paused,
 * killed and started again. If two had been inside at once, or a stale one had been let in, less would have been counted than written.
 */
import { type ChildProcess, fork } from "node:child_process";
import { guard, StaleToken } from "../../../src/index.ts";
import type { Served } from "./servers.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const SESSION_MS = 3_000;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface Counted {
  readonly value: number;
  readonly accepted: number;
  /** What came with a token that was too low: of the one that was paused, and of the one that was cut off. */
  readonly stale: readonly [number, number];
  readonly kills: number;
}

/** A process, and what is between it and the servers. */
interface Counting {
  readonly child: ChildProcess;
  readonly network: readonly TcpProxy[];
  stale: number;
  /** Of its next read, which is not answered before what it is given is called. */
  onRead: ((answer: () => void) => void) | null;
}

/** Resolves when it holds the lock and has asked what it is to write one more than. @returns what answers it. */
const inside = (counting: Counting): Promise<() => void> =>
  new Promise((resolve) => {
    counting.onRead = resolve;
  });

export async function fencedCounter(engine: string, server: Served): Promise<Counted> {
  const counted = { value: 0, accepted: 0, kills: 0 };
  const accept = guard();
  const serve = (counting: Counting): void => {
    const { child } = counting;
    child.on("message", ({ id, token, value }: { id: number; token: number; value: number | null }) => {
      try {
        accept(token);
        if (value !== null) {
          counted.accepted += 1;
          counted.value = value;
        }
        const read = counted.value;
        const answer = (): void => void child.send({ id, value: read });
        const { onRead } = counting;
        if (value !== null || onRead === null) return answer();
        counting.onRead = null;
        onRead(answer);
      } catch (error) {
        if (!(error instanceof StaleToken)) throw error;
        counting.stale += 1;
        child.send({ id, value: -1 });
      }
    });
  };
  const begin = async (): Promise<Counting> => {
    const script = new URL("counting-process.ts", import.meta.url);
    const network = await Promise.all(server.ports.map((port) => TcpProxy.start(port)));
    const ports = network.map(({ port }) => port);
    const child = fork(script, [engine, ports.join(",")], { execArgv: ["--import", "tsx"] });
    const counting: Counting = { child, network, stale: 0, onRead: null };
    serve(counting);
    return counting;
  };
  const eventually = async (what: string, isSo: () => boolean): Promise<void> => {
    const until = performance.now() + 90_000;
    while (!isSo()) {
      if (performance.now() > until) throw new Error(`${what}: not in 90 s`);
      await sleep(20);
    }
  };
  const more = (by = 3): Promise<void> => {
    const wanted = counted.accepted + by;
    return eventually(`to count up to ${wanted}`, () => counted.accepted >= wanted);
  };
  const all = [await begin(), await begin(), await begin()];
  const [killed, paused, cutOff] = all as [Counting, Counting, Counting];
  try {
    await more(10);
    killed.child.kill("SIGKILL");
    all.push(await begin());
    counted.kills += 1;
    await more();
    const answerPaused = await inside(paused);
    paused.child.kill("SIGSTOP");
    await sleep(1.5 * SESSION_MS);
    await more();
    answerPaused();
    paused.child.kill("SIGCONT");
    await eventually("to write what it read before its pause", () => paused.stale > 0);
    await more();
    const answerCutOff = await inside(cutOff);
    for (const proxy of cutOff.network) proxy.cut();
    await sleep(1.5 * SESSION_MS);
    await more();
    answerCutOff();
    await eventually("to write what it read before it was cut off", () => cutOff.stale > 0);
    for (const proxy of cutOff.network) proxy.heal();
    await more();
    for (const { network } of all) for (const proxy of network) proxy.reset();
    await more();
    await server.pause();
    await sleep(SESSION_MS / 2);
    server.resume();
    await more();
    await server.kill();
    await server.start();
    counted.kills += 1;
    await more(10);
  } finally {
    for (const { child } of all) child.kill("SIGKILL");
    await Promise.all(all.flatMap(({ network }) => network.map((proxy) => proxy.close())));
  }
  return { ...counted, stale: [paused.stale, cutOff.stale] };
}

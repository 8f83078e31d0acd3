/**
 * Three processes count under a lock: each reads the counter and writes one more, with its token, and what is written is taken only
 * with a token that is not lower than any before. One is killed and another started, one is paused past its session, one is cut off
 * past its session, all connections are reset, the engine is paused, killed and started again. If two had been inside at once, or a stale one had been let in, less would have been counted than written.
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
  readonly stale: number;
  readonly kills: number;
}

/** A process, and what is between it and the servers. */
interface Counting {
  readonly child: ChildProcess;
  readonly network: readonly TcpProxy[];
}

export async function fencedCounter(engine: string, server: Served): Promise<Counted> {
  const counted = { value: 0, accepted: 0, stale: 0, kills: 0 };
  const accept = guard();
  const serve = (child: ChildProcess): void => {
    child.on("message", ({ id, token, value }: { id: number; token: number; value: number | null }) => {
      try {
        accept(token);
        if (value !== null) {
          counted.accepted += 1;
          counted.value = value;
        }
        child.send({ id, value: counted.value });
      } catch (error) {
        if (!(error instanceof StaleToken)) throw error;
        counted.stale += 1;
        child.send({ id, value: -1 });
      }
    });
  };
  const begin = async (): Promise<Counting> => {
    const script = new URL("counting-process.ts", import.meta.url);
    const network = await Promise.all(server.ports.map((port) => TcpProxy.start(port)));
    const ports = network.map(({ port }) => port);
    const child = fork(script, [engine, ports.join(",")], { execArgv: ["--import", "tsx"] });
    serve(child);
    return { child, network };
  };
  const more = async (by = 3): Promise<void> => {
    const before = counted.accepted;
    const until = performance.now() + 90_000;
    while (counted.accepted < before + by) {
      if (performance.now() > until) throw new Error(`nobody counted on from ${counted.accepted}`);
      await sleep(20);
    }
  };
  const all = [await begin(), await begin(), await begin()];
  try {
    await more(10);
    all[0]?.child.kill("SIGKILL");
    all.push(await begin());
    counted.kills += 1;
    await more();
    all[1]?.child.kill("SIGSTOP");
    await sleep(1.5 * SESSION_MS);
    await more();
    all[1]?.child.kill("SIGCONT");
    await more();
    for (const proxy of all[2]?.network ?? []) proxy.cut();
    await sleep(1.5 * SESSION_MS);
    await more();
    for (const proxy of all[2]?.network ?? []) proxy.heal();
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
  return counted;
}

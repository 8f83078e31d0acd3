/** Counting with real processes: each has its own process, and a network between it and the servers. */
import { fork } from "node:child_process";
import type { CounterStage } from "../fenced-counter.ts";
import type { Served } from "./servers.ts";
import { TcpProxy } from "./tcp-proxy.ts";

export const realTime = {
  now: (): number => performance.now(),
  sleep: (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
};

/** @param engine a name in `realEngines` */
export const realCounting = (engine: string, server: Served): CounterStage => ({
  ...realTime,
  server,
  async begin(hear) {
    const script = new URL("counting-process.ts", import.meta.url);
    const proxies = await Promise.all(server.ports.map((port) => TcpProxy.start(port)));
    const ports = proxies.map(({ port }) => port);
    const child = fork(script, [engine, ports.join(",")], { execArgv: ["--import", "tsx"] });
    child.on("message", ({ id, token, value }: { id: number; token: number; value: number | null }) =>
      hear({ token, value, answer: (answer) => void child.send({ id, value: answer }) }),
    );
    const each = (work: (proxy: TcpProxy) => void) => (): void => proxies.forEach(work);
    return {
      network: {
        cut: each((proxy) => proxy.cut()),
        heal: each((proxy) => proxy.heal()),
        reset: each((proxy) => proxy.reset()),
      },
      kill() {
        child.kill("SIGKILL");
        for (const proxy of proxies) void proxy.close();
      },
      stop: () => void child.kill("SIGSTOP"),
      goOn: () => void child.kill("SIGCONT"),
    };
  },
});

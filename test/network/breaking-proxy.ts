/** A TCP proxy whose connections can be broken. Data in transit is lost, as when a cable is unplugged. */
import { connect, createServer, type Server, type Socket } from "node:net";

export interface BreakingProxy {
  /** The number of open connections through the proxy. */
  readonly connections: number;
  /** Breaks every connection in both directions. */
  breakAll(): void;
  /** Stops or resumes reading from the end that dialed. */
  pause(paused: boolean): void;
  close(): Promise<void>;
}

export async function breakingProxy(port: number, targetPort: number): Promise<BreakingProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isPaused = false;
  const server: Server = createServer((inner) => {
    const outer = connect(targetPort, "127.0.0.1");
    const pair = [inner, outer] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [outer, inner] as const]) {
      from.setNoDelay(true);
      from.on("error", () => {}); // `close` follows.
      from.on("close", () => {
        to.destroy();
        pairs.delete(pair);
      });
      from.pipe(to);
    }
    if (isPaused) stop(inner, outer);
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const breakAll = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
  };
  return {
    get connections() {
      return pairs.size;
    },
    breakAll,
    pause(paused) {
      isPaused = paused;
      for (const [inner, outer] of pairs) {
        if (paused) stop(inner, outer);
        else inner.pipe(outer);
      }
    },
    close() {
      breakAll();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function stop(inner: Socket, outer: Socket): void {
  inner.unpipe(outer);
  inner.pause();
}

/**
 * A network between a process and a server. The network can be cut, so that data is dropped without an error, and its
 * connections can be reset. A connection that existed during a cut stays dead, as behind a firewall that has dropped
 * its state. Later ones work.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** Data that is delayed: the first matching data, and everything after it. */
interface Holding {
  readonly isMeant: (data: Buffer) => boolean;
  begun(): void;
  /** Null before the first delayed data. */
  waiting: (() => void)[] | null;
}

interface Pair {
  readonly ends: readonly [Socket, Socket];
  isDead: boolean;
}

export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isCut = false;
  #holding: Holding | null = null;

  private constructor(to: number) {
    this.#server = createServer((near) => this.#join(near, connect(to, "127.0.0.1")));
  }

  static async start(to: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(to);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  cut(): void {
    this.#isCut = true;
    for (const pair of this.#pairs) pair.isDead = true;
  }

  heal(): void {
    this.#isCut = false;
  }

  /** Resolves when the process has sent matching data, which is delayed until `release`. */
  hold(isMeant: (data: Buffer) => boolean): Promise<void> {
    return new Promise((begun) => {
      this.#holding = { isMeant, begun, waiting: null };
    });
  }

  release(): void {
    const { waiting } = this.#holding ?? {};
    this.#holding = null;
    for (const pass of waiting ?? []) pass();
  }

  /** @returns whether the data is delayed */
  #isHeld(data: Buffer, pass: () => void): boolean {
    const holding = this.#holding;
    if (holding === null || (holding.waiting === null && !holding.isMeant(data))) return false;
    if (holding.waiting === null) holding.begun();
    holding.waiting = [...(holding.waiting ?? []), pass];
    return true;
  }

  reset(): void {
    for (const { ends } of this.#pairs) for (const end of ends) end.resetAndDestroy();
  }

  close(): Promise<void> {
    this.reset();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #join(near: Socket, far: Socket): void {
    const pair: Pair = { ends: [near, far], isDead: this.#isCut };
    this.#pairs.add(pair);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.setNoDelay(true);
      from.on("data", (data: Buffer) => {
        const pass = (): void => {
          if (!pair.isDead && to.writable) to.write(data);
        };
        if (from !== near || !this.#isHeld(data, pass)) pass();
      });
      from.on("error", () => {});
      // The close is dropped as well.
      from.on("close", () => {
        this.#pairs.delete(pair);
        if (!pair.isDead) to.destroy();
      });
    }
  }
}

/** The processes of the benchmark, and what is asked of all of them at once. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Answers, Ask, Being } from "./orders.ts";

/** As compiled, or as it stands. */
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const memberFile = fileURLToPath(new URL(`../multicast-member${extension}`, import.meta.url));
/** Far more than any step takes. */
const PATIENCE_MS = 120_000;

export class Group {
  readonly #children: ChildProcess[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-bench-"));

  /** Starts so many members and waits until they have joined. */
  static async of(size: number): Promise<Group> {
    const group = new Group();
    const ports = await freePorts(2 * size + 1);
    const members = Object.fromEntries(Array.from({ length: size }, (_, self) => [self, `127.0.0.1:${ports[self]}`]));
    const multicast = { group: "239.192.7.9", port: ports[2 * size] as number, interface: "127.0.0.1" };
    const barePorts = ports.slice(size, 2 * size);
    for (let self = 0; self < size; self++) {
      const being: Being = { self, members, dataDir: join(group.#folder, String(self)), multicast, barePorts };
      group.#children.push(fork(memberFile, [JSON.stringify(being)]));
    }
    await Promise.all(group.#children.map((child) => answered(child)));
    return group;
  }

  get size(): number {
    return this.#children.length;
  }

  /** Asks every member, and gives what each answers. */
  all<A extends Ask["ask"]>(of: (self: number) => Extract<Ask, { ask: A }>): Promise<Answers[A][]> {
    return Promise.all(
      this.#children.map(async (child, self) => {
        const answer = answered(child);
        child.send(of(self));
        return (await answer) as Answers[A];
      }),
    );
  }

  async end(): Promise<void> {
    await Promise.all(
      this.#children.map((child) => {
        const gone = new Promise((resolve) => child.once("exit", resolve));
        child.disconnect();
        return gone;
      }),
    );
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function answered(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`a member has not answered for ${PATIENCE_MS} ms`)), PATIENCE_MS);
    const gone = (code: number | null): void => settle(() => reject(new Error(`a member ended with code ${code}`)));
    const said = (it: { answer?: unknown; error?: string }): void =>
      settle(() => (it.error === undefined ? resolve(it.answer) : reject(new Error(it.error))));
    const settle = (end: () => void): void => {
      clearTimeout(timer);
      child.off("exit", gone).off("message", said);
      end();
    };
    child.once("exit", gone).once("message", said);
  });
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) => {
          server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

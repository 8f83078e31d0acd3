/**
 * Starts members of a cluster in this process, each with its own folder. They are stopped and their folders removed
 * when the test ends.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "../../src/cluster/join.ts";
import type { JoinOptions, Member } from "../../src/cluster/services/api.ts";
import type { Log } from "../../src/runtime/log.ts";
import { freePorts } from "./free-ports.ts";

export interface Cluster {
  readonly members: Readonly<Record<number, string>>;
  /** Starts or restarts a member. Ids start at 1. */
  start(id: number, options?: Partial<JoinOptions>): Promise<Member>;
  /** All of the members' log lines. */
  readonly lines: string[];
  close(): Promise<void>;
}

/** @param options options for all members. Each member gets its own `dataDir`, unless `dataDir` is set to undefined. */
export async function cluster(size: number, options: Partial<JoinOptions> = {}): Promise<Cluster> {
  const ports = await freePorts(size);
  const members = Object.fromEntries(ports.map((port, index) => [index + 1, `127.0.0.1:${port}`]));
  const folder = mkdtempSync(path(tmpdir(), "coterie-joined-"));
  const running = new Set<Member>();
  const lines: string[] = [];
  const say = (text: string): void => void lines.push(text);
  const log: Log = { info() {}, warn: say, error: say, once: (_key, text) => say(text) };
  return {
    members,
    lines,
    async start(id, more = {}) {
      const member = await join({ id, members, dataDir: path(folder, String(id)), log, ...options, ...more });
      running.add(member);
      return member;
    },
    async close() {
      await Promise.all([...running].map((member) => member.leave()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const startAll = ({ members, start }: Cluster): Promise<Member[]> =>
  Promise.all(Object.keys(members).map((id) => start(Number(id))));

/** Starts all members once. The first start of a cluster needs all of them; after that, a majority is enough. */
export async function meetOnce({ members, start }: Cluster): Promise<void> {
  const alone = { multicast: undefined, admin: undefined };
  const all = await Promise.all(Object.keys(members).map((id) => start(Number(id), alone)));
  while (all.some((member) => member.status().awaited.length > 0)) await sleep(5);
  await Promise.all(all.map((member) => member.leave()));
}

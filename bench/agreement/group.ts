/** Members that run a replicated log, each `coterie node` in a process of its own, and clients that ask them over HTTP. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { protocolNamed } from "../../src/protocols/index.ts";
import { makeKeys, needsKeys } from "../../src/runtime/member-keys.ts";
import { median } from "../figures.ts";
import { freePorts } from "../multicast/group.ts";

const command = fileURLToPath(new URL("../../../dist/cli/coterie.js", import.meta.url));
/** Far more than any step takes. */
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 50;
/** So long clients ask before the leader is killed. */
const LOADED_MS = 500;

export interface Load {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

export class AgreementGroup {
  readonly #protocol: string;
  /** Those that have not ended yet, for Ctrl-C. */
  static readonly #all = new Set<AgreementGroup>();

  readonly ids: readonly number[];
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-agreement-"));
  readonly #children: ChildProcess[] = [];
  readonly #admin: readonly string[];

  private constructor(protocol: string, nodes: number, ports: readonly number[]) {
    this.#protocol = protocol;
    this.ids = Array.from({ length: nodes }, (_, at) => at + 1);
    this.#admin = this.ids.map((id) => `127.0.0.1:${ports[nodes + id - 1]}`);
    const config = join(this.#folder, "coterie.json");
    const keys = { own: join(this.#folder, "{id}.key"), all: join(this.#folder, "{id}.pub") };
    const signs = needsKeys(protocolNamed(protocol).node());
    if (signs) makeKeys(keys, this.ids);
    const members = Object.fromEntries(
      this.ids.map((id) => [id, { address: `127.0.0.1:${ports[id - 1]}`, admin: this.#admin[id - 1] }]),
    );
    const options = { machine: { kind: "counter" } };
    const fields = { cluster: "bench", protocol, dataDir: "journal-{id}", members, options };
    writeFileSync(config, JSON.stringify({ ...fields, ...(signs ? { keys } : {}) }));
    AgreementGroup.#all.add(this);
    for (const id of this.ids)
      this.#children.push(
        spawn(process.execPath, [command, "node", "--id", String(id), "--config", config], { stdio: "ignore" }),
      );
  }

  /** Resolves once every member answers. */
  static async of(protocol: string, nodes: number): Promise<AgreementGroup> {
    const group = new AgreementGroup(protocol, nodes, await freePorts(2 * nodes));
    const until = performance.now() + PATIENCE_MS;
    for (const id of group.ids)
      while (!(await group.#ask(id).catch(() => false))) {
        if (performance.now() > until) throw new Error(`member ${id} of ${protocol} has not answered`);
        await sleep(LOOK_EVERY_MS);
      }
    return group;
  }

  static endAll(): void {
    for (const group of AgreementGroup.#all) group.end();
  }

  /** Who leads, or is the primary, in the eyes of the first member. */
  async leader(): Promise<number> {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until) {
      const answer = await fetch(`http://${this.#admin[0]}/status`);
      const { leader } = (await answer.json()) as { leader: number | null };
      if (leader !== null) return leader;
      await sleep(LOOK_EVERY_MS);
    }
    throw new Error(`nobody leads ${this.#protocol} within ${PATIENCE_MS} ms`);
  }

  /** A client at each of these members asks for one command after the other. */
  async load(ids: readonly number[], ms: number): Promise<Load> {
    const from = performance.now();
    const delays: number[] = [];
    const client = async (id: number): Promise<void> => {
      while (performance.now() < from + ms) {
        const asked = performance.now();
        if (!(await this.#ask(id))) throw new Error(`member ${id} of ${this.#protocol} has refused a command`);
        delays.push(performance.now() - asked);
      }
    };
    await Promise.all(ids.map(client));
    const perSecond = (delays.length * 1_000) / (performance.now() - from);
    delays.sort((a, b) => a - b);
    return { perSecond, p50: median(delays), p99: delays[Math.floor(delays.length * 0.99)] ?? 0 };
  }

  /**
   * Kills the leader while the others' clients ask; the group is of no more use then.
   * @returns the longest time without any answer, in milliseconds, until each of the others has answered what it was asked after that.
   */
  async failover(): Promise<number> {
    const leader = await this.leader();
    const others = this.ids.filter((id) => id !== leader);
    const begun = performance.now();
    let killedAt = Number.POSITIVE_INFINITY;
    const answers: number[] = [];
    const untilAnswered = async (id: number): Promise<void> => {
      for (;;) {
        const asked = performance.now();
        if (asked > begun + PATIENCE_MS) throw new Error(`member ${id} of ${this.#protocol} has not gone on`);
        if (await this.#ask(id)) answers.push(performance.now());
        if (asked > killedAt) return;
      }
    };
    const answered = Promise.all(others.map(untilAnswered));
    await sleep(LOADED_MS);
    this.#children[leader - 1]?.kill("SIGKILL");
    killedAt = performance.now();
    await answered;
    const after = [killedAt, ...answers.filter((at) => at > killedAt).sort((a, b) => a - b)];
    return Math.max(...after.slice(1).map((at, index) => at - (after[index] as number)));
  }

  end(): void {
    for (const child of this.#children) child.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    AgreementGroup.#all.delete(this);
  }

  async #ask(id: number): Promise<boolean> {
    const answer = await fetch(`http://${this.#admin[id - 1]}/request`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ type: "client", body: { type: "execute", operation: "add 1" } }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const { body } = (await answer.json()) as { body?: { type: string } };
    return body?.type === "result";
  }
}

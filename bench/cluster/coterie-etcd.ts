/** Three members of Coterie that serve etcd's API, as `coterie node --etcd` runs them. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePorts } from "../multicast/group.ts";
import { EtcdLoad } from "./go-program.ts";
import { residentBytesOf } from "./resident.ts";
import type { EtcdWork, Loaded, Throughput } from "./subject.ts";

const CLI = fileURLToPath(new URL("../../dist/cli/coterie.js", import.meta.url)).replace("/build/dist/", "/dist/");
const IDS = [1, 2, 3];
const PATIENCE_MS = 20_000;
const LOOK_EVERY_MS = 50;

export class CoterieServingEtcd implements Loaded<EtcdWork> {
  readonly #ports: readonly number[];
  static readonly #all = new Set<CoterieServingEtcd>();
  readonly name = "Coterie";
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-serving-etcd-"));
  readonly #children: ChildProcess[] = [];
  #load!: EtcdLoad;

  /** @param ports of each member three: for the others, for admin pages, for etcd's API */
  private constructor(ports: readonly number[]) {
    this.#ports = ports;
    CoterieServingEtcd.#all.add(this);
  }

  static async start(): Promise<CoterieServingEtcd> {
    const cluster = new CoterieServingEtcd(await freePorts(3 * IDS.length));
    cluster.#load = await EtcdLoad.built(cluster.#folder);
    cluster.#begin();
    await cluster.#leader();
    return cluster;
  }

  static endAll(): void {
    for (const cluster of CoterieServingEtcd.#all) cluster.end();
  }

  async load(work: EtcdWork, inFlight: number, ms: number): Promise<Throughput> {
    return this.#load.run(this.#placeOf(await this.#leader(), "etcd"), work, inFlight, ms);
  }

  residentBytes(): number {
    return residentBytesOf(this.#children);
  }

  end(): void {
    for (const child of this.#children) child.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
    CoterieServingEtcd.#all.delete(this);
  }

  #placeOf(id: number, door: "peer" | "admin" | "etcd"): string {
    const offset = { peer: 0, admin: 1, etcd: 2 }[door] * IDS.length;
    return `127.0.0.1:${this.#ports[offset + id - 1]}`;
  }

  #begin(): void {
    const config = join(this.#folder, "coterie.json");
    const members = IDS.map((id) => [id, { address: this.#placeOf(id, "peer"), admin: this.#placeOf(id, "admin") }]);
    const fields = { cluster: "bench", dataDir: "data-{id}", members: Object.fromEntries(members) };
    writeFileSync(config, JSON.stringify(fields));
    for (const id of IDS) {
      const words = ["node", "--config", config, "--id", String(id), "--etcd", this.#placeOf(id, "etcd")];
      this.#children.push(spawn(process.execPath, [CLI, ...words], { stdio: "ignore" }));
    }
  }

  /** Which leads the log, once one does and serves. */
  async #leader(): Promise<number> {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until) {
      for (const id of IDS) {
        const leader = await leaderAsToldAt(this.#placeOf(id, "admin"));
        if (leader === id) return id;
      }
      await sleep(LOOK_EVERY_MS);
    }
    throw new Error(`nobody leads the log within ${PATIENCE_MS} ms`);
  }
}

async function leaderAsToldAt(place: string): Promise<number | null> {
  try {
    const answer = await fetch(`http://${place}/status`, { signal: AbortSignal.timeout(1_000) });
    return ((await answer.json()) as { shared: { leader: number | null } }).shared.leader;
  } catch {
    return null; // It does not listen yet.
  }
}

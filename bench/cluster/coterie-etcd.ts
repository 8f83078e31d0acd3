/** Three members of Coterie that serve etcd's API, as `coterie node --etcd` runs them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePorts } from "../multicast/group.ts";
import { OURS } from "./figures.ts";
import { EtcdLoad } from "./go-program.ts";
import { Servers } from "./servers.ts";
import { type EtcdWork, type Loaded, type Throughput, untilLed } from "./subject.ts";

const CLI = fileURLToPath(new URL("../../dist/cli/coterie.js", import.meta.url)).replace("/build/dist/", "/dist/");
const IDS = [1, 2, 3];

export class CoterieServingEtcd implements Loaded<EtcdWork> {
  readonly name = OURS;
  readonly #servers = new Servers("serving-etcd", process.execPath);
  readonly #ports: readonly number[];
  #load!: EtcdLoad;

  /** @param ports of each member three: for the others, for admin pages, for etcd's API */
  private constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  static async start(): Promise<CoterieServingEtcd> {
    const cluster = new CoterieServingEtcd(await freePorts(3 * IDS.length));
    cluster.#load = await EtcdLoad.built(cluster.#servers.folder);
    await cluster.#begin();
    await cluster.#leader();
    return cluster;
  }

  async load(work: EtcdWork, inFlight: number, ms: number): Promise<Throughput> {
    const leader = await this.#leader();
    const other = IDS.find((id) => id !== leader) as number;
    return this.#load.run(this.#placeOf(leader, "etcd"), work, inFlight, ms, this.#placeOf(other, "etcd"));
  }

  residentBytes(): number {
    return this.#servers.residentBytes();
  }

  end(): void {
    this.#servers.end();
  }

  #placeOf(id: number, door: "peer" | "admin" | "etcd"): string {
    const offset = { peer: 0, admin: 1, etcd: 2 }[door] * IDS.length;
    return `127.0.0.1:${this.#ports[offset + id - 1]}`;
  }

  async #begin(): Promise<void> {
    const config = join(this.#servers.folder, "coterie.json");
    const members = IDS.map((id) => [id, { address: this.#placeOf(id, "peer"), admin: this.#placeOf(id, "admin") }]);
    const fields = { cluster: "bench", dataDir: "data-{id}", members: Object.fromEntries(members) };
    writeFileSync(config, JSON.stringify(fields));
    for (const id of IDS)
      await this.#servers.start(String(id), [
        ...[CLI, "node", "--config", config],
        ...["--id", String(id), "--etcd", this.#placeOf(id, "etcd")],
      ]);
  }

  /** Which leads the log, once one does and serves. */
  async #leader(): Promise<number> {
    const leader = await untilLed(this.name, async () => {
      for (const id of IDS) if ((await leaderAsToldAt(this.#placeOf(id, "admin"))) === id) return String(id);
      return null;
    });
    return Number(leader);
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

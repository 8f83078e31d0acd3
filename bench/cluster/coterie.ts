/**
 * Coterie as a measured system: three members created by `join()`, each in its own process, one of them generating the
 * load; and members run by `coterie node`.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Throughput, throughputOf } from "../load.ts";
import { OURS } from "../results.ts";
import { Group } from "../services/group.ts";
import { checkoutFile, eventually, freePorts, Processes } from "../workers.ts";
import type { LedSystem, Work } from "./system.ts";

const CLI = checkoutFile("dist/cli/coterie.js");
const FIRST_WRITE_MS = 20_000;
const STATUS_MS = 1_000;

export class Coterie implements LedSystem {
  readonly name = OURS;
  readonly #group: Group;

  private constructor(group: Group) {
    this.#group = group;
  }

  static async start(): Promise<Coterie> {
    const group = await Group.of("default");
    await Promise.all(group.ids.map((id) => group.call(id, "write", FIRST_WRITE_MS)));
    const coterie = new Coterie(group);
    await coterie.leader();
    return coterie;
  }

  get members(): readonly string[] {
    return this.#group.ids.map(String);
  }

  /** Waits for a member that reports itself as the leader. */
  leader(): Promise<string> {
    return eventually("a leader", async () => {
      for (const id of this.#group.ids) if ((await this.#group.call(id, "standing")).leader === id) return String(id);
      return null;
    });
  }

  async load(work: Work, inFlight: number, ms: number): Promise<Throughput> {
    const leader = Number(await this.leader());
    if (work !== "watch") return this.#group.call(leader, "load", work, inFlight, ms);
    const other = this.#group.ids.find((id) => id !== leader) as number;
    await this.#group.call(other, "beginWatch");
    const beganAt = await this.#group.call(leader, "writeWatched", ms);
    const arrivedAt = await this.#group.call(other, "endWatch", beganAt.length);
    return throughputOf(
      beganAt.map((at, turn) => (arrivedAt[turn] as number) - at),
      ms,
    );
  }

  async write(member: string, timeoutMs: number): Promise<boolean> {
    return (await this.#group.call(Number(member), "write", timeoutMs)) !== null;
  }

  signal(member: string, signal: NodeJS.Signals): void {
    this.#group.signal(member, signal);
  }

  async restart(member: string): Promise<void> {
    await this.#group.repair("SIGKILL", Number(member));
    await this.#group.settled();
  }

  residentBytes(): number {
    return this.#group.residentBytes();
  }
}

interface NodeOptions {
  readonly count: number;
  /** Additional fields of the config file. */
  readonly fields?: object;
  /** The number of additional ports per member, and the arguments that use them. */
  readonly morePorts?: number;
  readonly args?: (...ports: readonly number[]) => readonly string[];
}

/** Members run by `coterie node`, with journals. */
export class NodeCluster extends Processes {
  readonly ids: readonly number[];
  readonly #ports: readonly number[];
  readonly #options: NodeOptions;

  private constructor(options: NodeOptions, ports: readonly number[]) {
    super("nodes");
    this.ids = Array.from({ length: options.count }, (_, at) => at + 1);
    this.#ports = ports;
    this.#options = options;
  }

  /** Starts all members without waiting until they serve requests. */
  static async start(options: NodeOptions, fieldsIn: (folder: string, ids: readonly number[]) => object = () => ({})) {
    const { count, fields, morePorts = 0, args = () => [] } = options;
    const cluster = new NodeCluster(options, await freePorts((2 + morePorts) * count));
    const members = cluster.ids.map((id) => [id, { address: cluster.address(id, 0), admin: cluster.address(id, 1) }]);
    const config = join(cluster.folder, "coterie.json");
    const more = fieldsIn(cluster.folder, cluster.ids);
    const all = { cluster: "bench", dataDir: "data-{id}", ...fields, ...more, members: Object.fromEntries(members) };
    writeFileSync(config, JSON.stringify(all));
    for (const id of cluster.ids) {
      const ports = Array.from({ length: morePorts }, (_, at) => cluster.#port(id, 2 + at));
      const words = [CLI, "node", "--config", config, "--id", String(id), ...args(...ports)];
      await cluster.spawn(String(id), process.execPath, words);
    }
    return cluster;
  }

  /** @param which 0 for the address used by other members, 1 for the admin pages, 2 and above for additional ports */
  address(id: number, which: number): string {
    return `127.0.0.1:${this.#port(id, which)}`;
  }

  #port(id: number, which: number): number {
    return this.#ports[which * this.#options.count + id - 1] as number;
  }

  /** Waits for a member that reports itself as the leader. */
  leader(leaderIn: (status: never) => number | null): Promise<number> {
    return eventually("a leader", async () => {
      for (const id of this.ids) {
        try {
          const signal = AbortSignal.timeout(STATUS_MS);
          const answer = await fetch(`http://${this.address(id, 1)}/status`, { signal });
          if (leaderIn((await answer.json()) as never) === id) return id;
        } catch {} // The member is not listening yet.
      }
      return null;
    });
  }
}

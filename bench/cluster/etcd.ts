/**
 * etcd from Debian's package, and our own members serving etcd's API. etcd's own Go client generates the load for both.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Throughput } from "../load.ts";
import { OURS } from "../results.ts";
import { checkoutFile, eventually, freePorts, Processes } from "../workers.ts";
import { NodeCluster } from "./coterie.ts";
import type { EtcdWork, LedSystem, System } from "./system.ts";

const run = promisify(execFile);
const GO = "/usr/lib/go-1.19/bin/go";
/** The cache for Go builds: compiling etcd's client takes longer than compiling all of our code. */
const CACHE = checkoutFile("build/go-cache");
const MEMBERS = 3;
const QUOTA_BYTES = 8_589_934_592;

/** Returns why Go programs cannot be built here, or null if they can. */
export const goMissing = (): string | null =>
  existsSync(GO) ? null : "Go is not installed (Debian: golang-1.19-go golang-etcd-server-dev)";

/** Builds a program that uses etcd's client, with Go and the client from Debian's packages and without modules. */
export async function buildGo(source: string, program: string): Promise<void> {
  const env = { ...process.env, GOPATH: "/usr/share/gocode", GO111MODULE: "off", GOCACHE: CACHE };
  await run(GO, ["build", "-o", program, source], { env });
}

/** Returns why etcd cannot be measured here, or null if it can. */
export async function etcdMissing(): Promise<string | null> {
  return (await etcdVersion()) === null ? "etcd is not installed (Debian: etcd-server)" : goMissing();
}

async function etcdVersion(): Promise<string | null> {
  try {
    const { stdout } = await run("etcd", ["--version"]);
    return /etcd Version: (\S+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

/**
 * Endpoints have the form `host:port`. `leader` is the leader's endpoint, and `watched` is the one that the watcher
 * uses.
 */
type Load = (leader: string, watched: string, work: EtcdWork, inFlight: number, ms: number) => Promise<Throughput>;

async function builtLoad(folder: string): Promise<Load> {
  const program = join(folder, "etcd-load");
  await buildGo(checkoutFile("bench/cluster/etcd-load/main.go"), program);
  return async (leader, watched, work, inFlight, ms) => {
    const endpoints = ["-endpoint", leader, "-watched", watched];
    const words = [...endpoints, "-work", work, "-in-flight", String(inFlight), "-ms", String(ms)];
    const { stdout, stderr } = await run(program, words);
    const found = JSON.parse(stdout) as Throughput;
    if (found.errors > 0) throw new Error(`${found.errors} of ${work} failed, the first with ${stderr.trim()}`);
    return found;
  };
}

interface Endpoints {
  readonly client: string;
  readonly peer: string;
}

export class Etcd extends Processes implements LedSystem, System<EtcdWork> {
  readonly #endpoints: ReadonlyMap<string, Endpoints>;
  #load!: Load;

  private constructor(
    readonly name: string,
    ports: readonly number[],
  ) {
    super("etcd");
    this.#endpoints = new Map(
      Array.from({ length: MEMBERS }, (_, at) => [
        `m${at}`,
        { client: `127.0.0.1:${ports[2 * at]}`, peer: `http://127.0.0.1:${ports[2 * at + 1]}` },
      ]),
    );
  }

  static async start(): Promise<Etcd> {
    const etcd = new Etcd(`etcd ${await etcdVersion()}`, await freePorts(2 * MEMBERS));
    etcd.#load = await builtLoad(etcd.folder);
    for (const name of etcd.members) await etcd.restart(name);
    await etcd.leader();
    return etcd;
  }

  get members(): readonly string[] {
    return [...this.#endpoints.keys()];
  }

  leader(): Promise<string> {
    return eventually("a leader of etcd", async () => {
      for (const [name, { client }] of this.#endpoints) if (await leadsAt(client)) return name;
      return null;
    });
  }

  async load(work: EtcdWork, inFlight: number, ms: number): Promise<Throughput> {
    const leader = await this.leader();
    const other = this.members.find((member) => member !== leader) as string;
    return this.#load(this.#of(leader).client, this.#of(other).client, work, inFlight, ms);
  }

  async write(name: string, timeoutMs: number): Promise<boolean> {
    const body = { key: btoa("fail-over"), value: btoa("x") };
    return (await posted(this.#of(name).client, "kv/put", body, timeoutMs)) !== null;
  }

  restart(member: string): Promise<void> {
    const { client, peer } = this.#of(member);
    const words = {
      name: member,
      "data-dir": this.folderOf(member),
      "listen-client-urls": `http://${client}`,
      "advertise-client-urls": `http://${client}`,
      "listen-peer-urls": peer,
      "initial-advertise-peer-urls": peer,
      "initial-cluster": [...this.#endpoints].map(([name, each]) => `${name}=${each.peer}`).join(),
      "quota-backend-bytes": String(QUOTA_BYTES),
      "log-level": "error",
    };
    const args = Object.entries(words).flatMap(([word, value]) => [`--${word}`, value]);
    return this.spawn(member, "etcd", args);
  }

  #of(name: string): Endpoints {
    return this.#endpoints.get(name) as Endpoints;
  }
}

/**
 * Sends a request through etcd's JSON gateway.
 * @returns null unless a successful answer arrives in time
 */
async function posted(client: string, path: string, body: object, timeoutMs: number): Promise<unknown> {
  try {
    const request = { method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(timeoutMs) };
    const answer = await fetch(`http://${client}/v3/${path}`, request);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

interface Status {
  readonly leader?: string;
  readonly header?: { readonly member_id?: string };
}

/**
 * @param client `host:port`
 * @returns false if this member is not the leader or does not answer
 */
export async function leadsAt(client: string): Promise<boolean> {
  const status = (await posted(client, "maintenance/status", {}, 1_000)) as Status | null;
  return status?.leader !== undefined && status.leader === status.header?.member_id;
}

/** Our members, run by `coterie node --etcd`. */
export class CoterieServingEtcd implements System<EtcdWork> {
  readonly name = OURS;
  readonly #cluster: NodeCluster;
  readonly #load: Load;

  private constructor(cluster: NodeCluster, load: Load) {
    this.#cluster = cluster;
    this.#load = load;
  }

  static async start(): Promise<CoterieServingEtcd> {
    const args = (port = 0): string[] => ["--etcd", `127.0.0.1:${port}`];
    const cluster = await NodeCluster.start({ count: MEMBERS, morePorts: 1, args });
    const ours = new CoterieServingEtcd(cluster, await builtLoad(cluster.folder));
    await ours.#leader();
    return ours;
  }

  async load(work: EtcdWork, inFlight: number, ms: number): Promise<Throughput> {
    const leader = await this.#leader();
    const other = this.#cluster.ids.find((id) => id !== leader) as number;
    return this.#load(this.#cluster.address(leader, 2), this.#cluster.address(other, 2), work, inFlight, ms);
  }

  residentBytes(): number {
    return this.#cluster.residentBytes();
  }

  #leader(): Promise<number> {
    return this.#cluster.leader(({ shared }: { shared: { leader: number | null } }) => shared.leader);
  }
}

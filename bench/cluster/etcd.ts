/** etcd as Debian packages it: three members on loopback, and its own client in Go for the load. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { freePorts } from "../multicast/group.ts";
import { EtcdLoad, goMissing } from "./go-program.ts";
import { Servers } from "./servers.ts";
import { type EtcdWork, type Loaded, type Subject, type Throughput, untilLed } from "./subject.ts";

const run = promisify(execFile);

const MEMBERS = 3;
const QUOTA_BYTES = 8_589_934_592;

interface Place {
  readonly name: string;
  readonly client: string;
  readonly peer: string;
}

/** Why etcd cannot be measured here; null if it can. */
export async function etcdMissing(): Promise<string | null> {
  const version = await etcdVersion();
  if (version === null) return "etcd is not installed (Debian: etcd-server)";
  return goMissing();
}

async function etcdVersion(): Promise<string | null> {
  try {
    const { stdout } = await run("etcd", ["--version"]);
    return /etcd Version: (\S+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

export class Etcd implements Subject, Loaded<EtcdWork> {
  readonly #places: readonly Place[];
  readonly #servers = new Servers("etcd", "etcd");
  #load!: EtcdLoad;

  private constructor(
    readonly name: string,
    ports: readonly number[],
  ) {
    this.#places = Array.from({ length: MEMBERS }, (_, at) => ({
      name: `m${at}`,
      client: `http://127.0.0.1:${ports[2 * at]}`,
      peer: `http://127.0.0.1:${ports[2 * at + 1]}`,
    }));
  }

  /** Builds the client and starts the members. */
  static async start(): Promise<Etcd> {
    const etcd = new Etcd(`etcd ${await etcdVersion()}`, await freePorts(2 * MEMBERS));
    etcd.#load = await EtcdLoad.built(etcd.#servers.folder);
    for (const { name } of etcd.#places) await etcd.startAgain(name);
    await etcd.leader();
    return etcd;
  }

  leader(among: readonly string[] = this.members): Promise<string> {
    return untilLed(this.name, async () => {
      for (const place of this.#places.filter(({ name }) => among.includes(name))) {
        const standing = await standingOf(place.client);
        if (standing !== null && standing.leader === standing.self && standing.leader !== undefined) return place.name;
      }
      return null;
    });
  }

  async load(work: EtcdWork, inFlight: number, ms: number): Promise<Throughput> {
    const leader = await this.leader();
    const other = this.members.find((member) => member !== leader) as string;
    const endpoint = (name: string): string => this.#place(name).client.replace("http://", "");
    return this.#load.run(endpoint(leader), work, inFlight, ms, endpoint(other));
  }

  async write(name: string, timeoutMs: number): Promise<boolean> {
    const body = JSON.stringify({ key: btoa("fail-over"), value: btoa("x") });
    try {
      const url = `${this.#place(name).client}/v3/kv/put`;
      return (await fetch(url, { method: "POST", body, signal: AbortSignal.timeout(timeoutMs) })).ok;
    } catch {
      return false;
    }
  }

  get members(): readonly string[] {
    return this.#places.map(({ name }) => name);
  }

  signal(name: string, signal: NodeJS.Signals): void {
    this.#servers.signal(name, signal);
  }

  startAgain(member: string): Promise<void> {
    const { name, client, peer } = this.#place(member);
    const cluster = this.#places.map((place) => `${place.name}=${place.peer}`).join();
    const words = {
      name,
      "data-dir": this.#servers.folderOf(name),
      "listen-client-urls": client,
      "advertise-client-urls": client,
      "listen-peer-urls": peer,
      "initial-advertise-peer-urls": peer,
      "initial-cluster": cluster,
      "quota-backend-bytes": String(QUOTA_BYTES),
      "log-level": "error",
    };
    return this.#servers.start(
      name,
      Object.entries(words).flatMap(([word, value]) => [`--${word}`, value]),
    );
  }

  residentBytes(): number {
    return this.#servers.residentBytes();
  }

  end(): void {
    this.#servers.end();
  }

  #place(name: string): Place {
    return this.#places.find((place) => place.name === name) as Place;
  }
}

interface Status {
  readonly leader?: string;
  readonly header?: { readonly member_id?: string };
}

async function standingOf(client: string): Promise<{ leader: string | undefined; self: string | undefined } | null> {
  try {
    const answer = await fetch(`${client}/v3/maintenance/status`, {
      method: "POST",
      body: "{}",
      signal: AbortSignal.timeout(1_000),
    });
    const { leader, header } = (await answer.json()) as Status;
    return { leader, self: header?.member_id };
  } catch {
    return null; // It does not listen yet, or not any more.
  }
}

/** etcd as Debian packages it: three members on loopback, and its own client in Go for the load. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePorts } from "../multicast/group.ts";
import { EtcdLoad, goMissing } from "./go-program.ts";
import { residentBytesOf } from "./resident.ts";
import type { EtcdWork, Loaded, Subject, Throughput } from "./subject.ts";

const run = promisify(execFile);

const MEMBERS = 3;
const PATIENCE_MS = 20_000;
const LOOK_EVERY_MS = 50;
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

export async function etcdVersion(): Promise<string | null> {
  try {
    const { stdout } = await run("etcd", ["--version"]);
    return /etcd Version: (\S+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

export class Etcd implements Subject, Loaded<EtcdWork> {
  readonly name = "etcd";
  static readonly #all = new Set<Etcd>();
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-etcd-"));
  readonly #places: readonly Place[];
  readonly #children = new Map<string, ChildProcess>();
  #load!: EtcdLoad;

  private constructor(ports: readonly number[]) {
    this.#places = Array.from({ length: MEMBERS }, (_, at) => ({
      name: `m${at}`,
      client: `http://127.0.0.1:${ports[2 * at]}`,
      peer: `http://127.0.0.1:${ports[2 * at + 1]}`,
    }));
    Etcd.#all.add(this);
  }

  /** Builds the client and starts the members. */
  static async start(): Promise<Etcd> {
    const etcd = new Etcd(await freePorts(2 * MEMBERS));
    etcd.#load = await EtcdLoad.built(etcd.#folder);
    for (const place of etcd.#places) etcd.#begin(place);
    await etcd.leader();
    return etcd;
  }

  static endAll(): void {
    for (const etcd of Etcd.#all) etcd.end();
  }

  async leader(among: readonly string[] = this.members): Promise<string> {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until) {
      for (const place of this.#places.filter(({ name }) => among.includes(name))) {
        const standing = await standingOf(place.client);
        if (standing !== null && standing.leader === standing.self && standing.leader !== undefined) return place.name;
      }
      await sleep(LOOK_EVERY_MS);
    }
    throw new Error(`etcd has no leader within ${PATIENCE_MS} ms`);
  }

  async load(work: EtcdWork, inFlight: number, ms: number): Promise<Throughput> {
    const { client } = this.#place(await this.leader());
    return this.#load.run(client.replace("http://", ""), work, inFlight, ms);
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
    this.#children.get(name)?.kill(signal);
  }

  async startAgain(name: string): Promise<void> {
    const child = this.#children.get(name) as ChildProcess;
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once("exit", resolve));
    this.#begin(this.#place(name));
  }

  residentBytes(): number {
    return residentBytesOf([...this.#children.values()]);
  }

  end(): void {
    for (const child of this.#children.values()) child.kill("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
    Etcd.#all.delete(this);
  }

  #place(name: string): Place {
    return this.#places.find((place) => place.name === name) as Place;
  }

  #begin({ name, client, peer }: Place): void {
    const folder = join(this.#folder, name);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const cluster = this.#places.map((place) => `${place.name}=${place.peer}`).join();
    const words = {
      name,
      "data-dir": folder,
      "listen-client-urls": client,
      "advertise-client-urls": client,
      "listen-peer-urls": peer,
      "initial-advertise-peer-urls": peer,
      "initial-cluster": cluster,
      "quota-backend-bytes": String(QUOTA_BYTES),
      "log-level": "error",
    };
    const child = spawn(
      "etcd",
      Object.entries(words).flatMap(([word, value]) => [`--${word}`, value]),
      {
        stdio: "ignore",
      },
    );
    this.#children.set(name, child);
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

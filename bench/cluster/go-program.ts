/** Programs in Go with etcd's own client, built as Debian packages both: without modules. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { EtcdWork, Throughput } from "./subject.ts";

const run = promisify(execFile);

const GO = "/usr/lib/go-1.19/bin/go";
/** What has been compiled before: etcd's client takes longer than all of ours. */
const CACHE = fileURLToPath(new URL("../../build/go-cache", import.meta.url)).replace("/build/build/", "/build/");

/** Why nothing can be built here; null if it can. */
export const goMissing = (): string | null =>
  existsSync(GO) ? null : "Go is not installed (Debian: golang-1.19-go golang-etcd-server-dev)";

export async function buildGo(source: string, program: string): Promise<void> {
  const env = { ...process.env, GOPATH: "/usr/share/gocode", GO111MODULE: "off", GOCACHE: CACHE };
  await run(GO, ["build", "-o", program, source], { env });
}

/** Etcd's own client, which loads members of either side. */
export class EtcdLoad {
  readonly #program: string;
  private constructor(program: string) {
    this.#program = program;
  }

  static async built(folder: string): Promise<EtcdLoad> {
    const program = join(folder, "etcd-load");
    const source = fileURLToPath(new URL("etcd-load/main.go", import.meta.url)).replace("/build/bench/", "/bench/");
    await buildGo(source, program);
    return new EtcdLoad(program);
  }

  /** @param endpoint `host:port` of the leader, and `watched` of another member, where a watcher is */
  async run(endpoint: string, work: EtcdWork, inFlight: number, ms: number, watched: string): Promise<Throughput> {
    const places = ["-endpoint", endpoint, "-watched", watched];
    const words = [...places, "-work", work, "-in-flight", String(inFlight), "-ms", String(ms)];
    const { stdout, stderr } = await run(this.#program, words);
    const found = JSON.parse(stdout) as Throughput;
    if (found.errors > 0) throw new Error(`${found.errors} of ${work} failed, the first with ${stderr.trim()}`);
    return found;
  }
}

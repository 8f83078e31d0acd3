/** Programs in Go with etcd's own client, built as Debian packages both: without modules. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

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

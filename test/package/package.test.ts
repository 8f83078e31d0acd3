/** What users get: the packed tarball, installed into an empty folder with nothing of this repository around it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { resolve: installed } = createRequire(import.meta.url);
const PATIENCE_MS = 240_000;
/** Somewhere else, and with nothing in reach from there. */
const elsewhere = mkdtempSync(join(tmpdir(), "coterie-package-"));
const user = join(elsewhere, "user");
let tarball = "";
let packed: string[] = [];
const groups: number[] = [];

/** Stdout and stderr of a command that ends well; what it said is in the error if it does not. */
async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(command, args, { cwd, maxBuffer: 1e8 }).catch(
    ({ message, stdout, stderr }: { message: string; stdout: string; stderr: string }) => {
      throw new Error(`${message}\n${stdout}\n${stderr}`);
    },
  );
  return stdout + stderr;
}

/** Packs a copy of the sources, so that all that is packed was built from them. */
async function pack(): Promise<void> {
  const copy = join(elsewhere, "sources");
  const left = new Set(["node_modules", "dist", "build", "coverage", ".git"]);
  cpSync(ROOT, copy, { recursive: true, filter: (source) => !left.has(basename(source)) });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  await run(copy, "npm", "pack", "--pack-destination", elsewhere);
  tarball = join(elsewhere, "coterie-0.1.0.tgz");
  packed = (await run(elsewhere, "tar", "-tzf", tarball)).trim().split("\n");
}

beforeAll(async () => {
  await pack();
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), JSON.stringify({ private: true, type: "module" }));
  await run(user, "npm", "install", "--no-audit", "--no-fund", tarball);
}, PATIENCE_MS);

afterAll(() => {
  for (const group of groups) if (isAlive(-group)) process.kill(-group, "SIGKILL");
  rmSync(elsewhere, { recursive: true, force: true });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("the packed tarball", () => {
  it("holds the built code, the page and the papers, and nothing else", () => {
    const top = packed.filter((path) => !path.startsWith("package/dist/"));
    expect(top.sort()).toEqual(["package/LICENSE", "package/README.md", "package/package.json"]);
    expect(packed).toContain("package/dist/cli/coterie.js");
    expect(packed).toContain("package/dist/studio/index.html");
    expect(packed.filter((path) => /\.test|\.map$|\.tsbuildinfo$/.test(path))).toEqual([]);
    expect(packed.filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts"))).toEqual([]);
  });

  it("pleases publint", async () => {
    const { buffer, byteOffset, byteLength } = readFileSync(tarball);
    const copy = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
    const { messages, pkg = {} } = await publint({ strict: true, pack: { tarball: copy } });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  it("has types that are not wrong", async () => {
    const attw = join(dirname(installed("@arethetypeswrong/cli/package.json")), "dist", "index.js");
    const said = await run(elsewhere, process.execPath, attw, tarball, "--profile", "esm-only", "--no-color");
    expect(said).toContain("No problems found");
  });

  it("is understood by TypeScript from every subpath, the README's examples included", async () => {
    cpSync(join(ROOT, "test/package/consumer"), user, { recursive: true });
    const examples = [...readFileSync(join(ROOT, "README.md"), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)];
    expect(examples.length).toBeGreaterThan(0);
    for (const [index, [, example = ""]] of examples.entries()) {
      writeFileSync(join(user, `readme-${index}.ts`), `declare const console: { log(value: unknown): void };\n${example}`);
    }
    const tsc = join(dirname(installed("typescript/package.json")), "bin", "tsc");
    const compilerOptions = { strict: true, module: "nodenext", target: "es2022", types: [], lib: ["es2023"] };
    writeFileSync(join(user, "tsconfig.json"), JSON.stringify({ compilerOptions }));
    await run(user, process.execPath, tsc);
    expect(await run(user, process.execPath, "every-subpath.js")).toBe("");
    expect(await run(user, process.execPath, "readme-0.js")).toMatch(/^node 6 leads\n/);
  });

  it("runs a cluster with npx, and Ctrl-C leaves no process behind", { timeout: PATIENCE_MS }, async () => {
    expect(statSync(join(user, "node_modules/coterie/dist/cli/coterie.js")).mode & 0o111).toBe(0o111);
    // A process group of its own, as a terminal gives to a command: Ctrl-C reaches all of it.
    const npx = spawn("npx", ["coterie", "up", "--nodes", "3", "--json", "--port", "0"], { cwd: user, detached: true });
    const group = npx.pid as number;
    groups.push(group);
    const ended = new Promise((resolve) => npx.on("close", (code, signal) => resolve(code ?? signal)));

    const ready = await firstLine(npx, ended);
    expect(ready).toMatchObject({ event: "ready", nodes: [{ id: 0 }, { id: 1 }, { id: 2 }] });
    const pids = ready.nodes.map(({ pid }) => pid);
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    const { nodes } = (await (await fetch(`${ready.admin}/status`)).json()) as { nodes: { leader: number }[] };
    expect(nodes.map(({ leader }) => leader)).toEqual([2, 2, 2]);
    expect(await (await fetch(ready.studio)).text()).toContain('id="studio"');

    process.kill(-group, "SIGINT");
    expect(await ended).toBe(0);
    expect([...pids, -group].map(isAlive)).toEqual([false, false, false, false]);
  });
});

type Ready = { studio: string; admin: string; nodes: { id: number; pid: number }[] };

async function firstLine(child: ChildProcess, ended: Promise<unknown>): Promise<Ready> {
  let complaints = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const line = new Promise<string>((resolve) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).once("line", resolve);
  });
  const dead = ended.then((code): never => {
    throw new Error(`expected a first line, but it ended with ${code}: ${complaints}`);
  });
  dead.catch(() => {}); // It ends after its first line as well.
  return JSON.parse(await Promise.race([line, dead])) as Ready;
}

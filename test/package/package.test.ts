/** Checks the package that users get: the packed tarball, installed into an empty folder outside of this repository. */
import { execFile, spawn } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { linksOf } from "../docs/markdown.ts";
import { until } from "../e2e/cluster-under-test.ts";
import { onFreePorts } from "../network/free-ports.ts";
import { TEST_TIMEOUT_MS } from "../patience.ts";
import { entrypoint, installs, workdir } from "./dockerfile.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const require = createRequire(import.meta.url);
/** Outside the repository, so that none of its packages can be found. */
const elsewhere = mkdtempSync(join(tmpdir(), "coterie-package-"));
const sources = join(elsewhere, "sources");
const user = join(elsewhere, "user");
/** docs/index.md mentions these folders. */
const IN_THE_REPOSITORY = /^(?:bench|src|studio|test)\//;
let tarball = "";
let packed: string[] = [];
const groups: number[] = [];

/** Returns the stdout and stderr of a successful command. If it fails, the error contains them. */
async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(command, args, { cwd, maxBuffer: 1e8 }).catch(
    (error: unknown) => {
      const { message, stdout, stderr } = error as Error & { stdout: string; stderr: string };
      throw new Error(`${message}\n${stdout}\n${stderr}`);
    },
  );
  return stdout + stderr;
}

/** Lists the files that this folder would publish. */
async function pack(folder: string, destination: string, ...options: string[]): Promise<string[]> {
  mkdirSync(destination, { recursive: true });
  await run(folder, "npm", "pack", "--pack-destination", destination, ...options);
  return (await run(elsewhere, "tar", "-tzf", join(destination, "coterie-0.1.0.tgz"))).trim().split("\n");
}

beforeAll(async () => {
  packed = await pack(ROOT, elsewhere, "--ignore-scripts"); // test/fresh-build.ts has checked that the build matches the sources.
  tarball = join(elsewhere, "coterie-0.1.0.tgz");
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), JSON.stringify({ private: true, type: "module" }));
  copyFileSync(tarball, join(user, "coterie-0.1.0.tgz"));
  await run(user, "sh", "-c", installs); // As in the Docker image.
  await writeUsersSources();
});

/** Writes a user's programs: imports of every subpath, and the examples, including the README's. */
async function writeUsersSources(): Promise<void> {
  for (const folder of ["test/package/consumer", "examples"]) cpSync(join(ROOT, folder), user, { recursive: true });
  const examples = [...readFileSync(join(ROOT, "README.md"), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)];
  expect(examples.length).toBeGreaterThan(0);
  for (const [index, [, example = ""]] of examples.entries())
    writeFileSync(join(user, `readme-${index}.ts`), await onFreePorts(example));
  const compilerOptions = {
    strict: true,
    target: "es2022",
    module: "nodenext",
    typeRoots: [join(ROOT, "node_modules/@types")],
    types: ["node"],
  };
  writeFileSync(join(user, "tsconfig.json"), JSON.stringify({ compilerOptions, exclude: ["*.test.ts", "frameworks"] }));
}

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
  it("holds the built code, the page, the papers, the examples and the skeletons, and nothing else", () => {
    const top = packed.filter((path) => !/^package\/(dist|docs|examples|scenarios|skeletons)\//.test(path));
    const papers = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "package.json"];
    expect(top.sort()).toEqual(papers.map((name) => `package/${name}`));
    expect(packed).toContain("package/dist/cli/coterie.js");
    expect(packed).toContain("package/scenarios/scenario.schema.json");
    expect(packed).toContain("package/dist/studio/index.html");
    // Messages name pages by their path in the package.
    expect(packed).toContain("package/docs/operate/recovery.md");
    const ofDocs = packed.filter((path) => path.startsWith("package/docs/"));
    expect(ofDocs.filter((path) => !/\.md$|^package\/docs\/images\/.+\.(?:svg|png)$/.test(path))).toEqual([]);
    // The files that `coterie new` copies are included unchanged.
    expect(packed).toContain("package/skeletons/mutex/skeleton-algorithm.test.ts");
    const built = packed.filter((path) => !/^package\/(examples|skeletons)\//.test(path));
    expect(built.filter((path) => /\.test|\.map$|\.tsbuildinfo$/.test(path))).toEqual([]);
    expect(built.filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts"))).toEqual([]);
  });

  it("holds everything that its pages link to and show, except sources and tests", () => {
    const holds = new Set<string>();
    for (const path of packed.map((path) => path.replace("package/", "")))
      for (let part = path; part !== "."; part = dirname(part)) holds.add(part);
    // The pages of skeletons are for the folder that `coterie new` writes.
    const shipped = [...holds].filter((path) => path.endsWith(".md") && !path.startsWith("skeletons/"));
    expect(shipped).toEqual(expect.arrayContaining(["README.md", "docs/operate/deploy.md"]));
    const dead = shipped.flatMap((page) =>
      linksOf(page)
        .map(({ file }) => file.replace(/\/$/, ""))
        .filter((file) => !IN_THE_REPOSITORY.test(file) && !holds.has(file))
        .map((file) => `${page} leads to ${file}`),
    );
    expect(dead).toEqual([]);
  });

  it("holds the files for deploying members", () => {
    const files = ["Dockerfile", "alerts.yaml", "cluster.json", "compose.yaml", "grafana.json", "kubernetes.yaml"];
    const folder = "package/examples/deploy/";
    expect(packed.filter((path) => path.startsWith(folder)).sort()).toEqual(
      [...files, "prometheus.yaml", "roles.json"].map((file) => folder + file),
    );
  });

  it("is installed in the image for Docker, and contains the image's entry point", async () => {
    const installed = JSON.parse(readFileSync(join(user, "package.json"), "utf8")) as { dependencies: object };
    expect(installed.dependencies).toEqual({ coterie: "file:coterie-0.1.0.tgz" });
    const [program = "", ...none] = entrypoint;
    expect(none).toEqual([]);
    expect(program.startsWith(`${workdir}/`)).toBe(true);
    expect(await run(elsewhere, program.replace(workdir, user), "--version")).toBe("0.1.0\n");
  });

  it("passes publint", async () => {
    const { messages, pkg = {} } = await publint({
      strict: true,
      pack: { tarball: new Uint8Array(readFileSync(tarball)).buffer },
    });
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
  });

  it("passes the check of its types", async () => {
    const attw = join(dirname(require.resolve("@arethetypeswrong/cli/package.json")), "dist", "index.js");
    const table = ["--profile", "esm-only", "--no-color", "--format", "table-flipped"];
    const said = await run(elsewhere, process.execPath, attw, tarball, ...table);
    expect(said).toMatch(/"coterie\/sim" .* 🟢 \(ESM\)/);
  });

  it("compiles with TypeScript from every subpath, including the README's example", async () => {
    await run(user, process.execPath, join(dirname(require.resolve("typescript/package.json")), "bin", "tsc"));
    expect(await run(user, process.execPath, "every-subpath.js")).toBe("");
    expect(await run(user, process.execPath, "readme-0.js")).toMatch(/^true\nwrites the report, .*\nblue\n/);
  });

  it("lets a user's tests run members in virtual time, with plain vitest", {
    tags: ["long"],
  }, async () => {
    const vitest = join(ROOT, "node_modules/vitest");
    symlinkSync(vitest, join(user, "node_modules/vitest"));
    const compilerOptions = { noEmit: true, skipLibCheck: true }; // The types of vitest are not checked here.
    const tests = { extends: "./tsconfig.json", compilerOptions, include: ["*.test.ts"], exclude: [] };
    writeFileSync(join(user, "tsconfig.tests.json"), JSON.stringify(tests));
    const tsc = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc");
    await run(user, process.execPath, tsc, "-p", "tsconfig.tests.json");
    const said = await run(
      user,
      "env",
      "COTERIE_SEEDS=300", // The example uses a thousand, and each takes 0.1 s.
      process.execPath,
      join(vitest, "vitest.mjs"),
      "run",
      "nightly-report",
      `--testTimeout=${TEST_TIMEOUT_MS}`,
    );
    expect(said).toMatch(/2 passed/);
  });

  it("runs a cluster with npx, and Ctrl-C leaves no process behind", async () => {
    expect(statSync(join(user, "node_modules/coterie/dist/cli/coterie.js")).mode & 0o111).toBe(0o111);
    const cluster = await up(user, "npx", "coterie", "up", "--nodes", "3", "--json", "--port", "0");
    expect(cluster.ready.leader).toBe(2);
    await until("its status says so", async () => {
      const { nodes } = (await (await fetch(`${cluster.ready.admin}/status`)).json()) as {
        nodes: { leader: number | null }[];
      };
      // A node that is slow to answer reports no leader.
      return nodes.length === 3 && nodes.every(({ leader }) => leader === 2);
    });
    expect(await (await fetch(cluster.ready.studio)).text()).toContain('id="studio"');

    process.kill(-cluster.group, "SIGINT"); // Ctrl-C signals the whole group.
    // The shell that npx puts in between may die of the signal itself, no matter how Coterie ends.
    expect([0, "SIGINT"]).toContain(await cluster.ended);
    await until("no process is left", () => cluster.alive().length === 0);
  });
});

describe("a folder with only the sources", () => {
  beforeAll(() => {
    const left = new Set(["node_modules", "dist", "build", "coverage", ".git"]);
    cpSync(ROOT, sources, { recursive: true, filter: (source) => !left.has(basename(source)) });
    symlinkSync(join(ROOT, "node_modules"), join(sources, "node_modules"));
    // These files exist there if someone deploys from the checkout.
    for (const own of ["token", "coterie-0.1.0.tgz", "node-0.key"])
      writeFileSync(join(sources, "examples/deploy", own), "nobody else's");
  });

  it("is built before it is packed, without the private files next to those for deploying", {
    tags: ["long"],
  }, async () => {
    const built = await pack(sources, join(elsewhere, "of-sources"));
    expect(built).toContain("package/dist/cli/coterie.js");
    // The build splits shared code of pages into files whose names contain the hash of the folder's path.
    const isAsset = (path: string): boolean => path.startsWith("package/dist/studio/assets/");
    const names = new Set(packed);
    expect(built.filter((path) => !isAsset(path) && !names.has(path))).toEqual([]);
    expect(built.some(isAsset)).toBe(true);
  });

  it("npm start builds, runs a cluster, and passes on the signal that npm gets", {
    tags: ["long"],
  }, async () => {
    rmSync(join(sources, "dist"), { recursive: true, force: true });
    const cluster = await up(sources, "npm", "start", "--", "--nodes", "3", "--json", "--port", "0");
    process.kill(cluster.group, "SIGTERM"); // Signal only npm, as its parent process would.
    expect(await cluster.ended).toBe(0);
    await until("no process is left", () => cluster.alive().length === 0);
  });
});

interface Ready {
  readonly event: string;
  readonly leader: number;
  readonly studio: string;
  readonly admin: string;
  readonly nodes: readonly { readonly id: number; readonly pid: number }[];
}

/** Starts three nodes in their own process group, as a terminal would, and waits until they are ready. */
async function up(cwd: string, command: string, ...args: string[]) {
  const child = spawn(command, args, { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const group = child.pid as number;
  groups.push(group);
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  const first = new Promise<string>((resolve, reject) => {
    // npm first prints the command that it runs.
    createInterface({ input: child.stdout }).on("line", (line) => line.startsWith("{") && resolve(line));
    void ended.then((code) =>
      reject(new Error(`expected a cluster, but ${command} ended with ${code}: ${complaints}`)),
    );
  });
  const ready = JSON.parse(await first) as Ready;
  const pids = ready.nodes.map(({ pid }) => pid);
  expect(ready).toMatchObject({ event: "ready", nodes: [{ id: 0 }, { id: 1 }, { id: 2 }] });
  expect(pids.filter(isAlive)).toEqual(pids);
  return { ready, group, ended, alive: () => [...pids, -group].filter(isAlive) };
}

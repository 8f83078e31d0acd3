/**
 * Runs each command that computes and prints as a process. Its output and exit code must be the same as in this
 * process.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { CLI, coterie as coterieProcess } from "../e2e/cluster-under-test.ts";
import { coterie } from "./run-here.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-process-"));
afterAll(() => rmSync(folder, { recursive: true }));
const [trace, history] = [join(folder, "run.jsonl"), join(folder, "history.edn")];
writeFileSync(
  history,
  "{:process 0, :type :invoke, :f :read, :value nil}\n{:process 0, :type :ok, :f :read, :value 7}\n",
);

const withoutSeconds = (text: string): string => text.replace(/"seconds":[\d.e-]+/, "");

test.each([
  [0, "--version"],
  [0, "help sim"],
  [2, "upp"],
  [2, "node --config no-such.json --id 1"],
  [0, `sim bully --nodes 8 --crash 7 --call 4 --trace ${trace} --json`],
  [0, `trace ${trace}`],
  [1, "check bully --nodes 3 --json"],
  [0, "check ricart-agrawala --nodes 2 --json"],
  [1, `check-history ${history} --model register --json`],
  [0, "protocols"],
  [0, "voting-sets 7"],
  [0, "bench"],
])("exit code %i: coterie %s", async (code, words) => {
  const here = await coterie(...words.split(" "));
  const { stdout, stderr, ...ended } = await coterieProcess(...words.split(" "));
  expect(ended).toEqual({ code, signal: null });
  expect([withoutSeconds(stdout), stderr]).toEqual([withoutSeconds(here.stdout), here.stderr]);
  expect(here.code).toBe(code);
});

test("in a checkout whose sources are newer than its build, it warns and runs", async () => {
  const copy = join(folder, "checkout");
  cpSync(join(dirname(CLI), "..", "..", "dist"), join(copy, "dist"), { recursive: true });
  cpSync(join(dirname(CLI), "..", "..", "package.json"), join(copy, "package.json"));
  symlinkSync(join(dirname(CLI), "..", "..", "node_modules"), join(copy, "node_modules"));
  const run = () => promisify(execFile)(process.execPath, [join(copy, "dist/cli/coterie.js"), "voting-sets", "3"]);
  expect((await run()).stderr).toBe(""); // An installed package has no sources either.
  mkdirSync(join(copy, "src"));
  writeFileSync(join(copy, "src/a.ts"), "");
  const { stdout, stderr } = await run();
  expect(stderr).toBe("coterie: this build is older than src/a.ts: run `npm run build`\n");
  expect(stdout).toContain("the four conditions hold");
});

test("a long run ends silently once its output has no reader", async () => {
  const run = spawn(process.execPath, [CLI, "sim", "heartbeat", "--until", "100000000", "--log"]);
  let stderr = "";
  run.stderr.on("data", (data: Buffer) => {
    stderr += data.toString();
  });
  const ended = once(run, "close");
  await once(run.stdout, "data");
  run.stdout.destroy();
  expect(await ended).toEqual([0, null]);
  expect(stderr).toBe("");
});

test("from its sources a command computes in its own process, and does not mention a build", async () => {
  const words = ["check", "ricart-agrawala", "--nodes", "2", "--json"];
  const main = fileURLToPath(new URL("../../src/cli/coterie.ts", import.meta.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--import", "tsx", main, ...words]);
  expect(withoutSeconds(stdout)).toBe(withoutSeconds((await coterie(...words)).stdout));
  expect(stderr).toBe("");
});

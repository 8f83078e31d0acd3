/** Each command that computes and prints, as a process: it prints what the command line prints when it runs here, and ends with its code. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { coterie as coterieProcess } from "../e2e/cluster-under-test.ts";
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

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EnvironmentError } from "../../core/errors.ts";
import { type Claim, claim, requireUnclaimed } from "./claim.ts";

let directory: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "coterie-claim-"));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

/** A process that holds the directory. */
async function holder(): Promise<ChildProcess> {
  const script = `require("net").createServer().listen(process.argv[1] + "/claim-" + process.pid + "-0", () => console.log())`;
  const child = spawn(process.execPath, ["-e", script, directory], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

test("a directory has one holder at a time", async () => {
  const first = await claim(directory);
  const sentence = `the journal in ${directory} is in use by process ${process.pid}: a directory has one writer, so stop that process or name another directory`;
  await expect(claim(directory)).rejects.toThrow(sentence);
  await expect(claim(directory)).rejects.toThrow(EnvironmentError);
  await first.release();
  expect(readdirSync(directory)).toEqual([]);
  await (await claim(directory)).release();
});

test("another process holds it as long as it lives, also while it is paused", async () => {
  const child = await holder();
  child.kill("SIGSTOP");
  await expect(claim(directory)).rejects.toThrow(`in use by process ${child.pid}`);
  expect(readdirSync(directory)).toEqual([`claim-${child.pid}-0`]);
});

test("who only reads is told of its holder, and leaves it as it is", async () => {
  await requireUnclaimed(directory);
  await requireUnclaimed(join(directory, "none"));
  const child = await holder();
  await expect(requireUnclaimed(directory)).rejects.toThrow(
    `the journal in ${directory} is in use by process ${child.pid}: a directory has one writer`,
  );
  child.kill("SIGKILL");
  await once(child, "exit");
  await requireUnclaimed(directory);
  expect(readdirSync(directory)).toEqual([`claim-${child.pid}-0`]);
});

test("what a killed process has left is cleared away", async () => {
  const child = await holder();
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(readdirSync(directory)).toEqual([`claim-${child.pid}-0`]);
  const taken = await claim(directory);
  expect(readdirSync(directory)).toEqual([expect.stringMatching(`^claim-${process.pid}-`)]);
  await taken.release();
});

test("what a dead process left is cleared away without a look at it, by which Node would lose sight of links: nodejs/node#51142", async () => {
  const child = await holder();
  child.kill("SIGKILL");
  await once(child, "exit");
  const [real, link] = [join(directory, "real.cjs"), join(directory, "link.cjs")];
  writeFileSync(real, "");
  symlinkSync(real, link);
  const { resolve } = createRequire(import.meta.url);
  const known = resolve(real); // From here on Node knows the folders.
  const own = await claim(directory);
  expect(resolve(link)).toBe(known);
  await own.release();
});

test("of many who come at once, beside what the dead have left, never two hold it", { tags: ["long"] }, async () => {
  for (let round = 0; round < 5; round++) {
    const dead = await holder();
    dead.kill("SIGKILL");
    await once(dead, "exit");
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => claim(directory)));
    const held = outcomes.filter((each): each is PromiseFulfilledResult<Claim> => each.status === "fulfilled");
    expect(held.length).toBeLessThanOrEqual(1);
    await Promise.all(held.map(({ value }) => value.release()));
    await (await claim(directory)).release();
  }
});

test.runIf(process.platform === "linux")("a path may be longer than the address of a socket", async () => {
  directory = join(directory, "long".repeat(40));
  mkdirSync(directory, { recursive: true });
  const held = await claim(directory);
  expect(readdirSync(directory)).toHaveLength(1);
  await expect(claim(directory)).rejects.toThrow("is in use by process");
  await held.release();
  expect(readdirSync(directory)).toEqual([]);
});

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { EnvironmentError } from "../../core/errors.ts";
import { type Claim, claim, requireUnclaimed } from "./claim.ts";
import { identityOf, ownIdentity } from "./process-identity.ts";

vi.mock(import("./process-identity.ts"), async (original) => {
  const real = await original();
  return { ...real, ownIdentity: vi.fn(real.ownIdentity) };
});

let directory: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "coterie-claim-"));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

const isContained = (await ownIdentity()) === null;
/** The name of the claim that each process holds. */
const claimNames = new Map<ChildProcess, string>();
const claimOf = (child: ChildProcess): string => claimNames.get(child) as string;

/** Starts a child process and waits until it has started. */
async function begun(script: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["-e", script, directory], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

/** Starts a process that claims the directory as it would in a container. */
async function listening(): Promise<ChildProcess> {
  const child = await begun(
    `require("net").createServer().listen(process.argv[1] + "/claim-" + process.pid + "-0", () => console.log())`,
  );
  claimNames.set(child, `claim-${child.pid}-0`);
  return child;
}

/** Starts a process that claims the directory as it would outside a container. */
async function running(): Promise<ChildProcess> {
  const child = await begun("console.log(); setInterval(() => {}, 1000)");
  const number = statSync(directory, { bigint: true }).ino.toString(36);
  claimNames.set(child, `claim-${child.pid}-0-${number}-${await identityOf(child.pid as number)}`);
  writeFileSync(join(directory, claimOf(child)), "");
  return child;
}

const ways = [
  { where: "in a container", holder: listening },
  ...(isContained ? [] : [{ where: "outside containers", holder: running }]),
];

describe.each(ways)("$where", ({ where, holder }) => {
  beforeEach(() => {
    if (where === "in a container") vi.mocked(ownIdentity).mockResolvedValue(null);
  });
  afterEach(() => void vi.mocked(ownIdentity).mockReset());

  test("a directory has one holder at a time", async () => {
    const first = await claim(directory);
    const sentence = `the journal in ${directory} is in use by process ${process.pid}: a directory can have only one writer, so stop that process or use another directory`;
    await expect(claim(directory)).rejects.toThrow(sentence);
    await expect(claim(directory)).rejects.toThrow(EnvironmentError);
    await first.release();
    expect(readdirSync(directory)).toEqual([]);
    await (await claim(directory)).release();
  });

  test("another process holds it as long as it lives, even while paused", async () => {
    const child = await holder();
    child.kill("SIGSTOP");
    await expect(claim(directory)).rejects.toThrow(`in use by process ${child.pid}`);
    expect(readdirSync(directory)).toEqual([claimOf(child)]);
  });

  test("a reader learns of the holder, and leaves the claim alone", async () => {
    await requireUnclaimed(directory);
    await requireUnclaimed(join(directory, "none"));
    const child = await holder();
    await expect(requireUnclaimed(directory)).rejects.toThrow(
      `the journal in ${directory} is in use by process ${child.pid}: a directory can have only one writer`,
    );
    child.kill("SIGKILL");
    await once(child, "exit");
    await requireUnclaimed(directory);
    expect(readdirSync(directory)).toEqual([claimOf(child)]);
  });

  test("removes the claim of a killed process", async () => {
    const child = await holder();
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(readdirSync(directory)).toEqual([claimOf(child)]);
    const taken = await claim(directory);
    expect(readdirSync(directory)).toEqual([expect.stringMatching(`^claim-${process.pid}-`)]);
    await taken.release();
  });

  test("removes a dead claim without a stat call, which would make Node stop following links: nodejs/node#51142", async () => {
    const child = await holder();
    child.kill("SIGKILL");
    await once(child, "exit");
    const [real, link] = [join(directory, "real.cjs"), join(directory, "link.cjs")];
    writeFileSync(real, "");
    symlinkSync(real, link);
    const { resolve } = createRequire(import.meta.url);
    const known = resolve(real); // From here on, Node has cached the folders.
    const own = await claim(directory);
    expect(resolve(link)).toBe(known);
    await own.release();
  });
});

test.runIf(!isContained)(
  "the folder of a running process has only regular files and can be copied; the copy is unclaimed",
  async () => {
    const held = await claim(directory);
    for (const name of readdirSync(directory)) expect(lstatSync(join(directory, name)).isFile()).toBe(true);
    const copy = `${directory}-copy`;
    cpSync(directory, copy, { recursive: true });
    try {
      await requireUnclaimed(copy);
      const own = await claim(copy);
      await expect(claim(copy)).rejects.toThrow("is in use by process");
      await own.release();
      expect(readdirSync(copy)).toEqual([]);
      await expect(claim(directory)).rejects.toThrow("is in use by process");
    } finally {
      rmSync(copy, { recursive: true });
      await held.release();
    }
  },
);

test("among many simultaneous processes and dead claims, never two hold it", { tags: ["long"] }, async () => {
  for (let round = 0; round < 5; round++) {
    const dead = await ways[round % ways.length]?.holder();
    dead?.kill("SIGKILL");
    await once(dead as ChildProcess, "exit");
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => claim(directory)));
    const held = outcomes.filter((each): each is PromiseFulfilledResult<Claim> => each.status === "fulfilled");
    expect(held.length).toBeLessThanOrEqual(1);
    await Promise.all(held.map(({ value }) => value.release()));
    await (await claim(directory)).release();
  }
});

test.runIf(process.platform === "linux")("a path may be longer than a socket address", async () => {
  directory = join(directory, "long".repeat(40));
  mkdirSync(directory, { recursive: true });
  const held = await claim(directory);
  expect(readdirSync(directory)).toHaveLength(1);
  await expect(claim(directory)).rejects.toThrow("is in use by process");
  await held.release();
  expect(readdirSync(directory)).toEqual([]);
});

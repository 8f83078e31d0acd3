/**
 * Plays the game of examples/turns.ts on real processes to its end. Each cheat must be detected, with a proof that a
 * different process verifies.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformWithOxc } from "vite";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { freePortWith } from "../network/free-ports.ts";
import { CLI, coterie, endAll } from "./cluster-under-test.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-turns-"));
const running = new Set<ChildProcess>();

beforeAll(async () => {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(CLI, "..", "..", ".."), join(folder, "node_modules", "coterie"));
  const source = fileURLToPath(new URL("../../examples/turns.ts", import.meta.url));
  const { code } = await transformWithOxc(readFileSync(source, "utf8"), source);
  writeFileSync(join(folder, "turns.mjs"), code);
});
afterEach(async () => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
  await endAll();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Player {
  readonly output: () => string;
  readonly exited: Promise<number | null>;
}

async function play(game: string, patience: number, cheat?: string): Promise<Player[]> {
  const port = await freePortWith([1, 2, 3]); // The addresses of players.
  return [1, 2, 3].map((player) => {
    const words = ["--player", player, "--players", 3, "--game", game, "--patience", patience, "--port", port, "--bot"];
    const cheating = player === 3 && cheat !== undefined ? ["--cheat", cheat] : [];
    const child = spawn(process.execPath, ["turns.mjs", ...words.map(String), ...cheating], {
      cwd: folder,
      stdio: ["pipe", "pipe", "inherit"],
    });
    running.add(child);
    const chunks: string[] = [];
    child.stdout.setEncoding("utf8").on("data", (text: string) => chunks.push(text));
    return { output: () => chunks.join(""), exited: new Promise((resolve) => child.on("close", resolve)) };
  });
}

test("three players race to the end, and all see the same", async () => {
  const players = await play("fair", 60);
  expect(await Promise.all(players.map(({ exited }) => exited))).toEqual([0, 0, 0]);
  const [first, ...others] = players.map(({ output }) => output());
  expect(first).toMatch(/^won: [123]/m);
  for (const other of others) expect(other).toBe(first);
});

test("a player that reveals a different action than it committed to is caught", { tags: ["long"] }, () =>
  caught("wrong-reveal", 60, "wrong-reveal"),
);

test.each([
  ["equivocation", 60, "equivocation"],
  ["replay", 60, "equivocation|replay|wrong-reveal"],
  ["silence", 5, "silence"], // Longer than an honest player takes on a busy machine.
  ["look-ahead", 5, "silence"],
] as const)("a player that cheats by %s is caught", { tags: ["long"] }, caught);

async function caught(cheat: string, patience: number, how: string): Promise<void> {
  const players = await play(cheat, patience, cheat);
  const honest = players.slice(0, 2);
  expect(await Promise.all(honest.map(({ exited }) => exited))).toEqual([0, 0]);
  for (const [at, { output }] of honest.entries()) {
    expect(output()).toMatch(new RegExp(`player 3 has cheated: (${how})`));
    expect(output()).not.toMatch(/player [12] has cheated/);
    const file = join(folder, `turns-${cheat}`, `proof-by-${at + 1}-against-3.json`);
    expect(existsSync(file)).toBe(true);
  }
  const keys = join(folder, `turns-${cheat}`, "{id}.pub");
  const file = join(folder, `turns-${cheat}`, "proof-by-1-against-3.json");
  const proved = await coterie("verify-proof", file, "--keys", keys, "--json");
  expect(proved.code).toBe(0);
  expect(JSON.parse(proved.stdout)).toMatchObject({ verdict: "proved", culprit: 3, keysCompared: true });
}

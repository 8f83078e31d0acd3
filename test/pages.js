/**
 * Writes every generated page, list, picture and schema. The tests that compare them with the code write them if
 * COTERIE_WRITE_PAGE=1 is set. `npm run pages` writes all of them, and `npm run pages -- costs pictures` those whose
 * names contain one of the words. Afterwards, `git diff` shows the changes. (`npm run screenshots` takes the
 * screenshots.)
 */
import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const words = process.argv.slice(2);

/** Every test that can write the page it compares. */
const all = ["src", "test"]
  .flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
  )
  .filter(
    (file) => file.endsWith(".test.ts") && readFileSync(`${root}${file}`, "utf8").includes("COTERIE_WRITE_PAGE ==="),
  )
  .sort((a, b) => (a < b ? -1 : 1));

const stray = words.filter((word) => !all.some((file) => file.includes(word)));
if (stray.length > 0) {
  const names = all.map((file) => basename(file, ".test.ts")).join(", ");
  process.stderr.write(`pages: expected words that stand in one of ${names}; got ${stray.join(" ")}\n`);
  process.exit(2);
}
const writers = all.filter((file) => words.length === 0 || words.some((word) => file.includes(word)));

/** Runs a command, and shows its output if it fails. */
function run(command, env) {
  return new Promise((resolve) => {
    const printed = [];
    const child = spawn(command, {
      cwd: root,
      shell: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => printed.push(chunk));
    child.on("close", (code) => {
      if (code !== 0) process.stdout.write(Buffer.concat(printed));
      resolve(code === 0);
    });
  });
}

const steps = [
  { name: "build", command: "npm run build" },
  ...writers.map((file) => ({ name: file, command: `npx vitest run ${file} --testTimeout 900000` })),
];
const failed = [];
for (const [at, { name, command }] of steps.entries()) {
  const began = Date.now();
  process.stdout.write(`${at + 1}/${steps.length} ${name} … `);
  const isWell = await run(command, { COTERIE_WRITE_PAGE: "1" });
  process.stdout.write(`${isWell ? "written" : "failed"}, ${Math.round((Date.now() - began) / 1_000)} s\n`);
  if (!isWell) failed.push(name);
  if (!isWell && name === "build") break;
}

const changed = execFileSync("git", ["status", "--short", "--", "README.md", "docs", "scenarios"], {
  cwd: root,
  encoding: "utf8",
});
process.stdout.write(
  changed === "" ? "nothing has changed\n" : `these differ from the last commit, see git diff:\n${changed}`,
);
if (failed.length > 0) process.stdout.write(`failed: ${failed.join(", ")}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;

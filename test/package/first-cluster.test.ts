/**
 * Follows docs/guide/getting-started.md and the next page with the packed tarball in an empty folder: runs the program
 * and the commands as printed, in one shell, and compares each output with the page. The members are upgraded to a
 * later release.
 *
 * @module-tag long
 */
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../e2e/cluster-under-test.ts";
import { buildLaterRelease } from "../e2e/later-release.ts";
import { onFreePorts } from "../network/free-ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PAGES = ["docs/guide/getting-started.md", "docs/guide/changes.md"];
const text = PAGES.map((page) => readFileSync(join(ROOT, page), "utf8")).join("\n");
const elsewhere = mkdtempSync(join(tmpdir(), "coterie-first-cluster-"));
/** Initially empty. It gets `member.js` from the docs pages, and the files that their commands create. */
const folder = join(elsewhere, "stock");

interface Block {
  /** The block's language. Empty for the output of the preceding commands. */
  readonly language: string;
  readonly lines: readonly string[];
}

const blocksIn = (page: string): Block[] =>
  [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({
    language,
    lines: text.trimEnd().split("\n"),
  }));

async function pack(root: string, name: string): Promise<void> {
  const destination = join(elsewhere, name);
  mkdirSync(destination);
  await promisify(execFile)("npm", ["pack", "--ignore-scripts", "--pack-destination", destination], { cwd: root });
}

/** Runs commands one by one and reports the exit code of each. Its jobs end with the shell. */
const SHELL = `
set -m
trap 'kill -9 $(jobs -p) 2>/dev/null' EXIT
while IFS= read -r -u 3 line; do
  eval "$line" 3<&- 4>&-
  echo $? >&4
done`;

/** One terminal, as a reader uses it. */
class Terminal {
  printed = "";
  readonly #codes: AsyncIterator<string>;
  readonly #commands: Writable;
  readonly #ended: Promise<unknown>;

  constructor() {
    const child = spawn("bash", ["-c", SHELL], { cwd: folder, stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"] });
    const [, out, errors, commands, codes] = child.stdio as unknown as [null, Readable, Readable, Writable, Readable];
    for (const stream of [out, errors])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.printed += text;
      });
    this.#commands = commands;
    this.#codes = createInterface({ input: codes })[Symbol.asyncIterator]();
    this.#ended = new Promise((resolve) => child.on("exit", resolve));
  }

  /** Describes the state for a wait that times out. */
  get standing(): string {
    return `the terminal shows\n${this.printed}`;
  }

  /** @returns the exit code of the command */
  async type(command: string): Promise<number> {
    this.printed += `$ ${command}\n`;
    this.#commands.write(`${command}\n`);
    return Number((await this.#codes.next()).value);
  }

  async close(): Promise<void> {
    this.#commands.end();
    await this.#ended;
  }
}

let terminal: Terminal;

beforeAll(async () => {
  mkdirSync(folder);
  await pack(ROOT, "coterie");
  await pack(buildLaterRelease(elsewhere).root, "coterie-next");
  terminal = new Terminal();
});
afterAll(async () => {
  await terminal?.close();
  rmSync(elsewhere, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});

it("leads from an empty folder to a cluster that was killed, grown, shrunk and upgraded", async () => {
  const blocks = blocksIn(await onFreePorts(text));
  const seen = new Set<string>();
  let from = 0;
  for (const { language, lines } of blocks) {
    seen.add(language);
    if (language === "js") writeFileSync(join(folder, "member.js"), `${lines.join("\n")}\n`);
    if (language === "sh") {
      from = terminal.printed.length;
      for (const line of lines) {
        const code = await terminal.type(line);
        // A command that waits for a process returns that process's exit code.
        if (!line.includes("wait")) expect({ line, code, printed: terminal.printed }).toMatchObject({ code: 0 });
      }
    }
    if (language === "")
      for (const line of lines)
        await until(`the page's line is printed: ${line}`, () => terminal.printed.slice(from).includes(line), terminal);
  }
  expect([...seen].toSorted()).toEqual(["", "js", "sh", "ts"]); // test/docs/examples.test.ts runs the last one.
});

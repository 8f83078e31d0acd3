/**
 * Runs the examples of docs/guide/engines as printed, in an empty folder with the packed tarball, against a server of
 * the test.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PATIENCE_MS } from "../../patience.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url));
const page = readFileSync(join(root, "docs/guide/engines.md"), "utf8");
const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  devDependencies: Record<string, string>;
};

/**
 * Returns the packages to install for an engine, from the page's table.
 * @param title the title of the engine's page
 */
function neededBy(title: string): readonly string[] {
  const row = page.split("\n").find((line) => line.startsWith(`| [${title}]`)) ?? "";
  const [, names] = /`npm install ([^`]+)`/.exec(row) ?? [];
  if (names === undefined && !row.includes("| no package;"))
    throw new Error(`the table does not list the packages for ${title}`);
  return names?.split(" ") ?? [];
}

/**
 * Folders of users who have installed the packed tarball. Each folder contains the package, the packages of one engine,
 * and nothing else.
 */
export class PackedUsers {
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-engines-"));

  static async install(): Promise<PackedUsers> {
    const users = new PackedUsers();
    const base = users.#folderOf("none");
    await run("npm", ["pack", "--ignore-scripts", "--pack-destination", users.#folder], { cwd: root });
    mkdirSync(base);
    await run("npm", ["init", "--yes"], { cwd: base });
    await run("npm", ["pkg", "set", "type=module"], { cwd: base });
    await install(base, [join(users.#folder, "coterie-0.1.0.tgz")]);
    return users;
  }

  /** @returns the output of the page's example, and the expected output on the page */
  async runExample(title: string, port: number): Promise<{ printed: string; expected: string }> {
    const folder = this.#folderOf(title);
    // Hard links are safe: npm replaces files and never modifies them.
    await run("cp", ["--recursive", "--link", this.#folderOf("none"), folder]);
    const needed = neededBy(title);
    if (needed.length > 0)
      await install(
        folder,
        needed.map((name) => `${name}@${devDependencies[name]}`),
      );
    return this.#run(title, folder, port);
  }

  /** @returns the error of the page's example without the engine's packages; null for an engine that needs none */
  async runWithout(title: string, port: number): Promise<{ error: string; needed: readonly string[] } | null> {
    const needed = neededBy(title);
    if (needed.length === 0) return null;
    const ended = this.#run(title, this.#folderOf("none"), port);
    const error = await ended.then(
      () => "it ran",
      (failed: unknown) => (failed as { stderr: string }).stderr,
    );
    return { error, needed };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #run(title: string, folder: string, port: number): Promise<{ printed: string; expected: string }> {
    const example = readFileSync(join(root, `docs/guide/engines/${title.toLowerCase()}.md`), "utf8");
    const [, program = "", expected = ""] = /```js\n(.*?)```\n\n```text\n(.*?)```/s.exec(example) ?? [];
    writeFileSync(join(folder, "example.js"), program.replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`));
    const { stdout } = await run(process.execPath, ["example.js"], { cwd: folder, timeout: PATIENCE_MS });
    return { printed: stdout, expected };
  }

  #folderOf(title: string): string {
    return join(this.#folder, title.toLowerCase());
  }
}

const install = (folder: string, packages: readonly string[]): Promise<unknown> =>
  run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", ...packages], { cwd: folder });

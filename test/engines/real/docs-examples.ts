/** The examples of docs/engines.md: run as they are printed, with the packed tarball in an empty folder, against a server of the test. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const page = readFileSync(join(ROOT, "docs/engines.md"), "utf8");
const run = promisify(execFile);

/** Where a user has installed Coterie, and what the page says that engines need. */
export class UsersFolder {
  private constructor(private readonly folder: string) {}

  static async make(): Promise<UsersFolder> {
    const folder = mkdtempSync(join(tmpdir(), "coterie-engines-"));
    const { stdout } = await run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], {
      cwd: ROOT,
    });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const users = new UsersFolder(folder);
    await users.#install(join(folder, stdout.trim()));
    return users;
  }

  /** @param title of the engine's section, and of its row in the table. @returns what its example prints, and what the page says of it. */
  async runExample(title: string, port: number): Promise<{ printed: string; expected: string }> {
    const row = page.split("\n").find((line) => line.startsWith(`| [${title}]`)) ?? "";
    const [, packages] = /`npm install ([^`]+)`/.exec(row) ?? [];
    if (packages !== undefined) await this.#install(...packages.split(" "));
    const section = page.split(/^## /m).find((each) => each.startsWith(`${title}\n`)) ?? "";
    const [, program = "", expected = ""] = /```js\n(.*?)```\n\n```text\n(.*?)```/s.exec(section) ?? [];
    const example = join(this.folder, `example-${port}.js`);
    writeFileSync(example, program.replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`));
    const { stdout } = await run(process.execPath, [example], { cwd: this.folder, timeout: 60_000 });
    return { printed: stdout, expected };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #install(...packages: string[]): Promise<void> {
    await run("npm", ["install", "--no-audit", "--no-fund", ...packages], { cwd: this.folder });
  }
}

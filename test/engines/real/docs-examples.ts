/** The examples of docs/engines: run as they are printed, from an empty folder with the packed tarball, against a server of the test. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url));
const page = readFileSync(join(root, "docs/engines.md"), "utf8");
const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  devDependencies: Record<string, string>;
};

/** Where a user has installed Coterie, as it was built, and what the page says that engines need. */
export class PackedUser {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async install(): Promise<PackedUser> {
    const folder = mkdtempSync(join(tmpdir(), "coterie-engines-"));
    await run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: root });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const needed = [...page.matchAll(/`npm install ([^`]+)`/g)].flatMap(([, names = ""]) => names.split(" "));
    const packages = needed.map((name) => `${name}@${devDependencies[name]}`);
    const tarball = join(folder, "coterie-0.1.0.tgz");
    await run("npm", ["install", "--no-audit", "--no-fund", tarball, ...packages], { cwd: folder });
    return new PackedUser(folder);
  }

  /** @param title as its page begins. @returns what it prints, and what the page says of it. */
  async runExample(title: string, port: number): Promise<{ printed: string; expected: string }> {
    const example = readFileSync(join(root, `docs/engines/${title.toLowerCase()}.md`), "utf8");
    const [, program = "", expected = ""] = /```js\n(.*?)```\n\n```text\n(.*?)```/s.exec(example) ?? [];
    const file = join(this.#folder, `example-${port}.js`);
    writeFileSync(file, program.replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`));
    const { stdout } = await run(process.execPath, [file], { cwd: this.#folder, timeout: 60_000 });
    return { printed: stdout, expected };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/**
 * `npm run docs` builds the documentation site in build/site: the pages of docs/ except docs/internals, the API
 * reference that TypeDoc generates from the doc comments, and the laboratory. `npm run docs -- --serve` also serves it
 * on this machine.
 *
 * COTERIE_BASE is the base path of the site (default `/`). COTERIE_REPOSITORY is the URL of the published repository.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const laboratory = join(root, "dist/studio");
const pages = join(root, "site/build/docs");
const out = join(root, "build/site");
const say = (line: string): void => void process.stdout.write(`${line}\n`);

function fail(line: string): never {
  process.stderr.write(`docs: ${line}\n`);
  process.exit(1);
}

/** Returns the path of a program in site/node_modules. */
function programOf(name: string, path: string): string {
  try {
    return join(dirname(createRequire(join(root, "site/package.json")).resolve(`${name}/package.json`)), path);
  } catch {
    return fail(`expected ${name} in site/node_modules: run \`npm ci --prefix site\``);
  }
}

function run(program: string, words: readonly string[]): void {
  execFileSync(process.execPath, [program, ...words], {
    cwd: join(root, "site"),
    stdio: ["ignore", "inherit", "inherit"],
  });
}

function sizeOf(folder: string, isCounted: (file: string) => boolean): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(isCounted);
  return files.reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}

if (!existsSync(join(laboratory, "laboratory.html")))
  fail("expected the laboratory in dist/studio: run `npm run build`");
const began = Date.now();
const [typedoc, vitepress] = [programOf("typedoc", "bin/typedoc"), programOf("vitepress", "bin/vitepress.js")];
for (const folder of [pages, out]) rmSync(folder, { recursive: true, force: true });
cpSync(join(root, "docs"), pages, {
  recursive: true,
  filter: (from) => !relative(join(root, "docs"), from).startsWith("internals"),
});
run(typedoc, ["--options", "typedoc.json", "--logLevel", "Error"]);
cpSync(join(root, "studio/src/frame/mark.svg"), join(pages, "public/mark.svg"));
run(vitepress, ["build", "."]);
cpSync(laboratory, join(out, "laboratory"), { recursive: true });
const megabytes = (sizeOf(out, () => true) / 1_000_000).toFixed(1);
const count = readdirSync(out, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".html")).length;
say(`the site is in build/site: ${count} pages, ${megabytes} MB, in ${((Date.now() - began) / 1_000).toFixed(1)} s`);
if (process.argv.includes("--serve")) run(vitepress, ["serve", ".", "--port", "4400"]);

/**
 * `npm run docs` builds the documentation site from docs/ in build/site: files for any static host, under any path.
 * `npm run docs -- --serve` shows it on this machine.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, preview } from "vite";
import type { Assets } from "./layout.ts";
import { siteOf } from "./site.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const laboratory = join(root, "dist/studio");
const out = join(root, "build/site");
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Script, style and mark of all pages, with names that change when they do. */
async function assetsIn(folder: string): Promise<Assets> {
  const result = await build({
    configFile: false,
    root: fileURLToPath(new URL("client", import.meta.url)),
    base: "./",
    logLevel: "warn",
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: "es2023",
      cssTarget: ["chrome123", "firefox120", "safari17.5"],
      modulePreload: { polyfill: false },
      rolldownOptions: { input: fileURLToPath(new URL("client/site.ts", import.meta.url)) },
    },
  });
  const output = "output" in result ? result.output : [];
  const script = output.find((file) => file.type === "chunk" && file.isEntry)?.fileName;
  const styles = output.map(({ fileName }) => fileName).filter((name) => name.endsWith(".css"));
  if (script === undefined) throw new Error("expected a script for the pages, got none");
  return { script, styles, icon: "assets/mark.svg" };
}

function put(address: string, text: string): void {
  const file = join(out, address);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function sizeOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((file) => statSync(join(file.parentPath, file.name)).size).reduce((a, b) => a + b, 0);
}

if (!existsSync(join(laboratory, "laboratory.html"))) {
  process.stderr.write("docs: expected the laboratory in dist/studio, which is not there: run `npm run build`\n");
  process.exit(1);
}
const began = Date.now();
rmSync(out, { recursive: true, force: true });
const assets = await assetsIn(out);
say(`script and style: ${[assets.script, ...assets.styles].join(", ")}`);
const site = siteOf(root, assets);
for (const [address, text] of site.texts) put(address, text);
say(`${site.pages} pages of docs/, ${site.sources} files and folders of code that they link to`);
for (const [address, path] of site.pictures) cpSync(join(root, path), join(out, address));
cpSync(join(root, "studio/src/frame/mark.svg"), join(out, assets.icon));
say(`${site.pictures.size} pictures`);
cpSync(laboratory, join(out, "laboratory"), { recursive: true });
say("the laboratory, from dist/studio");
const megabytes = (sizeOf(out) / 1_000_000).toFixed(1);
say(`the site is in build/site: ${megabytes} MB, in ${((Date.now() - began) / 1_000).toFixed(1)} s`);

if (process.argv.includes("--serve")) {
  const server = await preview({
    configFile: false,
    root,
    appType: "mpa",
    build: { outDir: out },
    preview: { host: "127.0.0.1", port: 4_400 },
  });
  say(`read it at ${server.resolvedUrls?.local[0]}`);
} else say("copy it to any static host, or read it by `npm run docs -- --serve`");

/**
 * Builds the package with the later handshake of `test/testing/later-release.ts`. Its members can run together with
 * members of the current release.
 */
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { patched } from "../seeded-bugs/patch.ts";
import { laterHandshake } from "../testing/later-release.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SOURCES = ["src", "package.json", "vite.config.ts"];

/** @returns the location of the package, below `folder` */
export function buildLaterRelease(folder: string): { readonly root: string; readonly packageUrl: string } {
  const root = join(folder, "later-release");
  for (const source of SOURCES) cpSync(join(ROOT, source), join(root, source), { recursive: true });
  for (const change of laterHandshake) {
    const file = join(root, change.file);
    writeFileSync(file, patched(readFileSync(file, "utf8"), change));
  }
  symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  execFileSync(join(ROOT, "node_modules/.bin/vite"), ["build", "--logLevel", "warn"], { cwd: root });
  return { root, packageUrl: pathToFileURL(join(root, "dist/index.js")).href };
}

/**
 * Checks that `import "coterie"` loads none of the packages that only admin pages, scenario files and commands need.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { freePorts } from "../network/free-ports.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** From this folder, only @noble/hashes can be loaded. That package has no dependencies. */
const elsewhere = mkdtempSync(join(tmpdir(), "coterie-import-"));
const installed = join(elsewhere, "node_modules", "coterie");
cpSync(join(ROOT, "dist"), join(installed, "dist"), { recursive: true });
cpSync(join(ROOT, "package.json"), join(installed, "package.json"));
cpSync(join(ROOT, "node_modules", "@noble", "hashes"), join(elsewhere, "node_modules", "@noble", "hashes"), {
  recursive: true,
});
afterAll(() => rmSync(elsewhere, { recursive: true }));

const run = (program: string): string =>
  execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: elsewhere, encoding: "utf8" });

test.each(["coterie", "coterie/core", "coterie/protocols"])(
  "%s is imported with @noble/hashes as its only dependency",
  (name) => {
    expect(run(`console.log(typeof await import("${name}"))`)).toBe("object\n");
  },
);

test("a member without admin pages joins, locks and leaves without them, too", async () => {
  const [port] = await freePorts(1);
  const program = `
    import { join } from "coterie";
    const member = await join({ id: 1, members: { 1: "127.0.0.1:${port}" }, dataDir: "./data" });
    await member.mutex("invoice").use(({ token }) => console.log(typeof token));
    await member.leave();`;
  expect(run(program)).toBe("number\n");
});

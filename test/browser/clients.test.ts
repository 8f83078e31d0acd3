/** Runs a page in a real browser that uses a cluster: it connects, writes, watches, and holds a lock. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { expect, test } from "vitest";
import { join } from "../../src/index.ts";
import { freePorts } from "../network/free-ports.ts";
import { launch, noBrowser } from "./chromium.ts";

/** Returns `coterie/client` as one script. Bundling it proves that it uses no Node module. */
async function script(): Promise<string> {
  const warnings: string[] = [];
  const built = await build({
    configFile: false,
    logLevel: "warn",
    customLogger: {
      info() {},
      warn: (text) => warnings.push(text),
      warnOnce: (text) => warnings.push(text),
      error: (text) => warnings.push(text),
      clearScreen() {},
      hasErrorLogged: () => false,
      hasWarned: false,
    },
    build: {
      write: false,
      minify: false,
      lib: {
        entry: fileURLToPath(new URL("../../src/client/index.ts", import.meta.url)),
        formats: ["iife"],
        name: "coterie",
      },
    },
  });
  expect(warnings.filter((text) => text.includes("node:"))).toEqual([]);
  const [output] = Array.isArray(built) ? built : [built];
  if (output === undefined || !("output" in output)) throw new Error("expected the bundler to give its output");
  return output.output[0].code;
}

const inPage = `(async () => {
  const client = await coterie.connect({ endpoints: [location.origin] });
  const stock = client.map("stock");
  const changes = stock.watch();
  await stock.put("apples", { crates: 3 });
  await stock.put("bytes", new Uint8Array([0, 200, 255]));
  const { value: first } = await changes.next();
  const { value: second } = await changes.next();
  const lock = await client.mutex("page").acquire();
  const held = lock.isHeld;
  await lock.release();
  const total = await client.counter("pages").add(2);
  await client.close();
  return { first: first.value, bytes: [...second.value], held, total };
})()`;

test.skipIf(noBrowser !== null)("a page connects, puts, watches and locks", async () => {
  const folder = mkdtempSync(path(tmpdir(), "coterie-page-"));
  const [own, clients] = await freePorts(2);
  const member = await join({
    id: 1,
    members: { 1: `127.0.0.1:${own}` },
    dataDir: folder,
    timing: "patient", // The page must still hold its lock when it checks.
    clients: `127.0.0.1:${clients}`,
  });
  const browser = await launch();
  try {
    const page = await browser.newPage();
    await page.goto(`${member.clients}/openapi.json`);
    await page.addScriptTag({ content: await script() });
    expect(await page.evaluate(inPage)).toEqual({
      first: { crates: 3 },
      bytes: [0, 200, 255],
      held: true,
      total: 2,
    });
    expect(await member.map("stock").get("apples")).toEqual({ crates: 3 });
  } finally {
    await browser.close();
    await member.leave();
    rmSync(folder, { recursive: true, force: true });
  }
});

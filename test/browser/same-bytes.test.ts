/** Checks that equal seeds give equal bytes: twice in Node, and in a real browser. */
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { describe, expect, test } from "vitest";
import { launch, noBrowser } from "./chromium.ts";
import { runs } from "./same-bytes-run.ts";

if (noBrowser !== null) console.warn(`The browser tests are skipped: ${noBrowser}.`);

/** Returns the runs as one script that sets `sameBytes.runs`. */
async function script(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: "error",
    build: {
      write: false,
      minify: false,
      lib: {
        entry: fileURLToPath(new URL("./same-bytes-run.ts", import.meta.url)),
        formats: ["iife"],
        name: "sameBytes",
      },
    },
  });
  const [output] = Array.isArray(built) ? built : [built];
  if (output === undefined || !("output" in output)) throw new Error("expected the bundler to give its output");
  return output.output[0].code;
}

describe("a run depends only on its seed", () => {
  const first = runs();

  test("the runs are worth comparing: long, all different, with every kind of randomness", () => {
    const texts = Object.values(first);
    expect(new Set(texts).size).toBe(texts.length);
    const all = texts.join("\n");
    for (const kind of ["send", "receive", "lost", "timeout", "choice", "pause", "resume", "crash", "fault", "view"])
      expect(all).toContain(`"kind":"${kind}"`);
    expect(all.split("\n").length).toBeGreaterThan(5_000);
  });

  test("twice in Node", () => {
    const second = runs();
    for (const [name, text] of Object.entries(first)) expect(second[name] === text, name).toBe(true);
  });

  test.skipIf(noBrowser !== null)("once in Node and once in a browser", async () => {
    const browser = await launch();
    try {
      const page = await browser.newPage();
      await page.addScriptTag({ content: await script() });
      const there = await page.evaluate<Record<string, string>>("sameBytes.runs()");
      expect(Object.keys(there)).toEqual(Object.keys(first));
      for (const [name, text] of Object.entries(first)) expect(there[name] === text, name).toBe(true);
    } finally {
      await browser.close();
    }
  });
});

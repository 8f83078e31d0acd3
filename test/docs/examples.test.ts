/** Runs the examples of the docs as printed, against the built package, under its own name. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { transformWithOxc } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { onFreePorts } from "../network/free-ports.ts";
import { PATIENCE_MS } from "../patience.ts";
import { anchors, blocks, linksOf, pages, root } from "./markdown.ts";

/** Inside the package, so that `import "coterie"` resolves to it. */
const workshop = join(root, "build", "examples");

const examples = blocks
  .filter(({ language }) => language === "ts")
  .map(({ text: code, ...place }) => ({ ...place, code }));

/** Whether the code uses decorators, as with NestJS. Such programs are run the way users run them. */
const hasDecorators = (code: string): boolean => /^@\w/m.test(code);
/** The loader reads the tsconfig.json of the folder. */
const TSX = import.meta.resolve("tsx/esm");

/**
 * Returns the expected output in the comments after `console.log` lines: the text up to a colon with an explanation.
 */
function printedBy(code: string): string[] {
  return [...code.matchAll(/^console\.log\(.*\); \/\/ (.*)$/gm)].map(
    (match) => (match[1] as string).split(": safety")[0] as string,
  );
}

/** Returns headings in the form that links use, and anchors that a page defines itself. */
function headingsOf(page: string): string[] {
  const text = readFileSync(join(root, page), "utf8").replaceAll(/^```.*?^```/gms, "");
  const nameOf = anchors();
  const places = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id);
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => nameOf(title));
  return [...headings, ...places];
}

describe("the docs", () => {
  beforeAll(() => {
    mkdirSync(workshop, { recursive: true });
    writeFileSync(join(workshop, "tsconfig.json"), '{ "compilerOptions": { "experimentalDecorators": true } }');
  });
  afterAll(() => rmSync(workshop, { recursive: true, force: true }));

  test("have examples, and state their output", () => {
    expect(examples.map(({ page }) => page)).toContain("README.md");
    expect(examples.flatMap(({ code }) => printedBy(code)).length).toBeGreaterThan(0);
  });

  test.each(examples)("$page line $line runs and prints the stated output", async ({ page, line, code }) => {
    const own = await onFreePorts(code);
    const ending = hasDecorators(own) ? "mts" : "mjs";
    const file = join(workshop, `${page.replaceAll(/\W/g, "-")}-${line}.${ending}`);
    writeFileSync(file, hasDecorators(own) ? own : (await transformWithOxc(own, "example.ts")).code);
    const loader = hasDecorators(own) ? ["--import", TSX] : [];
    const args = [...loader, file];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: workshop, timeout: PATIENCE_MS });
    for (const line of printedBy(own)) expect(stdout).toContain(line);
  });

  test.each(pages)("%s links to files that exist, and to headings in them", (page) => {
    const broken = linksOf(page).filter(({ file, heading }) => {
      if (!existsSync(join(root, file))) return true;
      return heading !== "" && file.endsWith(".md") && !headingsOf(file).includes(heading);
    });
    expect(broken).toEqual([]);
  });
});

/** Compiles each example of the docs. examples.test.ts also runs the `ts` examples that are complete programs. */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { type Fragment, fragments, runElsewhere } from "./fragments.ts";
import { type Block, blocks, root } from "./markdown.ts";

/** Inside the package, so that `import "coterie"` resolves to the build. */
const workshop = join(root, "build", "fragments");
const programs = join(workshop, "programs");
const examples = blocks.filter(({ language }) => language === "typescript" || language === "js");
const compilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true, // Ignore the types of other packages.
  target: "esnext",
  module: "nodenext",
  moduleDetection: "force",
  experimentalDecorators: true,
  types: ["node"],
};

const nameOf = ({ page, line }: Block): string => `${page.replaceAll(/\W/g, "-")}-${line}.ts`;

const fragmentsFor = ({ page, text }: Block): readonly Fragment[] =>
  fragments.filter((fragment) => fragment.page === page && text.startsWith(fragment.begins));

afterAll(() => rmSync(workshop, { recursive: true, force: true }));

test("each is run by another test, or is a fragment that is compiled", () => {
  const unknown = examples.filter((block) => !(block.page in runElsewhere) && fragmentsFor(block).length !== 1);
  expect(unknown.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  const needless = fragments.filter((fragment) => !examples.some((block) => fragmentsFor(block).includes(fragment)));
  expect(needless.map(({ page, begins }) => `${page}: ${begins}`)).toEqual([]);
});

/** Returns the compiler's output for the files in a folder. */
async function compiled(folder: string, options: object): Promise<string> {
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions: { ...compilerOptions, ...options }, include: ["*.ts"] }),
  );
  const tsc = join(root, "node_modules", ".bin", "tsc");
  return promisify(execFile)(tsc, ["-p", folder], { cwd: root }).then(
    () => "",
    (error: unknown) => (error as { stdout: string }).stdout,
  );
}

test("the fragments compile against the types of the package", async () => {
  mkdirSync(workshop, { recursive: true });
  for (const block of examples) {
    const [fragment] = fragmentsFor(block);
    if (fragment === undefined) continue;
    const { given = "", whole = (text: string) => text } = fragment;
    writeFileSync(join(workshop, nameOf(block)), `${given}${whole(block.text)}\nexport {};\n`);
  }
  expect(await compiled(workshop, { noImplicitAny: false })).toBe(""); // Some examples are JavaScript.
});

test("the programs compile as a user's would", async () => {
  mkdirSync(programs, { recursive: true });
  const whole = blocks.filter(({ language }) => language === "ts");
  expect(whole.map(({ page }) => page)).toContain("docs/verify/own-protocol.md");
  for (const block of whole) writeFileSync(join(programs, nameOf(block)), `${block.text}\nexport {};\n`);
  expect(await compiled(programs, {})).toBe("");
});

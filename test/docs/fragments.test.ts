/** Each example of the docs is run or compiled: `ts` is run by examples.test.ts, `typescript` and `js` are looked at here. */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { type Fragment, fragments, runElsewhere } from "./fragments.ts";
import { type Block, blocks, root } from "./markdown.ts";

/** Inside the package, so that `import "coterie"` means this one, as it was built. */
const workshop = join(root, "build", "fragments");
const examples = blocks.filter(({ language }) => language === "typescript" || language === "js");
const compilerOptions = {
  strict: true,
  noImplicitAny: false, // Some are JavaScript.
  noEmit: true,
  skipLibCheck: true, // The types of others are not ours to check.
  target: "esnext",
  module: "nodenext",
  moduleDetection: "force",
  experimentalDecorators: true,
  types: ["node"],
};

const fragmentsFor = ({ page, text }: Block): readonly Fragment[] =>
  fragments.filter((fragment) => fragment.page === page && text.startsWith(fragment.begins));

afterAll(() => rmSync(workshop, { recursive: true, force: true }));

test("each is run by another test, or is a fragment that is compiled", () => {
  const unknown = examples.filter((block) => !(block.page in runElsewhere) && fragmentsFor(block).length !== 1);
  expect(unknown.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  const needless = fragments.filter((fragment) => !examples.some((block) => fragmentsFor(block).includes(fragment)));
  expect(needless.map(({ page, begins }) => `${page}: ${begins}`)).toEqual([]);
});

test("the fragments compile against the types of the package", async () => {
  mkdirSync(workshop, { recursive: true });
  for (const block of examples) {
    const [fragment] = fragmentsFor(block);
    if (fragment === undefined) continue;
    const { given = "", whole = (text: string) => text } = fragment;
    const name = `${block.page.replaceAll(/\W/g, "-")}-${block.line}.ts`;
    writeFileSync(join(workshop, name), `${given}${whole(block.text)}\nexport {};\n`);
  }
  writeFileSync(join(workshop, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const said = await promisify(execFile)(tsc, ["-p", workshop], { cwd: root }).then(
    () => "",
    (error: unknown) => (error as { stdout: string }).stdout,
  );
  expect(said).toBe("");
});

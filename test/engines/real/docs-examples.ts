/** The examples of docs/engines.md: run as they are printed, against a server of the test. */
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const page = readFileSync(new URL("../../../docs/engines.md", import.meta.url), "utf8");

/** @param title of its section. @returns what it prints, and what the page says of it. */
export async function runExample(title: string, port: number): Promise<{ printed: string; expected: string }> {
  const section = page.split(/^## /m).find((each) => each.startsWith(`${title}\n`)) ?? "";
  const [, program = "", expected = ""] = /```js\n(.*?)```\n\n```text\n(.*?)```/s.exec(section) ?? [];
  const here = new URL(`example-${port}.ts`, import.meta.url);
  const text = program
    .replace('"coterie"', '"../../../src/index.ts"')
    .replace(/"coterie\/engines\/(\w+)"/, '"../../../src/engines/$1.ts"')
    .replace(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`);
  writeFileSync(here, text);
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", fileURLToPath(here)], {
      timeout: 60_000,
    });
    return { printed: stdout, expected };
  } finally {
    rmSync(here);
  }
}

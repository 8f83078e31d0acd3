/**
 * Checks that every error code in the sources is in `src/runtime/error-codes.ts`, and that the tables of
 * docs/reference/errors.md contain its texts. `npm run pages -- errors` writes them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { refusalOf } from "../../src/cluster/services/state/refusals.ts";
import { refusalCodes } from "../../src/protocols/service/coordination-service/operations.ts";
import { errorCodes, linkRefusals, pageCodes, phases } from "../../src/runtime/error-codes.ts";
import { refusals } from "../../src/runtime/transport/frames.ts";
import { code, isTest } from "../tidy/house.ts";
import { root } from "./markdown.ts";

type Texts = Readonly<Record<string, string>>;
type ErrorClass = keyof typeof errorCodes;

const REGISTRY = "src/runtime/error-codes.ts";
const topicsOf = (name: ErrorClass): Readonly<Record<string, Texts>> => errorCodes[name];
const codesOf = (name: ErrorClass): Texts => Object.assign({}, ...Object.values(topicsOf(name)));
const all: Texts = Object.assign({}, ...(Object.keys(errorCodes) as ErrorClass[]).map(codesOf), pageCodes);

const sources = code.filter(({ path }) => path.startsWith("src/") && !isTest(path) && path !== REGISTRY);

interface Thrown {
  readonly path: string;
  readonly name: ErrorClass;
  readonly code: string;
}

/** Codes in the first argument of the constructor of an error: literals, or constants of the same file. */
const thrown: readonly Thrown[] = sources.flatMap(({ path, text }) =>
  [...text.matchAll(/new (CoordinationError|UsageError|EnvironmentError|InvariantViolation)\(\s*([^,]*),/g)].flatMap(
    ([, name, argument = ""]) => {
      const constant = new RegExp(`const ${argument.trim()} = ("[^"]*")`).exec(text)?.[1];
      const literals = constant ?? argument.replaceAll(/=== "[^"]*"/g, "");
      return [...literals.matchAll(/"([a-z]+(?:-[a-z]+)*)"/g)].map(([, code = ""]) => ({
        path,
        name: name as ErrorClass,
        code,
      }));
    },
  ),
);

/** Codes in the answers of pages and in the last message to a client. */
const answered = sources
  .filter(({ path }) => path.startsWith("src/cluster/clients/"))
  .flatMap(({ path, text }) =>
    [...text.matchAll(/\bcode: "([^"]+)"|\.(?:dismiss|refuse)\(\s*"([^"]+)"/g)].map(([, body, goodbye]) => ({
      path,
      code: body ?? (goodbye as string),
    })),
  );

describe("the table of error codes", () => {
  test("has every code that is thrown, under its class", () => {
    expect(thrown.length).toBeGreaterThan(300);
    expect(thrown.filter(({ name, code }) => !Object.hasOwn(codesOf(name), code))).toEqual([]);
  });

  test("has every code of an answer", () => {
    expect(answered.length).toBeGreaterThan(10);
    expect(answered.filter(({ code }) => !Object.hasOwn(all, code))).toEqual([]);
  });

  test.each(refusalCodes)("has the code that callers get if the service rejects with %s", (code) => {
    const error = refusalOf({ type: "refused", code, reason: "" });
    expect(Object.keys(codesOf(error.constructor.name as ErrorClass))).toContain(error.code);
  });

  test("has every reason why members reject a link", () => {
    expect(Object.keys(linkRefusals)).toEqual([...refusals, "unknown"]);
  });

  test("has no code without an error", () => {
    const text = sources.map((each) => each.text).join("\n");
    const isMade = (code: string): boolean =>
      text.includes(`"${code}"`) || /^cannot-(open|make|write)-journal$/.test(code);
    expect(Object.keys(all).filter((code) => !isMade(code))).toEqual([]);
  });

  test("states the meaning and a remedy of each code", () => {
    const texts = Object.entries({ ...all, ...phases, ...linkRefusals });
    expect(texts.filter(([, text]) => rowOf("", text).includes("|  |") || !text.endsWith("."))).toEqual([]);
  });
});

/** Formats the row of a code. The first sentence of its text is the meaning, and the rest is the remedy. */
function rowOf(code: string, text: string): string {
  const [meaning = "", ...rest] = text.split(/(?<=\.) (?=[A-Z`])/);
  const cells = [meaning, rest.join(" ")].map((cell) => cell.replace(/\.$/, "").replaceAll("|", "\\|"));
  return `| \`${code}\` | ${cells.join(" | ")} |\n`;
}

const tableOf = (head: string, texts: Texts): string =>
  `| ${head} | Meaning | Action |\n|---|---|---|\n${Object.entries(texts)
    .map(([code, text]) => rowOf(code, text))
    .join("")}`;

const tables: Readonly<Record<string, string>> = {
  phases: tableOf("Phase", phases),
  pages: tableOf("Code", pageCodes),
  links: tableOf("Reason", linkRefusals),
  ...Object.fromEntries(
    (Object.keys(errorCodes) as ErrorClass[]).map((name) => [
      name,
      Object.entries(topicsOf(name))
        .map(([topic, texts]) => `### ${topic}\n\n${tableOf("Code", texts)}`)
        .join("\n"),
    ]),
  ),
};

test("docs/reference/errors.md has the texts of the table", () => {
  const file = join(root, "docs/reference/errors.md");
  const page = readFileSync(file, "utf8");
  const written = page.replaceAll(
    /(<!-- errors: (\w+) -->\n).*?(<!-- end -->)/gs,
    (_all, begin: string, name: string, end: string) => [begin, tables[name], end].join(""),
  );
  for (const name of Object.keys(tables)) expect(page).toContain(`<!-- errors: ${name} -->\n`);
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, written);
  expect(readFileSync(file, "utf8")).toBe(written);
});

/**
 * Ensures that phrases that no native engineer would write become rarer. `english.json` contains the maximum rate for
 * each group of files, per 10,000 words. Groups that it does not list have the limit of their kind.
 * `COTERIE_WRITE_PAGE=1` lowers the rates, and never raises one.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findingsIn, type Kind, patternNames, perTenThousand, ratesOf } from "./english.ts";
import { type HouseFile, house } from "./house.ts";

const LIMITS: Readonly<Record<Kind, number>> = { docs: 5, comments: 10, strings: 10, "test names": 10 };
const FILE = new URL("english.json", import.meta.url);

const kept = JSON.parse(readFileSync(FILE, "utf8")) as Readonly<Record<string, number>>;
const rates = new Map([...ratesOf(house)].map(([group, rate]) => [group, perTenThousand(rate)]));
const limitOf = (group: string): number => LIMITS[group.split(":")[0] as Kind];

if (process.env.COTERIE_WRITE_PAGE === "1") {
  const lower = [...rates]
    .filter(([group, rate]) => rate > limitOf(group))
    .map(([group, rate]) => [group, Math.min(rate, kept[group] ?? rate)] as const);
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(lower), null, 2)}\n`);
}

/** Returns tables with an empty header cell. */
function withoutHeads({ path, text }: HouseFile): string[] {
  const prose = text.replaceAll(/^```.*?^```/gms, "");
  return [...prose.matchAll(/^\|(.*)\|\n\|[ :|-]+\|$/gm)].flatMap(([whole, head = ""]) =>
    head.split(/(?<!\\)\|/).some((cell) => cell.trim() === "") ? [`${path}: ${whole.split("\n")[0]}`] : [],
  );
}

describe("plain English", () => {
  it("no group of files gets worse", () => {
    const worse = [...rates].flatMap(([group, rate]) => {
      const limit = kept[group] ?? limitOf(group);
      return rate > limit ? [`${group}: ${rate} per 10,000 words, at most ${limit}; see npm run english`] : [];
    });
    expect(worse).toEqual([]);
  });

  it("the recorded rates are as low as they can be", () => {
    const tooHigh = Object.entries(kept).filter(
      ([group, limit]) => limit > Math.max(rates.get(group) ?? 0, limitOf(group)) + 3,
    );
    expect(
      tooHigh.map(([group]) => `${group}: run COTERIE_WRITE_PAGE=1 npx vitest run test/tidy/english.test.ts`),
    ).toEqual([]);
  });

  it.each(["README.md", "docs/guide/getting-started.md"])("%s has none", (path) => {
    const file = house.find((each) => each.path === path) as HouseFile;
    expect([...ratesOf([file]).values()].flatMap(({ findings }) => findings)).toEqual([]);
  });

  it("each column of a table has a header", () => {
    expect(house.filter(({ path }) => path.endsWith(".md")).flatMap(withoutHeads)).toEqual([]);
  });

  it.each([
    "What is refused is counted.",
    "The node keeps what it says.",
    "who crashes, who is late",
    "then nobody leads",
    "The caller is told the reason.",
    "`tls` is that of `ioredis`",
    "The list stands in protocol.ts.",
    "The others go on.",
    "The count begins anew.",
    "At most so many nodes crash.",
    "Where nodes crash, messages are lost.",
    "clients are no members, a client is no member",
    "Of all clients, three are left.",
    "the rule by which clients know why",
    "a member that is down",
    "The lock is released, however late it is.",
    "It holds in the end.",
  ])("%s is found", (text) => {
    expect(findingsIn("a.md", [{ line: 1, text }]).length).toBeGreaterThan(0);
  });

  it("every pattern is tried above", () => expect(patternNames).toHaveLength(17));

  it.each([
    "Rejected requests are counted.",
    "What happens when a member crashes?",
    "The definition is in protocol.ts.",
    "Not so many that it matters.",
    "The node is no longer a member.",
  ])("%s is not", (text) => {
    expect(findingsIn("a.md", [{ line: 1, text }])).toEqual([]);
  });
});

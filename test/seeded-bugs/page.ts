/**
 * The pages that list the seeded bugs. The tests write the pages from their findings, and compare them with later
 * findings.
 */
import { bugs } from "./bugs.ts";
import type { SeededBug } from "./seeded-bug.ts";
import { settings } from "./settings.ts";

/** The row of one bug. */
export interface Row {
  readonly bug: SeededBug;
  /** The number of states, the number of the run, or the seed. */
  readonly effort: string;
  readonly seconds: number;
  readonly foundLength: number;
  readonly shrunkLength: number;
  /** The length of the shortest run, or null if it is unknown. */
  readonly shortestLength: number | null;
}

/** The columns that tests compare: all except effort and time. */
export interface Finding {
  readonly property: string;
  readonly by: string;
  readonly shrunkLength: number;
  readonly shortestLength: number | null;
}

/** A finding as listed on a page. */
interface ListedFinding extends Finding {
  /** The seed of a run in virtual time, or null if the bug was found in a different way. */
  readonly seed: number | null;
}

export const findingOf = ({ bug, shrunkLength, shortestLength }: Row): Finding => ({
  property: bug.property,
  by: bug.by,
  shrunkLength,
  shortestLength,
});

const HEAD = `# Seeded bugs

This page shows how well the checker and the simulator find mistakes. Each seeded bug is a small change to a shipped protocol, of a kind that people make in practice. A test applies the change, runs the named setting, and expects the named property to break. The unchanged protocol passes the same setting.

Use a bug as an exercise: apply the change, predict the property that breaks, and let \`coterie check\` find the run.

| Tool | Search |
|---|---|
| \`bfs\`, \`dfs\` | every run within the bounds |
| \`random\`, \`pct\`, \`swarm\` | at most 1,000 runs from seed 1 |
| \`simulator\` | runs in virtual time with seeds 1, 2, 3 … up to 400: commands and crashes at random times, delays of 1 to 40 ms |

A run that finds a bug is shrunk and compared with the shortest run, which breadth-first search finds. Lengths are in moves. A move is a command, delivery, timeout, crash or start at one node. Runs from the simulator are replayed in the checker's model.

Bugs that depend on time, such as those in leases and failure detectors, are tested in virtual time with wrong clocks, slow links, cuts and crashes. The checker has no clock, so these runs are shrunk by leaving out faults, and their shortest length is unknown (–). Their length includes renewals and heartbeats. A run that repeats forever (\`bfs\`, –) is shown as it was found. \`invariant …\` is an assertion in the protocol itself, which stops the node.

[The settings](../internals/seeded-bugs/settings.md) describe each search.

## Run the tests

| Command | \`bfs\`, \`dfs\`, \`random\`, \`pct\`, \`swarm\` | \`simulator\` | Without the bug |
|---|---|---|---|
| \`npm run test:long\`, locally and in CI | the whole search, shrunk | the listed seed violates the property | a search to the depth of the bugs and runs with their seeds find nothing |
| \`npm run test:random\` | the same | every seed from 1, shrunk | the whole search and runs with a third of all seeds find nothing |
| \`npm run pages -- seeded-bugs\` | the same | the same; writes the tables | – |

Tests compare all columns with the code, except the number of states or runs, the length found, and the seconds. Those were measured, including shrinking, on two busy cores when the tables were written.

## Results
`;

const COLUMNS = [
  "bug",
  "what is wrong",
  "change",
  "property broken",
  "found by",
  "after",
  "seconds",
  "found",
  "shrunk",
  "shortest",
];

/** The page of each folder. Overlays elect super-peers, and the coordination service has locks. */
const families: Readonly<Record<string, string>> = {
  election: "election",
  overlay: "election",
  mutex: "mutex",
  service: "mutex",
  multicast: "multicast",
  consensus: "consensus",
  membership: "membership",
};

/** Returns the family, which is determined by the folder of the file with the protocol's first bug. */
function familyOf(protocol: SeededBug["protocol"]): string {
  const file = bugs.find((bug) => bug.protocol === protocol)?.file ?? "";
  const family = families[/^src\/protocols\/([^/]+)\//.exec(file)?.[1] ?? ""];
  if (family === undefined) throw new Error(`expected a file of a family of protocols, got ${file}`);
  return family;
}

/**
 * Returns the pages by path: the index, a page for each family, and the settings.
 * @param before the current pages, joined. A row stays unchanged if only its seconds would differ.
 */
export function pages(rows: readonly Row[], before: string): ReadonlyMap<string, string> {
  const known = new Map(before.split("\n").map((each) => [withoutSeconds(each), each]));
  const rowLine = (row: Row): string => known.get(withoutSeconds(lineOf(row))) ?? lineOf(row);
  const protocols = [...new Set(bugs.map(({ protocol }) => protocol))];
  const section = (protocol: string): string => {
    const own = rows.filter(({ bug }) => bug.protocol === protocol);
    return [`## ${protocol}`, "", line(COLUMNS), line(COLUMNS.map(() => "---")), ...own.map(rowLine), ""].join("\n");
  };
  const names = [...new Set(Object.values(families))];
  const own = (family: string) => protocols.filter((protocol) => familyOf(protocol) === family);
  const familyPages = names.map((family) => {
    const head = `# Seeded bugs: ${titleOf(family)}\n\n[Seeded bugs](../../verify/seeded-bugs.md) explains the columns.\n`;
    return [`docs/internals/seeded-bugs/${family}.md`, `${head}\n${own(family).map(section).join("\n")}`] as const;
  });
  const list = names.map((family) => {
    const count = rows.filter(({ bug }) => familyOf(bug.protocol) === family).length;
    return line([`[${titleOf(family)}](../internals/seeded-bugs/${family}.md)`, String(count), own(family).join("; ")]);
  });
  const table = [line(["Family", "Bugs", "Protocols and settings"]), line(["---", "---", "---"]), ...list].join("\n");
  return new Map([
    ["docs/verify/seeded-bugs.md", `${HEAD}\n${totals(rows)}\n\n${table}\n`],
    ...familyPages,
    ["docs/internals/seeded-bugs/settings.md", settingsPage()],
  ]);
}

const titleOf = (family: string): string => family.replace("mutex", "mutual exclusion");

function settingsPage(): string {
  const used = new Set(bugs.map(({ setting }) => setting));
  const listed = Object.entries(settings).filter(([name]) => used.has(name));
  const key = listed.map(([name, { summary: text }]) => `- **${name}**: ${text}`).join("\n");
  return `# Settings of the seeded bugs\n\nThe searches of the checker and the simulator for [seeded bugs](../../verify/seeded-bugs.md).\n\n${key}\n`;
}

function totals(rows: readonly Row[]): string {
  const by = [...new Set(rows.map((row) => findingOf(row).by))].map(
    (each) => `${rows.filter((row) => findingOf(row).by === each).length} by \`${each}\``,
  );
  const ratios = rows.flatMap(({ shrunkLength, shortestLength }) =>
    shortestLength === null ? [] : [shrunkLength / shortestLength],
  );
  const shortest = ratios.filter((ratio) => ratio === 1).length;
  const worst = Math.max(...ratios);
  const ratio = worst === 1 ? "" : `, and the longest is ${worst.toFixed(2)} times as long as necessary`;
  const known = `The shortest run is known for ${ratios.length} of them. ${shortest} of their shrunk runs are as short as possible`;
  return `The tests find all ${rows.length} bugs: ${by.join(", ")}. ${known}${ratio}.`;
}

function lineOf({ bug, effort, seconds, foundLength, shrunkLength, shortestLength }: Row): string {
  const { name, summary, property, by, setting } = bug;
  return line([
    name,
    summary,
    changeOf(bug),
    property,
    `\`${by}\`: ${setting}`,
    effort,
    seconds.toFixed(1),
    String(foundLength),
    String(shrunkLength),
    shortestLength === null ? "–" : String(shortestLength),
  ]);
}

/** Removes the seventh cell of a row. */
function withoutSeconds(text: string): string {
  return text
    .split(/(?<!\\)\|/)
    .toSpliced(7, 1)
    .join("|");
}

/** Describes a change. A removal is shown by the removed text, and any other change by the text before and after. */
function changeOf({ find, replace }: SeededBug): string {
  const [before, after] = [find, replace].map((text) => text.replaceAll(/\s+/g, " ").trim()) as [string, string];
  if (after === "") return `without \`${before}\``;
  if (before.startsWith(after)) return `without \`${before.slice(after.length).trim()}\``;
  if (before.endsWith(after)) return `without \`${before.slice(0, -after.length).trim()}\``;
  return `\`${before}\` → \`${after}\``;
}

/** Formats a row and escapes bars, which separate cells even in code spans. */
const line = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

/** Returns the findings on the pages by name of the bug, in the order of the pages. */
export function findingsOn(text: string): Map<string, ListedFinding> {
  const findings = new Map<string, ListedFinding>();
  for (const each of text.split("\n")) {
    const cells = each
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|"))
      .slice(1, -1);
    const [name = "", , , property = "", foundBy = "", effort = "", , , shrunk = "", shortest = ""] = cells;
    if (cells.length !== COLUMNS.length || name === "bug" || name === "---") continue;
    const by = /^`(\w+)`/.exec(foundBy)?.[1] ?? "";
    findings.set(name, {
      property,
      by,
      shrunkLength: Number(shrunk),
      shortestLength: shortest === "–" ? null : Number(shortest),
      seed: by === "simulator" ? Number(effort.replace("seed ", "")) : null,
    });
  }
  return findings;
}

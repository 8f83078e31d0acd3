/** `coterie protocols`: shows the algorithms with their guarantees, assumptions and costs. */
import { stripVTControlCharacters } from "node:util";
import type { Command } from "commander";
import { loadProtocol } from "../cluster/protocol-file.ts";
import { COST_SIZES, type Described, described } from "../experiment/described.ts";
import { figure, wrapped } from "../experiment/paragraph.ts";
import { protocolNames } from "../protocols/index.ts";
import { type Manual, withManual } from "./manual.ts";
import {
  type Block,
  broken,
  type Invocation,
  indented,
  type Output,
  print,
  type Report,
  type Section,
  styled,
} from "./output.ts";

export function declare(command: Command, { stdout }: Invocation): void {
  withManual(command, manual)
    .description("Lists the algorithms by family, or shows one of them in full.")
    .argument("[name]", "name of the algorithm to show in full, or your own file (./mine.ts)")
    .option("--json", "print the result as JSON")
    .action((name: string | undefined, options: { readonly json?: true }) => protocols(name, options, stdout));
}

const manual: Manual = {
  examples: ["coterie protocols", "coterie protocols ricart-agrawala", "coterie protocols raft --json"],
  exitCodes: "0 ok; 2 no protocol has this name",
  details: `With \`--json\`: a list, or one object if you give a name:

\`\`\`json
{ "name", "family", "summary", "source", "assumes": [text], "properties": [{ "name", "claim", "when" }],
  "costs": [{ "when", "messages": { nodes: count } }], "options": [{ "name", "default", "help" }],
  "variants": [{ "name", "summary" }] }
\`\`\``,
};

async function protocols(name: string | undefined, options: { readonly json?: true }, stdout: Output): Promise<void> {
  const report =
    name === undefined ? listReport(protocolNames.map(described)) : fullReport(described(await loadProtocol(name)));
  print(report, options, stdout);
}

/** Lists the algorithms by family, with one or two lines for each. */
function listReport(all: readonly Described[]): Report {
  const width = Math.max(...all.map(({ name }) => name.length)) + INDENT.length;
  const sections = [...new Set(all.map(({ family }) => family))].map((family) => {
    const own = all.filter((each) => each.family === family).sort((a, b) => (a.name < b.name ? -1 : 1));
    return [styled("bold", family), { named: own.map(({ name, summary }) => row(name, summary)), width }];
  });
  return { json: all, sections: [...sections, ["For guarantees, assumptions and costs: coterie protocols NAME"]] };
}

function fullReport(one: Described): Report {
  const { name, family, summary, source, assumes, properties, costs, options, variants } = one;
  const tables = {
    guarantees: properties.map(({ name: property, claim, when }) =>
      row(property, `${claim} (${checkedWhen[when] ?? when})`),
    ),
    options: options.map(({ name: option, default: preset, help }) =>
      row(option, `${help.replaceAll("`", "")} (default: ${JSON.stringify(preset)})`),
    ),
    variants: variants.map((form) => row(form.name, form.summary)),
  };
  const names = Object.values(tables).flatMap((rows) => rows.map(([head]) => stripVTControlCharacters(head).length));
  const width = Math.max(0, ...names);
  const section = (title: string, blocks: readonly Block[]): Section =>
    blocks.length === 0 ? [] : [styled("bold", title), ...blocks];
  const named = (title: keyof typeof tables): Section =>
    section(title, tables[title].length === 0 ? [] : [{ named: tables[title], width }]);
  return {
    json: one,
    sections: [
      [broken(`${styled("bold", name)} (${family}): ${summary}`, 0), styled("dim", broken(source, 0))],
      named("guarantees"),
      section("assumptions", assumes.map(indented)),
      section("messages", costTable(costs)),
      named("options"),
      named("variants"),
    ],
  };
}

const INDENT = "  ";
const row = (head: string, text: string): [string, string] => [`${INDENT}${styled("cyan", head)}`, text];

const checkedWhen: Readonly<Record<string, string>> = {
  always: "after every step",
  sometimes: "at some point in some run",
  eventually: "eventually",
  quiescent: "whenever no message is in transit",
  leadsTo: "eventually",
};

/**
 * Returns the table of costs. Long descriptions of a case are wrapped, so that the numbers in a row stay on one line.
 */
function costTable(costs: Described["costs"]): readonly Block[] {
  if (costs.length === 0) return [];
  const figures = costs.map(({ messages }) => COST_SIZES.map((nodes) => figure(messages[nodes] ?? 0)));
  const widths = COST_SIZES.map((nodes, at) =>
    Math.max(String(nodes).length, ...figures.map((cells) => cells[at]?.length ?? 0)),
  );
  const room = Math.max(20, 80 - 4 - widths.reduce((sum, width) => sum + width + 2, 0));
  const columns = costs.flatMap(({ when }, at) =>
    wrapped(when, 0, room)
      .split("\n")
      .map((line, i) => [`${INDENT}${line}`, ...(figures[at] ?? []).map((each) => (i === 0 ? each : ""))]),
  );
  return [{ head: [`${INDENT}nodes`, ...COST_SIZES.map(String)], columns }];
}

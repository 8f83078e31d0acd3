/** `coterie protocols`: what there is, what it guarantees under which assumptions, and what it costs. */
import type { Command } from "commander";
import { COST_SIZES, type Described, described } from "../experiment/described.ts";
import { figure, wrapped } from "../experiment/paragraph.ts";
import { protocolNames } from "../protocols/index.ts";
import type { Invocation, Output } from "./invocation.ts";
import { type Paint, paintFor, table } from "./terminal.ts";

export function declare(command: Command, { stdout }: Invocation): void {
  command
    .description("Lists the algorithms by what they are for, or shows one in full.")
    .argument("[name]", "show this one in full")
    .option("--json", "print it as JSON")
    .addHelpText("after", EXPLANATION)
    .action((name: string | undefined, options: { readonly json?: true }) => protocols(name, options, stdout));
}

const EXPLANATION = `
Example:
  $ coterie protocols
  $ coterie protocols ricart-agrawala

With --json: a list, or with a name one, of { "name", "family", "summary", "source", "assumes": [text], "properties":
  [{ "name", "claim", "when" }], "costs": [{ "when", "messages": { nodes: count } }],
  "options": [{ "name", "default", "help" }], "variants": [{ "name", "summary" }] }

Exit codes: 0 ok, 2 there is no such protocol.`;

function protocols(name: string | undefined, { json }: { readonly json?: true }, stdout: Output): void {
  const print = (text: string): void => void stdout.write(`${text}\n`);
  const paint = paintFor(stdout);
  if (name === undefined) {
    const all = protocolNames.map((each) => described(each));
    return print(json === true ? JSON.stringify(all) : listOf(all, paint));
  }
  const one = described(name);
  print(json === true ? JSON.stringify(one) : inFull(one, paint));
}

/** By family, a line or two each. */
function listOf(all: readonly Described[], paint: Paint): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  const families = [...new Set(all.map(({ family }) => family))];
  const lines = families.flatMap((family) => [
    paint("bold", family),
    ...all
      .filter((each) => each.family === family)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, summary }) => `  ${paint("cyan", name.padEnd(width))}  ${wrapped(summary, width + 4)}`),
    "",
  ]);
  return [...lines, "guarantees, assumptions and costs: coterie protocols NAME"].join("\n");
}

function inFull(
  { name, family, summary, source, assumes, properties, costs, options, variants }: Described,
  paint: Paint,
): string {
  const width = Math.max(
    0,
    ...properties.map((property) => property.name.length),
    ...options.map((option) => option.name.length),
    ...variants.map((form) => form.name.length),
  );
  const row = (head: string, text: string): string =>
    `  ${paint("cyan", head.padEnd(width))}  ${wrapped(text, width + 4)}`;
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ["", paint("bold", title), ...lines];
  return [
    wrapped(`${name} (${family}): ${summary}`, 0).replace(name, paint("bold", name)),
    paint("dim", wrapped(source, 0)),
    ...section(
      "guarantees",
      properties.map(({ name: property, claim, when }) => row(property, `${claim} (${checkedWhen[when] ?? when})`)),
    ),
    ...section(
      "if",
      assumes.map((assumption) => `  ${wrapped(assumption, 2)}`),
    ),
    ...section("messages", costTable(costs, paint)),
    ...section(
      "options",
      options.map(({ name: option, default: preset, help }) =>
        row(option, `${help.replaceAll("`", "")} (default: ${JSON.stringify(preset)})`),
      ),
    ),
    ...section(
      "variants",
      variants.map((form) => row(form.name, form.summary)),
    ),
  ].join("\n");
}

const checkedWhen: Readonly<Record<string, string>> = {
  always: "after every step",
  sometimes: "at some time in some run",
  eventually: "eventually",
  quiescent: "whenever nothing is on its way",
  leadsTo: "sooner or later",
};

/** What a row is of is broken into lines, so that its figures stay on one. */
function costTable(costs: Described["costs"], paint: Paint): string[] {
  if (costs.length === 0) return [];
  const figures = costs.map(({ messages }) => COST_SIZES.map((nodes) => figure(messages[nodes] ?? 0)));
  const widths = COST_SIZES.map((nodes, at) =>
    Math.max(String(nodes).length, ...figures.map((row) => row[at]?.length ?? 0)),
  );
  const room = Math.max(20, 80 - 4 - widths.reduce((sum, width) => sum + width + 2, 0));
  const labels = costs.map(({ when }) => wrapped(when, 0, room).split("\n"));
  const width = Math.max(...labels.flat().map(({ length }) => length));
  const rows = labels.flatMap((label, row) =>
    label.map((line, at) => [`  ${line.padEnd(width)}`, ...(figures[row] ?? []).map((each) => (at === 0 ? each : ""))]),
  );
  return table([[`  ${"nodes".padEnd(width)}`, ...COST_SIZES.map(String)], ...rows], (cell, at) =>
    at === 0 ? paint("dim", cell) : cell,
  );
}

/**
 * Checks docs/reference/commands.md, which is generated from the definitions of the commands, and that `--help` of each
 * command fits on one screen. `npm run pages -- command-reference` writes the page.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Argument, Command, type Option } from "commander";
import { expect, test } from "vitest";
import { withEndpointOptions } from "../../src/cli/client/endpoints.ts";
import { commands, groups } from "../../src/cli/command-line.ts";
import { fullName, manualOf } from "../../src/cli/manual.ts";
import { coterie } from "../commands/run-here.ts";
import { root } from "./markdown.ts";

const MAX_HELP_LINES = 50;

async function declared(name: string): Promise<Command> {
  const command = new Command(name);
  new Command("coterie").enablePositionalOptions().addCommand(command);
  const output = { write: () => {} };
  const invocation = { words: [], stdout: output, stderr: output, usesThreads: false };
  (await commands[name]?.load())?.(command, invocation);
  return command;
}

const all = await Promise.all(Object.keys(commands).map(declared));
const each = all.flatMap((command) => [command, ...command.commands]);

/** Formats a cell of a table. Escapes bars, and omits the default, which has its own column. */
const cell = (text: string): string => text.replaceAll("|", "\\|");
const DEFAULT = / \(default: (.*)\)$/;

function optionRow(option: Option): string {
  const { flags, description, defaultValue, defaultValueDescription, argChoices, mandatory } = option;
  const given =
    defaultValue === undefined ? DEFAULT.exec(description)?.[1] : (defaultValueDescription ?? String(defaultValue));
  const choices = argChoices === undefined ? "" : `: ${argChoices.join(", ")}`;
  const preset = given ?? (mandatory ? "required" : "");
  return `| \`${cell(flags)}\` | ${cell(description.replace(DEFAULT, ""))}${choices} | ${cell(preset)} |\n`;
}

function argumentRow(argument: Argument): string {
  const text = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return `| \`${cell(argument.required ? `<${text}>` : `[${text}]`)}\` | ${cell(argument.description)} |\n`;
}

/** Options that all clients of a cluster have. They have their own table. */
const clientOptions = withEndpointOptions(new Command()).options;
const isOfClients = ({ flags }: Option): boolean => clientOptions.some((each) => each.flags === flags);

const table = (head: string, rows: readonly string[]): string =>
  rows.length === 0 ? "" : `${head}\n|${"---|".repeat(head.split("|").length - 2)}\n${rows.join("")}\n`;

/** Formats a command, as typed in a project that has the package, with its output. */
const shown = (example: string): string => `$ npx ${example}\n`;

function section(command: Command): string {
  const manual = manualOf(command);
  const name = fullName(command);
  const description =
    command.description() || `${sentence(command.summary() || (commands[command.name()]?.summary ?? ""))}`;
  const parts = command.commands.map((inner) => `[${inner.name()}](#${fullName(inner).replaceAll(" ", "-")})`);
  return [
    `### ${name}\n\n${description}\n\n`,
    parts.length === 0 ? "" : `Its commands are ${parts.join(", ")}.\n\n`,
    `\`\`\`text\n${name} ${command.usage()}\n\`\`\`\n\n`,
    table(
      "| Argument | Meaning |",
      command.registeredArguments.map((argument) => argumentRow(argument)),
    ),
    table("| Option | Meaning | Default |", command.options.filter((option) => !isOfClients(option)).map(optionRow)),
    command.options.some(isOfClients) ? "It also takes the [client options](#client-options).\n\n" : "",
    `\`\`\`\n${manual?.examples.map(shown).join("")}\`\`\`\n\n`,
    `Exit codes: ${manual?.exitCodes}.\n\n`,
    manual?.details === undefined ? "" : `${manual.details}\n\n`,
  ].join("");
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function group(heading: string): string {
  const own = all.filter((command) => groups[commands[command.name()]?.group ?? "local"] === heading);
  return `## ${heading.replace(":", "")}\n\n${own
    .flatMap((command) => [command, ...command.commands])
    .map(section)
    .join("")}`;
}

test("docs/reference/commands.md describes every command", () => {
  const file = join(root, "docs/reference/commands.md");
  const page = readFileSync(file, "utf8");
  const parts: Readonly<Record<string, string>> = {
    "client options": table("| Option | Meaning | Default |", clientOptions.map(optionRow)),
    commands: Object.values(groups).map(group).join(""),
  };
  const written = page.replaceAll(
    /(<!-- (client options|commands) -->\n).*?(<!-- end -->)/gs,
    (_all, begin: string, name: string, end: string) => [begin, parts[name], end].join(""),
  );
  for (const name of Object.keys(parts)) expect(page).toContain(`<!-- ${name} -->\n`);
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, written);
  expect(readFileSync(file, "utf8")).toBe(written);
});

test.each(each.map(fullName))("%s --help fits one screen, with at most three examples", async (name) => {
  const { stdout } = await coterie(...name.split(" ").slice(1), "--help");
  expect(stdout.trimEnd().split("\n").length).toBeLessThanOrEqual(MAX_HELP_LINES);
  expect(stdout.match(/^ {2}\$ /gm)?.length).toBeOneOf([1, 2, 3]);
  expect(stdout).toContain(`#${name.replaceAll(" ", "-")}\n`);
});

test("coterie --help fits one screen, and lists every command in a group", async () => {
  const { stdout } = await coterie("--help");
  expect(stdout.trimEnd().split("\n").length).toBeLessThanOrEqual(MAX_HELP_LINES);
  for (const heading of Object.values(groups)) expect(stdout).toContain(`\n${heading}\n`);
  for (const command of all) expect(stdout).toMatch(new RegExp(`^ {2}${command.name()} {2,}`, "m"));
});

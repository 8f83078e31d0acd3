/** The manual of a command: a screen for `--help`, and the rest for docs/reference/commands.md, which is written from it. */
import type { Command, Option } from "commander";
import { docsPage } from "../runtime/docs-page.ts";

export interface Manual {
  /**
   * Each is a command line, and below it the output. `--help` shows the first three command lines, the reference shows all of
   * them with their output.
   */
  readonly examples: readonly string[];
  /** In one line. */
  readonly exitCodes: string;
  /** In Markdown, for the reference alone: details, and the fields of `--json`. */
  readonly details?: string;
}

const EXAMPLES_IN_HELP = 3;
const manuals = new WeakMap<Command, Manual>();

/** Adds the manual to a command. Options that are hidden from its help are listed there by name. */
export function withManual(command: Command, manual: Manual): Command {
  manuals.set(command, manual);
  return command.addHelpText("after", () => textBelow(command, manual));
}

export const manualOf = (command: Command): Manual | undefined => manuals.get(command);

/** `coterie member add`. */
export const fullName = (command: Command): string =>
  command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;

export const isHidden = ({ hidden }: Option): boolean => hidden;

/** The command of an example without its output. A line that ends with a backslash continues in the next one. */
export function commandIn(example: string): string {
  const lines = example.split("\n");
  const last = lines.findIndex((line) => !line.endsWith("\\"));
  return lines.slice(0, last + 1).join("\n");
}

function textBelow(command: Command, { examples, exitCodes }: Manual): string {
  const shown = examples.slice(0, EXAMPLES_IN_HELP).map((each) => `  $ ${commandIn(each)}`);
  const hidden = command.options.filter(isHidden).map(({ long }) => long);
  const page = `${docsPage("reference/commands.md")}#${fullName(command).replaceAll(" ", "-")}`;
  return [
    ...(hidden.length === 0 ? [] : ["", `More options: ${hidden.join(", ")}`]),
    ...(shown.length === 0 ? [] : ["", shown.length === 1 ? "Example:" : "Examples:", ...shown]),
    "",
    `Exit codes: ${exitCodes}.`,
    `Reference: ${page}`,
  ].join("\n");
}

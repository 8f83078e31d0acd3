/** A command's manual. `--help` prints part of it, and docs/reference/commands.md is generated from all of it. */
import type { Command, Option } from "commander";
import { docsPage } from "../runtime/package-files.ts";

/** Examples, and information on exit codes and other details. */
export interface Manual {
  /**
   * Command lines, each followed by its output. `--help` shows the first three command lines. The reference shows all
   * of them, with their output.
   */
  readonly examples: readonly string[];
  /** The exit codes on a single line. */
  readonly exitCodes: string;
  /** Markdown that appears only in the reference: details, and the fields printed by `--json`. */
  readonly details?: string;
}

const EXAMPLES_IN_HELP = 3;
const manuals = new WeakMap<Command, Manual>();

/** Adds the manual to a command's help. Hidden options are listed by name. */
export function withManual(command: Command, manual: Manual): Command {
  manuals.set(command, manual);
  return command.addHelpText("after", () => textBelow(command, manual));
}

/** Returns a command's manual, if it has one. */
export const manualOf = (command: Command): Manual | undefined => manuals.get(command);

/** Returns the full name of a command, such as `coterie member add`. */
export const fullName = (command: Command): string =>
  command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;

const isHidden = ({ hidden }: Option): boolean => hidden;

/**
 * Returns the command in an example, without its output. A line that ends with a backslash continues on the next line.
 */
function commandIn(example: string): string {
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

/** The flags of a command that are options of an experiment. */
import { type Command, Option } from "commander";
import { type ExperimentOption, flagOf } from "../experiment/options.ts";

/** @param use for which of both the command is: some options differ in meaning. */
export function addOptions(
  command: Command,
  options: Readonly<Record<string, ExperimentOption<unknown>>>,
  use: "simulate" | "explore",
): Command {
  for (const [name, { help, value, preset, read }] of Object.entries(options)) {
    const flag = flagOf(name);
    const option = new Option(value === null ? flag : `${flag} ${value}`, typeof help === "string" ? help : help[use]);
    if (value !== null) option.argParser((text) => read(text, flag));
    if (preset !== undefined) option.preset(preset);
    command.addOption(option);
  }
  return command;
}

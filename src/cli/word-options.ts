/** The options of a command that are words of an experiment. */
import { type Command, Option } from "commander";
import { flagOf, type Word } from "../experiment/words.ts";

/** @param how for which of both the command is: some words mean another thing in the other */
export function addWords(
  command: Command,
  words: Readonly<Record<string, Word<unknown>>>,
  how: "simulate" | "explore",
): Command {
  for (const [name, { about, value, preset, read }] of Object.entries(words)) {
    const flag = flagOf(name);
    const option = new Option(
      value === null ? flag : `${flag} ${value}`,
      typeof about === "string" ? about : about[how],
    );
    if (value !== null) option.argParser((text) => read(text, flag));
    if (preset !== undefined) option.preset(preset);
    command.addOption(option);
  }
  return command;
}

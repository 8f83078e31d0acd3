/** Parsers for option values, and the options that describe an experiment. */
import { type Command, Option } from "commander";
import { UsageError, unexpected } from "../core/errors.ts";
import type { ExperimentOption } from "../experiment/experiment.ts";
import * as written from "../experiment/written-values.ts";
import { MAX_PORT } from "../runtime/host-port.ts";

/** The base port of a local cluster if `--port` is not given. */
export const DEFAULT_PORT = 7400;
/** The admin address of `coterie up` without `--port`. */
export const DEFAULT_ADMIN = `http://127.0.0.1:${DEFAULT_PORT}`;

/** Returns a Commander parser for whole numbers. The parser throws a UsageError. */
export function wholeNumber(option: string, min: number, max: number, words?: string) {
  const read = written.wholeNumber(min, max, words);
  return (text: string): number => read(text, option);
}

/** Parses a member's id. */
export const memberArgument = (name: string) => wholeNumber(name, 0, Number.MAX_SAFE_INTEGER, "a member's id");

/** Returns a Commander parser for the base URLs of admin pages. The parser throws a UsageError. */
export function adminUrl(option: string, example = DEFAULT_ADMIN) {
  return (text: string): string => {
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url?.protocol === "http:" && url.pathname === "/" && url.search === "") return url.origin;
    throw new UsageError("bad-argument", unexpected(option, `a URL such as ${example}`, text));
  };
}

/** The highest seed. */
export const MAX_SEED = 2 ** 32 - 1;
/** Parses a seed. */
export const seed = wholeNumber("--seed", 0, MAX_SEED);

/** Parses `--port`. */
export const port = wholeNumber("--port", 0, MAX_PORT, `0 or a port up to ${MAX_PORT}`);

const MINUTE_MS = 60_000;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: MINUTE_MS, h: 3_600_000 };
/** The longest delay that a Node.js timer supports, about 24 days. */
const MAX_MS = 2 ** 31 - 1;

/**
 * Returns a Commander parser for durations, in milliseconds. The parser throws a UsageError.
 * @param mostMs the longest duration, which must be a whole number of minutes
 */
export function duration(option: string, mostMs: number = MAX_MS) {
  const most = mostMs === MAX_MS ? "" : `, at most ${mostMs / MINUTE_MS}m`;
  return (text: string): number => {
    const [, amount = "", unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? [];
    const ms = Math.round(Number(amount) * (UNIT_MS[unit] ?? 0));
    if (ms >= 1 && ms <= mostMs) return ms;
    throw new UsageError("bad-argument", unexpected(option, `a time such as 250ms, 5s or 2m${most}`, text));
  };
}

/**
 * Adds an experiment's options to a command.
 * @param use selects the help text for options that have two of them
 * @param common the options that `--help` describes
 */
export function addOptions(
  command: Command,
  options: Readonly<Record<string, ExperimentOption<unknown>>>,
  use: "simulate" | "explore",
  common: readonly string[] = Object.keys(options),
): Command {
  for (const [name, { help, value, preset, read }] of Object.entries(options)) {
    const flag = written.flagOf(name);
    const option = new Option(value === null ? flag : `${flag} ${value}`, typeof help === "string" ? help : help[use]);
    if (value !== null) option.argParser((text) => read(text, flag));
    if (preset !== undefined) option.preset(preset);
    if (!common.includes(name)) option.hideHelp();
    command.addOption(option);
  }
  return command;
}

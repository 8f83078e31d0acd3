/** The command line of a benchmark, defined by a table of options with their help texts. */
import { Command, Option } from "commander";

interface Word {
  /** The help text. Null for internal options. */
  readonly help: string | null;
  /** An example of the option's value, such as `3,5`. An option without an example is a switch. */
  readonly such?: string;
  readonly default?: string;
}

type Values<W extends Readonly<Record<string, Word>>> = {
  readonly [K in keyof W]: W[K] extends { such: string }
    ? W[K] extends { default: string }
      ? string
      : string | undefined
    : boolean;
};

interface CommandLine<W extends Readonly<Record<string, Word>>> {
  readonly values: Values<W>;
  readonly positionals: readonly string[];
  /** Reports an invalid argument and exits. */
  refuse(message: string): never;
  someOf<T extends string>(word: keyof W, text: string, known: readonly T[]): T[];
  whole(word: keyof W, text: string, least: number, most: number): number;
  wholes(word: keyof W, text: string, least: number, most: number): number[];
  /** Parses a number greater than 0, which may have a fractional part. */
  amount(word: keyof W, text: string, most: number): number;
}

interface More {
  /** The last paragraph of the help text. */
  readonly note?: string;
  /** Arguments shown before the options in the help text. */
  readonly positionals?: string;
}

/** Reads the command line, or prints the help text and exits. */
export function commandLine<const W extends Readonly<Record<string, Word>>>(
  name: string,
  words: W,
  { note, positionals }: More = {},
): CommandLine<W> {
  const command = new Command(`coterie bench ${name}`).exitOverride(({ exitCode }) =>
    process.exit(exitCode === 0 ? 0 : 2),
  );
  if (positionals !== undefined) command.usage(`${positionals} [options]`).argument("[words...]");
  const values: Record<string, unknown> = {};
  for (const [word, { such, help, default: usual }] of Object.entries(words)) {
    const flags = such === undefined ? `--${word}` : `--${word} <${such.replace(/^<(.*)>$/, "$1")}>`;
    command.addOption(new Option(flags, help ?? "").hideHelp(help === null));
    values[word] = such === undefined ? false : usual;
  }
  command.helpOption("--help", "this text");
  if (note !== undefined) command.addHelpText("after", `\n${note}`);
  Object.assign(values, command.parse().opts());
  function refuse(message: string): never {
    console.error(`coterie bench ${name}: ${message}`);
    process.exit(2);
  }
  const unless = (isSound: boolean, word: keyof W, expected: string, text: string): void => {
    if (!isSound) refuse(`expected --${String(word)} to be ${expected}, got ${text}`);
  };
  const isWhole = (value: number, least: number, most: number): boolean =>
    Number.isInteger(value) && value >= least && value <= most;
  return {
    values: values as Values<W>,
    positionals: command.args,
    refuse,
    someOf<T extends string>(word: keyof W, text: string, known: readonly T[]) {
      const stray = text.split(",").find((each) => !known.some((one) => one === each));
      unless(stray === undefined, word, `some of ${known.join(", ")}`, stray ?? "");
      return text.split(",") as T[];
    },
    whole(word, text, least, most) {
      unless(isWhole(Number(text), least, most), word, `a whole number from ${least} to ${most}`, text);
      return Number(text);
    },
    wholes(word, text, least, most) {
      const all = text.split(",").map(Number);
      unless(
        all.every((each) => isWhole(each, least, most)),
        word,
        `whole numbers from ${least} to ${most}, such as ${words[word]?.such}`,
        text,
      );
      return all;
    },
    amount(word, text, most) {
      unless(Number(text) > 0 && Number(text) <= most, word, `above 0 and at most ${most}`, text);
      return Number(text);
    },
  };
}

/** Calls `cleanUp` before a signal ends the process. */
export function beforeSignalsEnd(cleanUp: () => void): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.once(signal, () => {
      cleanUp();
      process.exit(code);
    });
}

/**
 * Shows the progress of a measurement on a terminal, on a single line. Each text replaces the previous one; an empty
 * text clears the line.
 */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text !== "") process.stderr.write(`${text}\n`);
}

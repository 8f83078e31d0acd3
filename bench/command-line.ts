/** The command line of a benchmark: each word stands once, with its line of the help. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { fitted, wrapped } from "../src/experiment/paragraph.ts";

interface Word {
  /** Null: it is not for people. */
  readonly help: string | null;
  /** How its value looks, such as `3,5`; a word that has none is a switch. */
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

interface Besides {
  /** Comes last in the help. */
  readonly note?: string;
  /** What stands between the name and the options, in the help. */
  readonly positionals?: string;
  readonly args?: readonly string[];
}

export interface CommandLine<W extends Readonly<Record<string, Word>>> {
  readonly values: Values<W>;
  readonly positionals: readonly string[];
  /** Says what is wrong, and ends. */
  refuse(message: string): never;
  someOf<T extends string>(word: keyof W, text: string, known: readonly T[]): T[];
  whole(word: keyof W, text: string, least: number, most: number): number;
  wholes(word: keyof W, text: string, least: number, most: number): number[];
  /** Not 0, and not only whole. */
  amount(word: keyof W, text: string, most: number): number;
}

/** Reads it, or prints the help and ends. */
export function commandLine<const W extends Readonly<Record<string, Word>>>(
  name: string,
  words: W,
  { note, positionals, args = process.argv.slice(2) }: Besides = {},
): CommandLine<W> {
  const options = Object.entries(words).map(([word, { such, default: usual }]) => {
    if (such === undefined) return [word, { type: "boolean" as const, default: false }];
    return [word, { type: "string" as const, ...(usual === undefined ? {} : { default: usual }) }];
  });
  const help = { type: "boolean" as const, default: false };
  const given = parseArgs({
    args: [...args],
    options: { ...Object.fromEntries(options), help } as NonNullable<ParseArgsConfig["options"]>,
    allowPositionals: positionals !== undefined,
  });
  if (given.values.help === true) {
    const title = positionals === undefined ? name : `${name} ${positionals}`;
    console.log(`Usage: coterie bench ${title} [options]\n\nOptions:\n${rows(words)}`);
    if (note !== undefined) console.log(`\n${fitted(note)}`);
    process.exit(0);
  }
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
    values: given.values as Values<W>,
    positionals: given.positionals,
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

function rows(words: Readonly<Record<string, Word>>): string {
  const all: [string, Word][] = [...Object.entries(words), ["help", { help: "this text" }]];
  return all
    .flatMap(([word, { such = "", help }]) =>
      help === null ? [] : `  ${`--${word} ${such}`.trimEnd().padEnd(18)}${wrapped(help, 20)}`,
    )
    .join("\n");
}

/** Calls this before a signal ends the process. */
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

/** Shows how far a measurement has come: on a terminal in one line that each text replaces, and an empty text clears. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text !== "") process.stderr.write(`${text}\n`);
}

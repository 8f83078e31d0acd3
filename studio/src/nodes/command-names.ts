/** Readable names of commands. */
import { nameOfWord } from "../../../src/trace/log.ts";

export interface CommandName {
  /** The command, as accepted by the member. */
  readonly command: string;
  readonly text: string;
  /** The part of the protocol, if two parts have a command with the same name. Otherwise null. */
  readonly part: string | null;
}

/** Readable names. This is a map because a command may be called `constructor`. */
const texts: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "workload.use": "Request, then release",
    "client.use": "Propose",
    agree: "Vote yes",
    call: "Call an election",
    enter: "Request",
    exit: "Release",
    find: "Find a key",
    join: "Join",
    leave: "Leave",
    propose: "Propose",
    refuse: "Vote no",
    resign: "Step down",
    send: "Send",
    stand: "Be a candidate",
  }),
);

/** Internal commands between the parts of a process. */
const INNER: ReadonlySet<string> = new Set([
  "workload.lost",
  "workload.begin",
  "workload.established",
  "workload.gone",
  "names.close",
  "mutex.depart",
  "session.cork",
  "session.uncork",
  "session.depart",
  "replica.look",
]);

/** The main commands of protocols, which are listed first. */
const FIRST = ["Propose", "Request", "Request, then release", "Release", "Send", "Call an election"];
const place = (text: string): number => (FIRST.includes(text) ? FIRST.indexOf(text) : FIRST.length);

export function commandNames(commands: readonly string[]): readonly CommandName[] {
  const named = commands
    .filter((command) => !INNER.has(command))
    .map((command) => {
      const { short, part } = nameOfWord(command);
      const text = texts.get(command) ?? texts.get(short) ?? `${short.slice(0, 1).toUpperCase()}${short.slice(1)}`;
      return { command, text, part };
    });
  return named
    .map(({ part, ...name }) => ({
      ...name,
      part: named.filter(({ text }) => text === name.text).length > 1 ? part : null,
    }))
    .toSorted((a, b) => place(a.text) - place(b.text));
}

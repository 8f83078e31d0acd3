/** Commands by the names that people have for them. */
import { nameOfWord } from "../../../src/trace/log.ts";

export interface CommandName {
  /** As the member takes it. */
  readonly command: string;
  readonly text: string;
  /** Of the protocol, where two parts of it have a command of the same name; else null. */
  readonly part: string | null;
}

/** A map: members name their commands, and may call one `constructor`. */
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

/** What parts of one process say to each other, and nobody else means. */
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

/** What a protocol is for comes first. */
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

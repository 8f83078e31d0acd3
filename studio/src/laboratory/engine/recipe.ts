/** A place in the laboratory, as the hash of its address. A link contains everything needed to repeat the run. */

import { MAX_DRAWN } from "./limits.ts";

export type PageName = "gallery" | "run" | "check" | "compare" | "tour" | "live" | "embed";

/**
 * The words of an experiment as users write them, including `protocol`. `scenario`: the name of a file that replaces
 * the words. `counterexample`: the run that the checker finds. `recording`: a file that was opened in this browser.
 * `part`: the part of a long recording, counting from 1. `fork`: acts on the run, each after a number of entries.
 * `branches`: the acts of other branches. `with`: additional protocols. `at`: the cursor.
 */
export type Words = Readonly<Record<string, string>>;

export interface Place {
  readonly page: PageName;
  readonly words: Words;
}

/** Words that describe the source of a run rather than options of an experiment. */
export const ownWords: readonly string[] = [
  "protocol",
  "scenario",
  "counterexample",
  "fork",
  "branches",
  "at",
  "with",
  "recording",
  "part",
];

/** The maximum number of acts. Each act requires repeating the run. */
export const MAX_FORKS = 20;
/**
 * The maximum length of a link in characters, including the cursor's step. Chat and mail programs cut off longer
 * addresses.
 */
export const MAX_LINK = 4_000;

const pages: readonly PageName[] = ["gallery", "run", "check", "compare", "tour", "live", "embed"];

export function hashOf({ page, words }: Place): string {
  const query = new URLSearchParams(Object.entries(words).filter(([, text]) => text !== "")).toString();
  return `#/${page}${query === "" ? "" : `?${query}`}`;
}

/** Returns the length of a run's link in characters, with room for any cursor. */
export const linkLength = (words: Words): number =>
  hashOf({ page: "run", words: { ...words, at: String(MAX_DRAWN) } }).length;

const partsOf = (hash: string): string[] => /^#\/([a-z]*)(?:\?(.*))?$/.exec(hash)?.slice(1) ?? [];

/** Returns why a link does not lead to a page, or an empty string if it does. */
export function pageProblem(hash: string): string {
  const [name] = partsOf(hash);
  if (/^#?\/?$/.test(hash) || pages.some((page) => page === name)) return "";
  const given = name ?? hash.slice(1);
  return `No page is called “${given}”. The pages are ${pages.slice(0, -1).join(", ")} and ${pages.at(-1)}.`;
}

export function placeOf(hash: string): Place {
  const [name = "", query = ""] = partsOf(hash);
  const page = pages.find((each) => each === name) ?? "gallery";
  return { page, words: Object.fromEntries(new URLSearchParams(query)) };
}

/** The kinds of acts. If `what` is a node, the act affects both directions of the link between the two nodes. */
const acts = [
  ...(["crash", "start", "pause", "resume", "timer", "command"] as const),
  ...(["lose", "duplicate", "delay"] as const),
  ...(["cut", "isolate", "slow", "heal"] as const),
];

export type ActKind = (typeof acts)[number];

/** An act on a run, after a given number of its entries. */
export interface Fork {
  readonly entries: number;
  readonly act: ActKind;
  readonly node: number;
  /** The timer, the message's id, or the node at the other end of a link. */
  readonly what: string;
}

/** Formats acts for a link: `57 crash 2;80 timer 3 answer`. */
export const forksText = (forks: readonly Fork[]): string =>
  forks.map(({ entries, act, node, what }) => `${entries} ${act} ${node} ${what}`.trim()).join(";");

/** Parses the acts in a link. Invalid ones are omitted; `actProblem` describes them. */
export function forksOf(text: string): Fork[] {
  return text.split(";").flatMap((part) => forkIn(part) ?? []);
}

const WRITTEN_ACT = /^(\d{1,9}) ([a-z]+) (\d{1,9})(?: (.+))?$/;

function forkIn(part: string): Fork | null {
  const [, entries, name, node, what = ""] = WRITTEN_ACT.exec(part) ?? [];
  const act = acts.find((each) => each === name);
  return act === undefined ? null : { entries: Number(entries), act, node: Number(node), what };
}

/** Returns why the acts in a link are invalid, or an empty string if they are valid. */
export function actProblem({ fork = "", branches = "" }: Words): string {
  const part = [fork, ...branches.split(BETWEEN_BRANCHES)]
    .flatMap((text) => text.split(";"))
    .find((each) => each !== "" && forkIn(each) === null);
  if (part === undefined) return "";
  const [, , name] = WRITTEN_ACT.exec(part) ?? [];
  if (name === undefined) return `expected actions such as “57 crash 2” in the link, got “${part}”`;
  return `No action is called “${name}”. The actions are ${acts.slice(0, -1).join(", ")} and ${acts.at(-1)}.`;
}

export const BETWEEN_BRANCHES = "|";

export const MAX_COMPARED = 6;

/** One of several protocols that take the same steps: its name, followed by a colon and the variant if there is one. */
export interface Case {
  readonly name: string;
  readonly words: Words;
}

/** Returns the words of the run, without acts and cursor. */
export function untouched({
  at: _at,
  fork: _fork,
  branches: _branches,
  counterexample: _counterexample,
  ...words
}: Words): Words {
  return words;
}

/** Returns the protocol given in the words and the protocols given in `with`, each once. */
export function casesOf({ with: others = "", at: _at, ...words }: Words): Case[] {
  const { protocol = "", variant } = words;
  const first = variant === undefined || variant === "" ? protocol : `${protocol}:${variant}`;
  const names = [...new Set([first, ...others.split(",").filter((name) => name !== "")])];
  const { variant: _variant, ...shared } = words;
  return names.map((name) => {
    const [own = "", form = ""] = name.split(":");
    return { name, words: { ...shared, protocol: own, ...(form === "" ? {} : { variant: form }) } };
  });
}

/** Returns the words with these protocols. Without protocols, there is nothing to compare. */
export function comparing(words: Words, names: readonly string[]): Words {
  const [first = "", ...others] = names;
  const [protocol = "", variant = ""] = first.split(":");
  const { variant: _variant, with: _with, at: _at, ...shared } = words;
  return {
    ...shared,
    protocol,
    ...(variant === "" ? {} : { variant }),
    ...(others.length === 0 ? {} : { with: others.join(",") }),
  };
}

/** Returns the HTML for a frame that shows a run. @param base the address of this page */
export function frameOf(base: string, words: Words, title: string): string {
  const attribute = (text: string): string => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const source = `${base}?embed${hashOf({ page: "run", words })}`;
  return `<iframe src="${attribute(source)}"\n        title="${attribute(title)}" width="100%" height="620" loading="lazy"></iframe>`;
}

/**
 * Returns the equivalent shell command, or null if there is none, as for a scenario under a different algorithm.
 * @param own the protocol and variant of the scenario that the words name
 */
export function commandOf({ page, words }: Place, own: Words = {}): string | null {
  const { protocol = "", variant = "", scenario, counterexample, fork, recording } = words;
  if (fork !== undefined || (page !== "run" && page !== "check")) return null;
  const name = page === "check" || counterexample !== undefined ? "check" : "sim";
  if (recording !== undefined) return `npx coterie trace ${quoted(recording)}`;
  if (scenario !== undefined && name === "sim") {
    const isOwn = (protocol === "" || protocol === own.protocol) && (variant === "" || variant === own.variant);
    return isOwn ? `npx coterie sim ${quoted(`scenarios/${scenario}.yaml`)}` : null;
  }
  const flags = Object.entries(words)
    .filter(([word, text]) => !ownWords.includes(word) && text !== "")
    .map(([word, text]) => {
      const flag = `--${word.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
      return text === "on" ? quoted(flag) : `${quoted(flag)} ${quoted(text)}`;
    });
  return ["npx coterie", name, quoted(protocol), ...flags].join(" ");
}

/** Quotes any text from a link or file name so that a shell reads it as one word. */
const quoted = (text: string): string =>
  /^[\w.,:/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

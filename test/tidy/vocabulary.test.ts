/**
 * Enforces terms of the field, and one term for each concept. Other terms are rejected in identifiers, fields, flags,
 * file names and docs. The number of remaining uses of a term may only decrease.
 */
import { statSync } from "node:fs";
import { Visitor } from "vite";
import { describe, expect, it } from "vitest";
import { code, type HouseFile, house, parsed } from "./house.ts";

interface Word {
  readonly standard: string;
  /**
   * Matches a whole word in an identifier or a field. `wasToldTwice` consists of the words `was`, `told` and `twice`.
   */
  readonly inIdentifiers?: RegExp;
  /** Matches fields that types declare, and therefore fields of JSON. */
  readonly inFields?: RegExp;
  /** Matches any text: code, comments, docs. */
  readonly inTexts?: RegExp;
  /** The number of remaining uses, and the reason. */
  readonly atMost?: number;
  readonly why?: string;
}

const words: Readonly<Record<string, Word>> = {
  canvass: { standard: "pre-vote", inTexts: /\bcanvass/gi },
  assent: { standard: "vote granted", inTexts: /\bassent/gi },
  reign: { standard: "term of leadership", inTexts: /\breign/gi },
  "held for crashed": { standard: "suspected", inTexts: /\b(?:hold|held|holds|holding) (?:\S+ ){0,4}for crashed/gi },
  presumed: { standard: "suspected", inIdentifiers: /^presum/ },
  desk: { standard: "lock service", inTexts: /\bdesks?\b/gi, inIdentifiers: /^desks?$/ },
  clerk: { standard: "server", inTexts: /\bclerks?\b/gi, inIdentifiers: /^clerks?$/ },
  plea: { standard: "request", inTexts: /\bpleas?\b/gi, inIdentifiers: /^pleas?$/ },
  ticket: { standard: "request id", inTexts: /\btickets?\b/gi, inIdentifiers: /^tickets?$/ },
  user: {
    standard: "workload",
    inFields: /^users?$/,
    atMost: 2,
    why: "of NATS: the name of an account",
  },
  talkative: { standard: "causality probe", inTexts: /\btalkative\b|\btalkers\b/gi },
  atRest: {
    standard: "quiescent",
    inTexts: /\batRest\b/g,
    atMost: 11,
    why: "a host and a heap at rest: another thing, in plain English",
  },
  restless: { standard: "pendingTimers", inTexts: /\brestless/gi },
  inTheEnd: { standard: "eventually", inTexts: /\binTheEnd\b/g },
  notices: {
    standard: "crash notifications",
    inTexts: /--notices\b/g,
    inIdentifiers: /^notices?$/,
    atMost: 5,
    why: "the old flag is refused with its new name; the studio has notices to its user",
  },
  brokenOff: { standard: "crash within a step", inTexts: /\b(?:isB|b)rokenOff\b/g },
  midStep: {
    standard: "crash within a step",
    inTexts: /\bmidStep\b|--mid-step\b|\bmid-step\b/g,
    atMost: 2,
    why: "the old words are refused with their new names",
  },
  parcel: { standard: "envelope", inTexts: /\bparcels?\b/gi, inIdentifiers: /^parcels?$/ },
  lab: { standard: "model", inIdentifiers: /^lab$/ },
  isMet: { standard: "passed", inTexts: /\bisMet\b/g },
  came: { standard: "actual", inFields: /^came$/ },
  said: {
    standard: "the noun that is meant",
    inFields: /^said$/,
    atMost: 1,
    why: "what a channel said of its pressure, in its test",
  },
  told: { standard: "the noun that is meant", inFields: /^told$/ },
  asked: {
    standard: "the noun that is meant",
    inFields: /^asked$/,
    atMost: 2,
    why: "ASKED of Raymond's paper; a record of journals that are there",
  },
  tell: {
    standard: "command, or the verb of the action",
    inFields: /^tells?$/,
    inTexts: /^\s*- (?:\{ )?tell:/gm,
    atMost: 6,
    why: "the old field is refused with its new name; options that say who tells whom, such as Paxos's acceptorsTell",
  },
  says: { standard: "emits, or summary", inFields: /^says$/, inTexts: /^\s*(?:- |when: )\{ (?:[^}\n]*, )?says:/gm },
  nth: { standard: "occurrence", inIdentifiers: /^nth$/ },
  under: { standard: "variants", inTexts: /^under:/gm },
  promises: {
    standard: "properties",
    inIdentifiers: /^promises$/,
    atMost: 103,
    why: "messages of Paxos, of votes and of views; JavaScript's",
  },
  claims: { standard: "properties, costs", inIdentifiers: /^claims$/ },
  requirements: { standard: "properties", inIdentifiers: /^requirements?$/ },
  site: {
    standard: "local configuration",
    inIdentifiers: /^sites?$/,
    atMost: 40,
    why: "the documentation site; Sec-Fetch-Site",
  },
  aside: {
    standard: "not a candidate",
    inTexts: /\b(?:stands?|stood|standing) aside\b/gi,
    inFields: /^aside$/,
  },
  "live form": { standard: "node", inTexts: /\blive forms?\b/gi },
  "service form": { standard: "embedded", inTexts: /\bservice forms?\b/gi },
  "takes for crashed": { standard: "suspects", inTexts: /\b(?:take|takes|taken|took) (?:\S+ ){0,4}for crashed\b/gi },
  "gets word from": { standard: "hears from", inTexts: /\b(?:get|gets|got) word from\b/gi },
  "Hold / Follow": {
    standard: "Pause view, Go live, Select, Send command",
    inTexts: />\s*(?:Tell|Hold|Follow|Pick nodes)\s*</g,
  },
  "in the book 6": { standard: "textbook: 6 messages", inTexts: /\bin the book \d/gi },
  eventually: { standard: "every election terminates", inTexts: /\bdone with it in the end\b/gi },
  "places, not events": { standard: "use a fixed set of names", inTexts: /\bplaces, not events\b/gi },
  "who never calls": {
    standard: "members that never call … are not candidates, but still vote",
    inTexts: /\bwho never calls\b/gi,
  },
  "promises of deliveries": {
    standard: "ordering guarantees concern delivery, not receipt",
    inTexts: /\bpromises? (?:only )?of deliver(?:y|ies)\b/gi,
  },
  "more is asked": {
    standard: "timers get strong fairness: one that can fire again and again eventually fires",
    inTexts: /\bof timers more is asked\b/gi,
  },
  "--story": { standard: "--log", inTexts: /--story\b/g, atMost: 3, why: "the old flag is refused with its new name" },
  story: {
    standard: "log",
    inIdentifiers: /^(?:story|stories)$/,
    atMost: 313,
    why: "tests tell stories; golden files lie in stories/",
  },
  "--without-lost": {
    standard: "--delivered-only",
    inTexts: /--without-lost\b/g,
    atMost: 3,
    why: "the old flag is refused with its new name",
  },
  "--timers synchronous": {
    standard: "--timers quiet",
    inTexts: /--timers[ =]synchronous\b/g,
    atMost: 1,
    why: "the old flag is refused with its new name",
  },
  Receipt: { standard: "SendResult", inTexts: /\b(?:type|interface) Receipt\b/g },
  "fault gate": { standard: "fault injector", inTexts: /\bfault[ -]gates?\b|\bfaultGates?\b/gi },
  pieces: {
    standard: "fragments",
    inTexts: /\b(?:in|of) pieces\b/g,
    atMost: 5,
    why: "a line or a body that arrives in pieces",
  },
  keeper: {
    standard: "supervisor",
    inTexts: /\bkeepers?\b/gi,
    inIdentifiers: /^keepers?$/,
    atMost: 9,
    why: "who keeps records or clocks",
  },
  weather: { standard: "link conditions", inTexts: /\bweather\b/gi, inIdentifiers: /^weather$/ },
  nonsense: { standard: "validation", inTexts: /\bnonsense\b/gi, inIdentifiers: /^nonsense$/ },
  "laboratory form": { standard: "model", inTexts: /\blaboratory(?:'s)? forms?\b/gi },
  whoever: { standard: "a named actor", inTexts: /\bwhoever\b/gi, atMost: 190, why: "prose that is left over" },
  whom: {
    standard: "a named actor",
    inTexts: /\bwhom\b/gi,
    atMost: 80,
    why: "prose that is left over; fields of the event log of the studio",
  },
  "so many of": {
    standard: "a number, or “as many”",
    inTexts: /\bso many of\b|\bhow-manieth\b/gi,
    atMost: 4,
    why: "prose that is left over",
  },
  "otherwise than": {
    standard: "differently from",
    inTexts: /\botherwise than\b/gi,
    atMost: 2,
    why: "prose that is left over",
  },
};

const THIS_FILE = "test/tidy/vocabulary.test.ts"; // It quotes the terms that it rejects.
/** Historical texts, and texts by others. */
const elsewhere = /^(?:CHANGELOG\.md|package-lock\.json|node_modules|LICENSE)/;

/** Splits `wasToldTwice`, `was-told-twice` and `was_told_twice` into the same parts. */
const partsOf = (name: string): string[] =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((part) => part !== "");

/** Returns names that a file declares or uses, and the fields of the types that it declares. */
function namesIn(file: HouseFile): { names: string[]; fields: string[] } {
  const names: string[] = [file.path.replace(/^.*\//, "")];
  const fields: string[] = [];
  if (!/\.(?:ts|svelte)$/.test(file.path)) return { names, fields };
  new Visitor({
    Identifier: ({ name }) => void names.push(name),
    PrivateIdentifier: ({ name }) => void names.push(name),
    TSPropertySignature: ({ key }) => void (key.type === "Identifier" && fields.push(key.name)),
  }).visit(parsed(file).program);
  return { names, fields };
}

/** Counts how often each part of a name occurs in `names`. */
function partsIn(names: readonly string[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const part of names.flatMap(partsOf)) times.set(part, (times.get(part) ?? 0) + 1);
  return times;
}

function among(parts: ReadonlyMap<string, number>, pattern: RegExp | undefined): number {
  if (pattern === undefined) return 0;
  return [...parts].reduce((sum, [part, times]) => sum + (pattern.test(part) ? times : 0), 0);
}

function counted(files: readonly HouseFile[]): Map<string, Map<string, number>> {
  const found = new Map(Object.keys(words).map((word) => [word, new Map<string, number>()]));
  for (const file of files) {
    const { names, fields } = namesIn(file);
    const [parts, declared] = [partsIn(names), partsIn(fields)];
    for (const [word, { inIdentifiers, inFields, inTexts }] of Object.entries(words)) {
      const times =
        (inTexts === undefined ? 0 : [...file.text.matchAll(inTexts)].length) +
        among(parts, inIdentifiers) +
        among(declared, inFields);
      if (times > 0) found.get(word)?.set(file.path, times);
    }
  }
  return found;
}

function tooMany(files: readonly HouseFile[]): string[] {
  return [...counted(files)].flatMap(([word, places]) => {
    const { standard, atMost = 0 } = words[word] as Word;
    const sum = [...places.values()].reduce((a, b) => a + b, 0);
    if (sum <= atMost) return [];
    const latest = [...places].sort(([a], [b]) => writtenAt(b) - writtenAt(a));
    const where = latest.slice(0, SHOWN).map(([path, times]) => `${path}: ${times}`);
    const others = latest.length > SHOWN ? `, and ${latest.length - SHOWN} files that were written before` : "";
    return [
      `“${word}” occurs ${sum} times, at most ${atMost} are allowed: use ${standard} (${where.join(", ")}${others})`,
    ];
  });
}

/** The number of files shown. The file that added a word is most likely the one modified last. */
const SHOWN = 8;
const writtenAt = (path: string): number => statSync(new URL(`../../${path}`, import.meta.url)).mtimeMs;

describe("vocabulary", () => {
  it("rejected terms become rarer", () => {
    const files = house.filter(({ path }) => path !== THIS_FILE && !elsewhere.test(path));
    expect(files.length).toBeGreaterThan(code.length);
    expect(tooMany(files)).toEqual([]);
  });

  it("every remaining use has a reason", () => {
    const unexplained = Object.entries(words).filter(([, { atMost = 0, why = "" }]) => atMost > 0 && why === "");
    expect(unexplained.map(([word]) => word)).toEqual([]);
  });

  it.each([
    ["an identifier", { path: "src/core/a.ts", text: "const pleaOf = 1;\n" }],
    ["a field", { path: "src/core/a.ts", text: "export const a = { pleas: 1 };\n" }],
    ["a flag in docs", { path: "docs/a.md", text: "coterie sim --story\n" }],
    ["a file name", { path: "src/core/lock-plea.ts", text: "" }],
    ["prose", { path: "docs/a.md", text: "the plea waits\n" }],
  ])("%s is rejected", (_what, file) => {
    const report = counted([file]);
    expect([...report].flatMap(([word, places]) => (places.size > 0 ? [word] : []))).toHaveLength(1);
  });
});

/**
 * A reader for EDN, the data notation used by Clojure (https://github.com/edn-format/edn). It returns plain data.
 *
 * Keywords, symbols and characters become strings without their prefixes (`:write` becomes "write"), lists and vectors
 * become arrays, sets become sorted arrays, and maps become objects with string keys. A tagged form becomes the form
 * without its tag. Integers beyond 2^53 become strings of digits, so that different integers remain different. The
 * package `edn-data` rounds such integers and reports errors without positions.
 */
import { UsageError } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import type { Value } from "./history.ts";

/** A top-level form or an element of a top-level vector, with its position. */
export interface Form {
  readonly value: Value;
  readonly line: number;
  readonly column: number;
}

const MAX_DEPTH = 64;
const MAX_CHARACTERS = 2 ** 28;

const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]", "(": ")" };
const CHARACTERS: Readonly<Record<string, string>> = { newline: "\n", return: "\r", space: " ", tab: "\t" };
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  b: "\b",
  f: "\f",
  '"': '"',
  "\\": "\\",
};
/** Patterns for whitespace with comments, and for a word, which extends to the next whitespace or delimiter. */
const BLANK = /(?:[\s,]+|;[^\n]*)*/y;
const WORD = /[^\s,;"{}[\]()]*/y;
const STRING = /[^"\\]*/y;
const INTEGER = /^[+-]?(?:0|[1-9]\d*)N?$/;
const REAL = /^[+-]?(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?M?$/;
const SYMBOL = /^[A-Za-z.*+!\-_?$%&=<>/|'][\w.*+!\-?$%&=<>/|'#:]*$/;

/**
 * Yields the forms in a text. Elements of a top-level vector are yielded one at a time, because a history may be
 * written either with or without such a vector.
 */
export function* readEdn(text: string): Generator<Form> {
  if (text.length > MAX_CHARACTERS)
    throw new UsageError("bad-edn", `expected at most ${MAX_CHARACTERS} characters, got ${text.length}`);
  const reader = ednReader(text);
  for (;;) {
    const at = reader.next();
    if (at === null) return;
    if (text[at] !== "[") yield { ...reader.place(at), value: reader.form(0) };
    else yield* reader.elements();
  }
}

function ednReader(text: string) {
  let at = 0;
  // Positions are requested in ascending order, so lines are counted only once.
  let countedTo = 0;
  let line = 1;
  let lineStart = 0;

  function place(offset: number): { line: number; column: number } {
    for (let end = text.indexOf("\n", countedTo); end !== -1 && end < offset; end = text.indexOf("\n", countedTo)) {
      line += 1;
      lineStart = end + 1;
      countedTo = end + 1;
    }
    return { line, column: offset - lineStart + 1 };
  }

  function refuse(offset: number, expected: string, got: string): UsageError {
    const lines = text.slice(0, offset).split("\n");
    const [line, column] = [lines.length, (lines.at(-1)?.length ?? 0) + 1];
    return new UsageError("bad-edn", `line ${line}, column ${column}: expected ${expected}, got ${got}`);
  }

  function take(pattern: RegExp): string {
    pattern.lastIndex = at;
    const [taken = ""] = pattern.exec(text) ?? [];
    at += taken.length;
    return taken;
  }

  /** Returns the position of the next form. Null at the end of the text. Skips forms discarded with `#_`. */
  function next(depth = 0): number | null {
    for (;;) {
      take(BLANK);
      if (!text.startsWith("#_", at)) return at < text.length ? at : null;
      at += 2;
      form(depth + 1);
    }
  }

  function form(depth: number): Value {
    if (depth > MAX_DEPTH) throw refuse(at, `forms nested at most ${MAX_DEPTH} deep`, "deeper ones");
    const start = next(depth);
    if (start === null) throw refuse(at, "a form", "the end");
    switch (text[at]) {
      case "{":
        return mapOf(sequence(depth), start);
      case "[":
      case "(":
        return sequence(depth);
      case '"':
        return string();
      case "\\":
        return character();
      case "#":
        return dispatch(depth);
      case "}":
      case "]":
      case ")":
        throw refuse(start, "a form", `an unmatched "${text[at]}"`);
      default:
        return word();
    }
  }

  /** Reads from an opening bracket to the matching closing bracket. */
  function sequence(depth: number): Value[] {
    const items: Value[] = [];
    for (const closing = open(); !closes(closing, depth); ) items.push(form(depth + 1));
    return items;
  }

  function open(): { bracket: string; start: number } {
    const start = at++;
    return { bracket: text[start] ?? "", start };
  }

  function closes({ bracket, start }: { bracket: string; start: number }, depth: number): boolean {
    const closing = CLOSING[bracket] ?? "";
    if (next(depth) === null) throw refuse(start, `"${bracket}" to be closed by "${closing}"`, "the end");
    if (text[at] !== closing) return false;
    at += 1;
    return true;
  }

  /** Yields the elements of the vector that begins here, with their positions. */
  function* elements(): Generator<Form> {
    for (const vector = open(); !closes(vector, 0); ) yield { ...place(at), value: form(1) };
  }

  function mapOf(items: readonly Value[], start: number): Value {
    if (items.length % 2 === 1) throw refuse(start, "a value for every key of the map", `${items.length} forms`);
    const keys = items
      .filter((_, index) => index % 2 === 0)
      .map((key) => (typeof key === "string" ? key : canonical(key)));
    const known = new Set<string>();
    for (const key of keys) {
      if (known.has(key)) throw refuse(start, "every key of the map to occur once", `${key} again`);
      known.add(key);
    }
    return Object.fromEntries(keys.map((key, index) => [key, items[2 * index + 1] as Value]));
  }

  function string(): string {
    const start = at++;
    for (let value = ""; ; ) {
      value += take(STRING);
      if (at >= text.length) throw refuse(start, 'the string to be closed by "', "the end");
      if (text[at++] === '"') return value;
      value += escaped();
    }
  }

  function escaped(): string {
    const letter = text[at++] ?? "";
    if (letter === "u") return unit(4);
    const meant = ESCAPES[letter];
    if (meant === undefined) throw refuse(at - 2, 'an escape (\\n \\r \\t \\b \\f \\" \\\\ \\uXXXX)', `\\${letter}`);
    return meant;
  }

  function unit(digits: number): string {
    const hexadecimal = text.slice(at, at + digits);
    if (!/^[\da-fA-F]{4}$/.test(hexadecimal)) throw refuse(at - 2, "four hexadecimal digits after \\u", hexadecimal);
    at += digits;
    return String.fromCharCode(Number.parseInt(hexadecimal, 16));
  }

  function character(): string {
    const start = at++;
    const name = text[at] === undefined ? "" : String.fromCodePoint(text.codePointAt(at) ?? 0);
    at += name.length;
    const rest = /\w/.test(name) ? name + take(WORD) : name;
    if (rest === name && name !== "") return name;
    if (/^u[\da-fA-F]{4}$/.test(rest)) return String.fromCharCode(Number.parseInt(rest.slice(1), 16));
    const named = CHARACTERS[rest];
    if (named === undefined) throw refuse(start, "a character such as \\a, \\newline or \\u0041", `\\${rest}`);
    return named;
  }

  /** Reads the form after a `#`: `#{…}` is a set, and `#tag form` is the form itself. */
  function dispatch(depth: number): Value {
    const start = at++;
    if (text[at] === "{") return sequence(depth).sort((a, b) => (canonical(a) < canonical(b) ? -1 : 1));
    const tag = take(WORD);
    if (!/^[A-Za-z]/.test(tag)) throw refuse(start, "a set #{…}, a tag or #_", `#${tag}`);
    return form(depth + 1);
  }

  function word(): Value {
    const start = at;
    const token = take(WORD);
    if (token === "nil") return null;
    if (token === "true" || token === "false") return token === "true";
    if (INTEGER.test(token)) return wholeNumber(token.replace("N", ""));
    if (REAL.test(token)) return Number(token.replace("M", ""));
    if (SYMBOL.test(token)) return token;
    if (token.startsWith(":") && token.length > 1 && !token.startsWith("::")) return token.slice(1);
    throw refuse(start, "a form", token);
  }

  return { next, form, elements, place };
}

function wholeNumber(token: string): Value {
  const number = Number(token);
  return Number.isSafeInteger(number) ? number + 0 : token.replace("+", "");
}

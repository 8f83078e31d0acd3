/**
 * JSON of plain data, written in fragments, so that nobody waits for as long as all of it takes. The text is what `JSON.stringify`
 * gives. What is written must not change meanwhile.
 */

export interface Writing {
  /** As far as it has been written. */
  text: string;
  /** What has been begun and not ended, from the outermost in. */
  open: Open[];
}

/** A list, or an object with the names of its fields; `at`: the next of its items. */
interface Open {
  items: unknown[];
  names: string[] | null;
  at: number;
}

/** What is about as long as this is written at once. */
const FRAGMENT_CHARS = 4_096;

export function beginWriting(value: object): Writing {
  const writing: Writing = { text: "", open: [] };
  open(writing, value);
  return writing;
}

export const isWritten = ({ open }: Writing): boolean => open.length === 0;

/** Goes on until it has written about so many characters more, or all. */
export function write(writing: Writing, chars: number): void {
  const until = writing.text.length + chars;
  for (let inmost = writing.open.at(-1); inmost !== undefined; inmost = writing.open.at(-1)) {
    if (inmost.at === inmost.items.length) close(writing, inmost);
    else writeNext(writing, inmost);
    if (writing.text.length >= until) return;
  }
}

function open(writing: Writing, value: object): void {
  const isList = Array.isArray(value);
  writing.text += isList ? "[" : "{";
  const fields = isList ? [] : Object.entries(value).filter(([, field]) => field !== undefined);
  writing.open.push({
    items: isList ? value : fields.map(([, field]) => field),
    names: isList ? null : fields.map(([name]) => name),
    at: 0,
  });
}

function close(writing: Writing, { names }: Open): void {
  writing.text += names === null ? "]" : "}";
  writing.open.pop();
}

/** As many items as make a fragment, or the beginning of one that is longer. */
function writeNext(writing: Writing, inmost: Open): void {
  const { items, names, at } = inmost;
  if (at > 0) writing.text += ",";
  const first = items[at];
  let size = sizeOf(first, FRAGMENT_CHARS);
  if (size > FRAGMENT_CHARS && typeof first === "object" && first !== null) {
    if (names !== null) writing.text += `${JSON.stringify(names[at])}:`;
    inmost.at += 1;
    return open(writing, first);
  }
  let to = at + 1;
  for (; to < items.length; to++) {
    size += sizeOf(items[to], FRAGMENT_CHARS - size);
    if (size > FRAGMENT_CHARS) break;
  }
  inmost.at = to;
  writing.text += textOf(items.slice(at, to), names?.slice(at, to) ?? null);
}

/** Without the brackets around it. */
function textOf(items: unknown[], names: string[] | null): string {
  const all = names === null ? items : Object.fromEntries(names.map((name, at) => [name, items[at]]));
  return JSON.stringify(all).slice(1, -1);
}

/** About how long the JSON of it is; counted no further than `most`. */
function sizeOf(value: unknown, most: number): number {
  if (typeof value === "string") return value.length + 3;
  if (typeof value !== "object" || value === null) return 6;
  let size = 3;
  if (Array.isArray(value))
    for (let at = 0; at < value.length && size <= most; at++) size += sizeOf(value[at], most - size);
  else
    for (const name of Object.keys(value)) {
      if (size > most) break;
      size += name.length + 3 + sizeOf((value as Record<string, unknown>)[name], most - size);
    }
  return size;
}

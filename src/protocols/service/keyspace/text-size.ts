/** The size of a text, in UTF-8 and as JSON. */

/**
 * Patterns for strings of single-byte characters. In JSON, the only printable ones that take a second byte are quotes
 * and backslashes. Matching is much faster than counting.
 */
const PRINTABLE = /^[ -~]*$/;
const ASCII = /^[\0-\x7f]*$/;

/** Returns the size of a string in a snapshot, in bytes. Snapshots are JSON in UTF-8. */
export function bytesOf(text: string): number {
  if (PRINTABLE.test(text)) return text.length + 2 + countOf(text, '"') + countOf(text, "\\");
  let bytes = 2;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || isHalf(unit)) bytes += 6;
    else if (unit === 0x22 || unit === 0x5c) bytes += 2;
    else bytes += widthOf(unit);
  }
  return bytes;
}

function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count += 1;
  return count;
}

/** Returns the size of a string in UTF-8, in bytes. */
export function utf8BytesOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let bytes = 0;
  for (let at = 0; at < text.length; at++) bytes += widthOf(text.charCodeAt(at));
  return bytes;
}

/**
 * Returns whether a string fits in the given number of UTF-8 bytes. Most strings are so short that their bytes do not
 * have to be counted, because a UTF-16 unit takes at most three bytes.
 */
export const fitsBytes = (text: string, most: number): boolean => text.length * 3 <= most || utf8BytesOf(text) <= most;

/**
 * Returns the number of bytes that a UTF-16 unit takes. Each half of a surrogate pair counts as three, which is an
 * upper bound.
 */
const widthOf = (unit: number): number => (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);
const isHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xe000;

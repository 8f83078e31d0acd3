/** Converts texts to bytes in UTF-8, and back. */
import type { ByteText } from "./vocabulary.ts";

const ASCII = /^[\0-\x7f]*$/;

/**
 * Returns a text's bytes. Half of a surrogate pair, which has no UTF-8 form, takes three bytes as in WTF-8, so different
 * texts always have different bytes.
 */
export function bytesOfText(text: string): ByteText {
  if (ASCII.test(text)) return text;
  let bytes = "";
  for (const character of text) bytes += bytesOfCode(character.codePointAt(0) as number);
  return bytes;
}

function bytesOfCode(code: number): ByteText {
  if (code < 0x80) return String.fromCharCode(code);
  const last = 0x80 | (code & 0x3f);
  if (code < 0x800) return String.fromCharCode(0xc0 | (code >> 6), last);
  const third = 0x80 | ((code >> 6) & 0x3f);
  if (code < 0x1_00_00) return String.fromCharCode(0xe0 | (code >> 12), third, last);
  return String.fromCharCode(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 0x3f), third, last);
}

/** Returns the text that has these bytes. Null if there is none. */
export function textOfBytes(bytes: ByteText): string | null {
  if (ASCII.test(bytes)) return bytes;
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes.charCodeAt(at);
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    let code = length === 1 ? lead : lead & (0xff >> (length + 1));
    for (let next = at + 1; next < at + length; next++) code = (code << 6) | (bytes.charCodeAt(next) & 0x3f);
    if (code > 0x10_ff_ff) return null;
    text += String.fromCodePoint(code);
    at += length;
  }
  return bytesOfText(text) === bytes ? text : null; // Rejects malformed bytes, because they decode to another text.
}

/** Long texts, such as snapshots, go over the network and into journals in fragments. */

/** What comes at the position. A character of two units is not cut in half: halves have no bytes of their own. */
export function chunkAt(text: string, position: number, maxChars: number): string {
  const end = position + maxChars;
  const isCut = end < text.length && isFirstHalf(text.charCodeAt(end - 1));
  return text.slice(position, isCut && maxChars > 1 ? end - 1 : isCut ? end + 1 : end);
}

const isFirstHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;

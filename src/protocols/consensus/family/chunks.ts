/** Functions that split long texts, such as snapshots, into fragments for the network and the journal. */

/**
 * Returns the fragment at `position`. It never splits a surrogate pair, because half a pair cannot be encoded in UTF-8.
 */
export function chunkAt(text: string, position: number, maxChars: number): string {
  const end = position + maxChars;
  const isCut = end < text.length && isFirstHalf(text.charCodeAt(end - 1));
  return text.slice(position, isCut && maxChars > 1 ? end - 1 : isCut ? end + 1 : end);
}

const isFirstHalf = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;

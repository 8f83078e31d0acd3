/** What is too long for one message or record, in fragments that are not. */

/** In UTF-16 units, of which each takes three bytes at most: several such fragments stay below any frame. */
const FRAGMENT_CHARS = 65_536;
/** In UTF-8. */
export const MAX_FRAGMENT_BYTES = 3 * FRAGMENT_CHARS;

/** What comes at this offset. A pair of surrogates is not torn, since each half alone is no text. */
export function fragmentAt(text: string, offset: number): string {
  const end = offset + FRAGMENT_CHARS;
  const last = text.charCodeAt(end - 1);
  const isTorn = end < text.length && last >= 0xd8_00 && last < 0xdc_00;
  return text.slice(offset, isTorn ? end - 1 : end);
}

export function fragments(text: string): string[] {
  const found: string[] = [];
  for (let offset = 0; offset < text.length; offset += (found.at(-1) as string).length)
    found.push(fragmentAt(text, offset));
  return found;
}

/** The first of these, as many as make a fragment, and at least one. */
export function batch<T>(items: readonly T[], chars: (item: T) => number): T[] {
  let sum = 0;
  const end = items.findIndex((item, at) => {
    sum += chars(item);
    return at > 0 && sum > FRAGMENT_CHARS;
  });
  return end === -1 ? [...items] : items.slice(0, end);
}

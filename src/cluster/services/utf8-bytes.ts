/** The length of a text in UTF-8, without `Buffer`, which browsers lack. */
export const utf8Bytes = (text: string): number => encoder.encode(text).length;

/** Counts the bytes only of long texts: a UTF-16 unit takes at most three. */
export const fitsBytes = (text: string, most: number): boolean => text.length * 3 <= most || utf8Bytes(text) <= most;

const encoder = new TextEncoder();

/** Returns the length of a string in UTF-8. Does not use `Buffer`, which browsers lack. */
export const utf8Bytes = (text: string): number => encoder.encode(text).length;

/** Whether a string fits. Counts bytes only in long strings, since a UTF-16 unit takes at most three. */
export const fitsBytes = (text: string, most: number): boolean => text.length * 3 <= most || utf8Bytes(text) <= most;

const encoder = new TextEncoder();

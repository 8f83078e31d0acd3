/** How many bytes a text takes in UTF-8; without `Buffer`, as in browsers. */
export const utf8Bytes = (text: string): number => encoder.encode(text).length;

/** Most texts are so short that their bytes need not be counted: a unit of UTF-16 takes at most three. */
export const fitsBytes = (text: string, most: number): boolean => text.length * 3 <= most || utf8Bytes(text) <= most;

const encoder = new TextEncoder();

/** How many bytes a text takes in UTF-8; without `Buffer`, as in browsers. */
export const utf8Bytes = (text: string): number => encoder.encode(text).length;

const encoder = new TextEncoder();

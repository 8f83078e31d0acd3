import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/**
 * Returns the SHA-256 digest of the text's UTF-8 bytes, in hexadecimal. Uses a library because handlers are
 * synchronous, whereas the browser's digest function is asynchronous.
 */
export const digest = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)));

/** The length of a digest in hexadecimal digits. */
export const DIGEST_CHARS = 64;

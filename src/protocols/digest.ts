import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/** SHA-256 of a text's UTF-8 bytes, in hexadecimal. Handlers also run in browsers, whose own digest is asynchronous. */
export const digest = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)));

export const DIGEST_CHARS = 64;

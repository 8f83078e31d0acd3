/** Converts errors from a connection attempt to sentences for users. */
import { inPlainWords } from "../runtime/transport/certificate-flaws.ts";

const sentences: readonly (readonly [words: RegExp, sentence: string])[] = [
  [/ECONNREFUSED/, "the connection was refused: nothing listens at this address"],
  [/ENOTFOUND|EAI_AGAIN/, "its host name does not resolve"],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, "no route to that machine"],
  [
    /EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG/,
    "the server does not speak TLS: if it is a member, begin its URL with http",
  ],
  [/^HPE_/, "the server does not speak HTTP"],
];

/**
 * @param endpoint the endpoint that could not be reached
 * @returns a clause, which is the same for all endpoints with this failure
 */
export function dialFailure({ code = "", message }: NodeJS.ErrnoException, endpoint: string): string {
  const found = sentences.find(([words]) => words.test(code));
  if (found !== undefined) return `${found[1]} (${code})`;
  const [, status] = /^Unexpected server response: (\d+)/.exec(message) ?? [];
  if (status !== undefined) return `the server does not accept clients (HTTP status ${status})`;
  if (code === "ECONNRESET") return `the connection broke${hintFor(endpoint)} (${code})`;
  const flaw = inPlainWords(code);
  return flaw === code ? inPlainWords(message.trim()) : flaw;
}

/**
 * Returns a hint for a connection that was closed without an answer. A TLS port closes connections that do not begin
 * with a handshake.
 */
const hintFor = (endpoint: string): string =>
  /^(https|wss):/.test(endpoint) ? "" : ": if that port has TLS, begin its URL with https";

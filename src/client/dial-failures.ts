/** Turns errors of a connection attempt into sentences for users. */
import { inPlainWords } from "../runtime/transport/certificate-flaws.ts";

const sentences: readonly (readonly [words: RegExp, sentence: string])[] = [
  [/ECONNREFUSED/, "the connection was refused: nothing listens at this address"],
  [/ENOTFOUND|EAI_AGAIN/, "its host name has no address"],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, "no route to that machine"],
  [
    /EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG/,
    "the server does not speak TLS: if it is a member, begin its URL with http",
  ],
  [/^HPE_/, "the server does not speak HTTP"],
];

/** @param endpoint where the attempt failed. @returns a clause, the same for all endpoints with that failure */
export function dialFailure({ code = "", message }: NodeJS.ErrnoException, endpoint: string): string {
  const found = sentences.find(([words]) => words.test(code));
  if (found !== undefined) return `${found[1]} (${code})`;
  const [, status] = /^Unexpected server response: (\d+)/.exec(message) ?? [];
  if (status !== undefined) return `the server accepts no clients (HTTP status ${status})`;
  if (code === "ECONNRESET") return `the connection broke${hintFor(endpoint)} (${code})`;
  const flaw = inPlainWords(code);
  return flaw === code ? inPlainWords(message.trim()) : flaw;
}

/** A TLS port closes connections that do not begin with a handshake. */
const hintFor = (endpoint: string): string =>
  /^(https|wss):/.test(endpoint) ? "" : ": if that port has TLS, begin its URL with https";

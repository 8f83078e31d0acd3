/**
 * Requests that ask for another protocol on their connection. A server may go on as if they had not (RFC 9110 §7.8), and has to where
 * programs ask for HTTP/2 with every first request, as Java's do. Node hands such a connection over bare: nobody hears its errors.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { HttpListener } from "../../runtime/http-listener.ts";

export const asksForWebSocket = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket";

/** Answers with this status and nothing else, and ends the connection, whether its caller does or not. */
export function refuseUpgrade(socket: Duplex, status: string): void {
  socket.on("error", () => {}); // The caller has gone.
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`, () => socket.destroy());
}

/** The server reads the request anew, without its wish, and whatever came behind it. */
export function goOnWithoutUpgrade(
  server: HttpListener["server"],
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() !== "upgrade") text += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, "latin1"), head])); // In Node headers are Latin-1.
  server.emit(socket instanceof TLSSocket ? "secureConnection" : "connection", socket);
}

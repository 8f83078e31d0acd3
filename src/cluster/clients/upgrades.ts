/**
 * Handles requests to upgrade the connection to a different protocol. A server may ignore such a request (RFC 9110
 * §7.8). It must do so for clients that request HTTP/2 with every first request, such as Java's HTTP client. Node hands
 * over such a connection without an error listener.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { HttpListener } from "../../runtime/http-listener.ts";

/** Whether the request asks for a WebSocket. */
export const asksForWebSocket = ({ headers }: IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket";

/** Answers with only this status and closes the connection, even if the caller does not close it. */
export function refuseUpgrade(socket: Duplex, status: string): void {
  socket.on("error", () => {}); // The caller has disconnected.
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`, () => socket.destroy());
}

/** Returns the request to the server, without its `upgrade` header, followed by the bytes that were already read. */
export function goOnWithoutUpgrade(
  server: HttpListener["server"],
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() !== "upgrade") text += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, "latin1"), head])); // Node reads headers as Latin-1.
  server.emit(socket instanceof TLSSocket ? "secureConnection" : "connection", socket);
}

/** An address at which pages are served over HTTP or HTTPS: the admin pages, and those of clients. */
import { createServer, type ServerOptions } from "node:https";
import { type ServerType, serve } from "@hono/node-server";
import { cannotListen } from "./cannot-listen.ts";
import { formatHostPort, type HostPort } from "./host-port.ts";

export interface HttpListenerOptions {
  readonly address: HostPort;
  /** What is served there, as an error says it: `for clients`. */
  readonly what: string;
  readonly fetch: Parameters<typeof serve>[0]["fetch"];
  /** Null: no TLS. */
  readonly tls: ServerOptions | null;
  readonly maxConnections: number;
  /** How long a connection may take to shake hands, or to send all headers of a request, before it is closed. Default 10,000. */
  readonly headersMs?: number;
}

export interface HttpListener {
  readonly server: ServerType;
  readonly url: string;
  /** The same where callers know this machine by another host. */
  urlAt(host: string): string;
  /** Connections from now on are proved with these; those that are open stay. */
  renew(tls: ServerOptions): void;
  /** Ends all that is open. */
  close(): Promise<void>;
}

const HEADERS_MS = 10_000;
/** How often within that time Node looks for connections that are late. */
const LOOKS = 4;

/** @throws EnvironmentError `cannot-listen` */
export async function httpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const { address, tls, maxConnections } = options;
  const server = await listening(options);
  server.maxConnections = maxConnections;
  server.on("error", () => {}); // A caller could not be let in, for want of descriptors, say: it will come again.
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : address.port;
  const urlAt = (host: string): string => `${tls === null ? "http" : "https"}://${formatHostPort({ host, port })}`;
  return {
    server,
    url: urlAt(address.host),
    urlAt,
    renew: (material) => void ("setSecureContext" in server && server.setSecureContext({ ...material })),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      }),
  };
}

function listening(options: HttpListenerOptions): Promise<ServerType> {
  const { address, what, fetch, tls, headersMs = HEADERS_MS } = options;
  const times = { headersTimeout: headersMs, connectionsCheckingInterval: Math.ceil(headersMs / LOOKS) };
  const served =
    tls === null
      ? { serverOptions: times }
      : { createServer, serverOptions: { ...times, ...tls, handshakeTimeout: headersMs } };
  return new Promise((resolve, reject) => {
    const place = { fetch, hostname: address.host, port: address.port, overrideGlobalObjects: false };
    const starting = serve({ ...place, ...served }, () => resolve(starting));
    starting.once("error", (error) => reject(cannotListen(address, what, error)));
  });
}

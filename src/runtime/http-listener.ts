/** Serves pages at an address over HTTP or HTTPS. Used by both the admin API and the client API. */
import { createServer, type ServerOptions } from "node:https";
import { type ServerType, serve } from "@hono/node-server";
import { cannotListen } from "./cannot-listen.ts";
import { formatHostPort, type HostPort } from "./host-port.ts";

export interface HttpListenerOptions {
  readonly address: HostPort;
  /** The purpose of the address, as shown in error messages, such as `for clients`. */
  readonly what: string;
  readonly fetch: Parameters<typeof serve>[0]["fetch"];
  /** TLS options. Null: no TLS. */
  readonly tls: ServerOptions | null;
  readonly maxConnections: number;
  /**
   * How long a connection may take to complete its TLS handshake, or to send a request's headers, before it is closed.
   * Default: 10,000.
   */
  readonly headersMs?: number;
}

export interface HttpListener {
  readonly server: ServerType;
  readonly url: string;
  /** Returns the server's URL with a different host name for this machine. */
  urlAt(host: string): string;
  /** Uses these certificates for new connections. Open connections stay open. */
  renew(tls: ServerOptions): void;
  /** Closes all connections. */
  close(): Promise<void>;
}

const HEADERS_MS = 10_000;
/** How many times per `headersMs` Node looks for connections that have exceeded it. */
const LOOKS = 4;

/** @throws EnvironmentError `cannot-listen` if the address is not available */
export async function httpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const { address, tls, maxConnections } = options;
  const server = await listening(options);
  server.maxConnections = maxConnections;
  // A connection could not be accepted, for example for lack of file descriptors. Callers retry.
  server.on("error", () => {});
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

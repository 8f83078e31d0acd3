/** TCP streams, optionally with mutual TLS, for which both ends present a certificate. */
import { createServer, connect as dialTcp, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, connect as dialTls, Server as TlsServer } from "node:tls";
import { UsageError } from "../../core/errors.ts";
import type { Listener, ListenerOptions, Network, TlsMaterial } from "./platform.ts";

// This overrides NODE_TLS_REJECT_UNAUTHORIZED.
const LEAST_TLS = { minVersion: "TLSv1.3", rejectUnauthorized: true } as const;
const BACKLOG = 511;

/** This machine's TCP network. */
export const network: Network = {
  dial({ host, port }, tls, onReady) {
    if (tls === null) return dialTcp({ host, port, noDelay: true }).once("connect", onReady);
    const { name: servername, ca, cert, key } = tls;
    const socket = dialTls({ host, port, ca, cert, key, servername, ...LEAST_TLS });
    socket.setNoDelay(true);
    return socket.once("secureConnect", onReady);
  },
  listener: (options) => listenerOf(serverFor(options), options),
};

function listenerOf(server: Server, { maxStreams, onDropped, onError }: ListenerOptions): Listener {
  server.maxConnections = maxStreams;
  server.on("drop", (from) => onDropped(from?.remoteAddress));
  return {
    open: ({ host, port }) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ host, port, backlog: BACKLOG }, () => {
          server.off("error", reject);
          server.on("error", onError);
          resolve();
        });
      }),
    renew({ ca, cert, key }) {
      if (!(server instanceof TlsServer)) return;
      fitting(() => server.setSecureContext({ ca, cert, key, ...LEAST_TLS }));
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function serverFor(options: ListenerOptions): Server {
  const { tls, onMade, onReady } = options;
  if (tls !== null) return tlsServer(tls, options);
  return createServer({ noDelay: true }, (socket) => {
    onMade(socket);
    onReady(socket, null);
  });
}

function tlsServer(tls: TlsMaterial, { handshakeTimeoutMs, onMade, onReady, onTlsRefused }: ListenerOptions): Server {
  const { ca, cert, key } = tls;
  const handshake = { requestCert: true, handshakeTimeout: handshakeTimeoutMs };
  const server = fitting(() => createTlsServer({ ca, cert, key, ...handshake, ...LEAST_TLS }));
  server.on("connection", (socket: Socket) => onMade(socket));
  server.on("secureConnection", (socket) => {
    socket.setNoDelay(true);
    const names = socket.getPeerCertificate().subjectaltname?.split(", ") ?? [];
    onReady(
      socket,
      names.flatMap((name) => (name.startsWith(DNS) ? [name.slice(DNS.length)] : [])),
    );
  });
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
    const { authorizationError } = socket;
    // A caller that disconnected was not refused, and a connection that this process closed has already been counted.
    const isGone = error.code === "ECONNRESET" && !authorizationError;
    if (!isGone) onTlsRefused(socket, String(authorizationError ?? error.message));
    socket.destroy(); // Node does not close the connection when a handshake times out.
  });
  return server;
}

/** @throws UsageError if OpenSSL rejects the certificates */
function fitting<T>(use: () => T): T {
  try {
    return use();
  } catch (error) {
    const expected =
      "expected the certificate, its key and the authority's certificate to be valid PEM, and the key to match the certificate";
    throw new UsageError("bad-certificate", `${expected}: ${(error as Error).message}`);
  }
}

const DNS = "DNS:";

/** `connect()` for Node: WebSockets in every supported release, and client certificates. */
import { setMaxListeners } from "node:events";
import { createSecureContext } from "node:tls";
import type { WebSocket } from "ws";
import { socketUrl } from "../cluster/clients/endpoints.ts";
import * as may from "../cluster/services/known-options.ts";
import { listeners } from "../cluster/services/on-abort.ts";
import { UsageError } from "../core/errors.ts";
import { type Client, type ConnectOptions, connectOn, exitOf, requireConnectOptions } from "./client.ts";
import { dialFailure } from "./dial-failures.ts";
import type { Dial } from "./link.ts";
import { surroundings } from "./surroundings.ts";

/** Options for `connect()` in Node. */
export interface NodeConnectOptions extends ConnectOptions {
  /**
   * PEM-encoded text: `ca` for verifying the members' certificates, and this client's own `cert` and `key` if the
   * cluster requires them.
   */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
}

/** The size limit for frames. The largest frame that a member sends is one fragment of a message, as JSON. */
const MAX_PAYLOAD_BYTES = 1024 * 1024;

/**
 * Connects to a cluster as a client, which has no vote. The client has the same elections, locks and shared state as
 * members.
 *
 * @example
 * const client = await connect({ endpoints: ["http://10.0.0.1:7300", "http://10.0.0.2:7300"] });
 * await using lock = await client.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * @throws UsageError if an option is invalid; CoordinationError `no-endpoint` if no member accepts the client in time,
 *   `forbidden` if the cluster accepts neither its token nor its certificate; the reason of `signal`
 */
export async function connect(options: NodeConnectOptions): Promise<Client> {
  requireConnectOptions(options, { tls: may.fields });
  requireTls(options.tls ?? {});
  listeners.allowMany = (many) => setMaxListeners(0, many);
  // Load the package on first use, so that programs that never connect need not install it.
  const { WebSocket: Made } = await import("ws");
  const client = await connectOn(surroundings, dialWith(Made, options.tls ?? {}), options);
  departOnExit(client);
  return client;
}

/** Clients that have not been closed. */
const clients = new Set<Client>();

/**
 * Closes the client when the process exits. Otherwise, `process.exit()` would leave the client's locks held until its
 * session expires.
 */
function departOnExit(client: Client): void {
  if (clients.size === 0) process.on("exit", departAll);
  clients.add(client);
  const forget = (): void => {
    clients.delete(client);
    if (clients.size === 0) process.off("exit", departAll);
  };
  if (client.signal.aborted) forget();
  else client.signal.addEventListener("abort", forget, { once: true });
}

function departAll(): void {
  for (const client of clients) exitOf(client);
}

/** @throws UsageError if a certificate is invalid or does not match its key */
function requireTls(tls: NonNullable<NodeConnectOptions["tls"]>): void {
  try {
    createSecureContext(tls);
  } catch (error) {
    const text = `expected tls of connect() to be valid PEM, with a key that matches the certificate: ${(error as Error).message}`;
    throw new UsageError("bad-option", text, { cause: error });
  }
}

const dialWith =
  (Made: typeof WebSocket, tls: NonNullable<NodeConnectOptions["tls"]>): Dial =>
  (endpoint, ear) => {
    const socket = new Made(socketUrl(endpoint), {
      ...tls,
      maxPayload: MAX_PAYLOAD_BYTES,
      perMessageDeflate: false,
    });
    socket.on("open", () => ear.opened());
    socket.on("message", (data, isBinary) => {
      if (!isBinary) ear.heard((data as Buffer).toString());
    });
    let reason: string | undefined;
    socket.on("close", () => ear.closed(reason));
    socket.on("error", (error) => {
      reason = dialFailure(error, endpoint); // A "close" event follows.
    });
    return {
      send: (text) => {
        if (socket.readyState === Made.OPEN) socket.send(text);
      },
      close: () => {
        // A paused member would not answer the close frame.
        if (socket.readyState === Made.OPEN) socket.close();
        setTimeout(() => socket.terminate(), LINGER_MS).unref();
      },
    };
  };

const LINGER_MS = 200;

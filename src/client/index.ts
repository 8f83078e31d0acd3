/**
 * Use a cluster from a process that is not a member, in browsers and in Node.
 *
 * @module coterie/client
 */
import { socketUrl } from "../cluster/clients/endpoints.ts";
import { UsageError } from "../core/errors.ts";
import { type Client, type ConnectOptions, connectOn, requireConnectOptions } from "./client.ts";
import type { Dial } from "./link.ts";
import { surroundings } from "./surroundings.ts";

export type { Role } from "../cluster/clients/client-words.ts";
export { type CoordinationCode, CoordinationError, type Phase } from "../cluster/services/coordination-error.ts";
export { UsageError } from "../core/errors.ts";
export type { Client, ClientStatus, ConnectOptions } from "./client.ts";

/** The WebSocket of browsers and of recent Node releases. */
interface Socket {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((message: { readonly data: unknown }) => void) | null;
  onclose: (() => void) | null;
  onerror: (() => void) | null;
  readonly readyState: number;
}

const OPEN = 1;

/**
 * Connects to a cluster as a client, which has no vote. The client has the same elections, locks and shared state as
 * members.
 *
 * @example
 * const client = await connect({ endpoints: ["http://10.0.0.1:7300", "http://10.0.0.2:7300"] });
 * const stock = client.map<number>("stock");
 * await stock.put("apples", 3);
 * for await (const change of stock.watch()) console.log(change.key);
 * @throws UsageError if an option is invalid; CoordinationError `no-endpoint` if no member accepts the client in time,
 *   `forbidden` if the cluster does not accept its token; the reason of `signal`
 */
export function connect(options: ConnectOptions): Promise<Client> {
  requireConnectOptions(options);
  requireSockets();
  return connectOn(surroundings, dial, options);
}

/** @throws UsageError if the platform has no WebSocket */
function requireSockets(): new (url: string) => Socket {
  const { WebSocket } = globalThis as { WebSocket?: new (url: string) => Socket };
  if (WebSocket !== undefined) return WebSocket;
  throw new UsageError("no-websocket", "expected a global WebSocket, got none: import connect from coterie");
}

const dial: Dial = (endpoint, ear) => {
  const Made = requireSockets();
  const socket = new Made(socketUrl(endpoint));
  socket.onopen = () => ear.opened();
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") ear.heard(data);
  };
  socket.onclose = () => ear.closed(); // Browsers give no reason.
  socket.onerror = () => {}; // A "close" event follows.
  return {
    send: (text) => {
      if (socket.readyState === OPEN) socket.send(text);
    },
    close() {
      socket.onclose = null;
      socket.close();
    },
  };
};

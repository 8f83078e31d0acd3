/**
 * The pages of a member's admin API.
 *
 * - `GET /status` returns a `NodeStatus`, and `GET /metrics` returns Prometheus text.
 * - `GET /trace` streams trace entries as JSON lines until the caller disconnects. If the first caller connects early
 *   enough, it gets the trace from the start of the process; later callers get a snapshot first. A caller that reads
 *   too slowly gets a `gap` and a new snapshot.
 * - `POST /command` takes a command of the protocol. `POST /request` takes a command that expects a reply, without its
 *   `request` id, and returns the reply.
 * - `GET` and `PUT /faults` read and set `Faults`, if the member was started with the fault injector enabled.
 */
import type { NodeId, View } from "../core/protocol.ts";
import type { Standing } from "./transport/identity.ts";

/** A member's state, as returned by `GET /status`. */
export interface NodeStatus extends Standing {
  readonly id: NodeId;
  readonly pid: number;
  readonly cluster: string;
  readonly protocol: string;
  /** The leader, as far as this node knows. Null if it knows of none. */
  readonly leader: NodeId | null;
  /** The term, epoch, ballot or view number. Null if the protocol has none. */
  readonly term: number | null;
  readonly role: string;
  readonly view: View;
  readonly uptimeMs: number;
  readonly address: string;
  /** The Byzantine behavior that this member was started with, if any. */
  readonly byzantine?: string;
  readonly peers: readonly PeerStatus[];
  /** The commands that `POST /command` takes, such as `election.call`, with the names of their fields. */
  readonly commands: Readonly<Record<string, readonly string[]>>;
}

/** The link to one peer. */
export interface PeerStatus {
  readonly id: NodeId;
  readonly address: string;
  readonly link: "open" | "dialing" | "waiting";
  readonly queuedBytes: number;
}

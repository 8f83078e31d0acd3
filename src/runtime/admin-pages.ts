/**
 * What a member answers on its admin address. `GET /status` gives a `NodeStatus`; `GET /metrics` Prometheus text;
 * `GET /trace` trace entries as JSON lines for as long as the caller listens, from the beginning for the first who asks
 * in time and for others after one that says how things stand; where a caller was too slow, with a `gap` and how things
 * stand then; `POST /command` takes a command of the
 * protocol; `POST /request` one that is answered, without its `request`, and answers with the reply; `GET` and `PUT /faults` read and set `Faults` where the member was started with the fault injector on.
 */
import type { NodeId, View } from "../core/protocol.ts";
import type { Standing } from "./transport/identity.ts";

export interface NodeStatus extends Standing {
  readonly id: NodeId;
  readonly pid: number;
  readonly cluster: string;
  readonly protocol: string;
  /** Who leads in this node's eyes; null if it knows of nobody. */
  readonly leader: NodeId | null;
  /** Term, epoch, ballot or view; null where the protocol has none. */
  readonly term: number | null;
  readonly role: string;
  readonly view: View;
  readonly uptimeMs: number;
  readonly address: string;
  /** How it lies, where it was started so. */
  readonly byzantine?: string;
  readonly peers: readonly PeerStatus[];
  /** Commands that `POST /command` takes, such as `election.call`, with the names of their fields. */
  readonly commands: Readonly<Record<string, readonly string[]>>;
}

export interface PeerStatus {
  readonly id: NodeId;
  readonly address: string;
  readonly link: "open" | "dialing" | "waiting";
  readonly queuedBytes: number;
}

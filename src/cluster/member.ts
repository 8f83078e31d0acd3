/** One member of a cluster, running in this process: protocol, transport, admin pages. */
import type { NodeId } from "../core/protocol.ts";
import type { Log } from "../runtime/log.ts";
import type { ClusterConfig } from "./config.ts";

export interface Member {
  /** Where the other members reach this one, `host:port`. */
  readonly address: string;
  /** The base URL of its admin pages. */
  readonly admin: string;
  /** Closes every connection and listener. */
  stop(): Promise<void>;
}

export interface MemberOptions {
  readonly log: Log;
  /** Lets `PUT /faults` drop, delay and cut this member's messages. Off unless somebody asks for it. */
  readonly faultGate?: boolean;
  /** Called when the protocol violates its own invariants: the process must not go on. */
  readonly onFatal: (error: Error) => void;
}

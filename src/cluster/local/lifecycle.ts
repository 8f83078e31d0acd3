/** The events of a local cluster, distinguished by `event`. `coterie up --json` prints them. */
import type { NodeId } from "../../core/protocol.ts";
import type { NetworkPicture } from "../feed.ts";
import type { Opinion } from "./agreement.ts";
import type { NetworkAct } from "./wanted-network.ts";

export type LifecycleEvent =
  /** Every member answers, and all agree on a leader if the protocol has leaders. This is always the first event. */
  | {
      readonly event: "ready";
      /** The leader. Null if the protocol has no leaders. */
      readonly leader: NodeId | null;
      readonly nodes: readonly {
        readonly id: NodeId;
        readonly pid: number | null;
        readonly address: string;
        readonly admin: string;
        /** The node's Byzantine behavior, if it was started with one. */
        readonly byzantine?: string;
      }[];
      /** The seed for the Byzantine members' choices. Absent if all members are honest. */
      readonly seed?: number;
    }
  | { readonly event: "started" | "paused" | "resumed"; readonly node: NodeId; readonly pid: number }
  | {
      readonly event: "exited";
      readonly node: NodeId;
      readonly pid: number | null;
      readonly signal: string | null;
      readonly code: number | null;
      /**
       * The delay until the node restarts. Null if it does not restart, for example after exit code 2, which would
       * recur.
       */
      readonly restartInMs: number | null;
    }
  /** Every running member reports this node as the leader, and it is running. */
  | { readonly event: "leader"; readonly leader: NodeId; readonly agreed: readonly NodeId[] }
  /** Running members have reported different leaders for more than a moment. */
  | { readonly event: "disagreement"; readonly opinions: readonly Opinion[] }
  /** The network has changed. Contains the action and the resulting state. */
  | ({ readonly event: "network"; readonly act: NetworkAct } & NetworkPicture)
  | { readonly event: "stopping" };

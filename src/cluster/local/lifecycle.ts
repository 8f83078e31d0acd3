/** What happens to a local cluster, told apart by `event`. `coterie up --json` prints these. */
import type { NodeId } from "../../core/protocol.ts";
import type { NetworkPicture } from "../feed.ts";
import type { Opinion } from "./agreement.ts";
import type { NetworkAct } from "./wanted-network.ts";

export type LifecycleEvent =
  /** Every member answers, and all agree on a leader where the protocol has one. Always the first event. */
  | {
      readonly event: "ready";
      /** Null where the protocol has none. */
      readonly leader: NodeId | null;
      readonly nodes: readonly {
        readonly id: NodeId;
        readonly pid: number | null;
        readonly address: string;
        readonly admin: string;
        /** How it lies, where it was started so. */
        readonly byzantine?: string;
      }[];
      /** Of the choices of those that lie; absent where nobody does. */
      readonly seed?: number;
    }
  | { readonly event: "started" | "paused" | "resumed"; readonly node: NodeId; readonly pid: number }
  | {
      readonly event: "exited";
      readonly node: NodeId;
      readonly pid: number | null;
      readonly signal: string | null;
      readonly code: number | null;
      /** When it is started again; null if nobody does so, as after exit code 2, which would come back. */
      readonly restartInMs: number | null;
    }
  /** Every running member holds this one for the leader, and it runs. */
  | { readonly event: "leader"; readonly leader: NodeId; readonly agreed: readonly NodeId[] }
  /** Running members have held different opinions for more than a moment. */
  | { readonly event: "disagreement"; readonly opinions: readonly Opinion[] }
  /** Somebody changed the network: what was asked for, and how it is since. */
  | ({ readonly event: "network"; readonly act: NetworkAct } & NetworkPicture)
  | { readonly event: "stopping" };

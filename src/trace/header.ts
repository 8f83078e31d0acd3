/** The first line of a trace file: what ran, so that the rest can be checked, drawn, replayed and continued. */
import type { NodeId } from "../core/protocol.ts";

export interface TraceHeader {
  readonly kind: "trace";
  readonly version: 1;
  readonly madeBy: "simulator" | "checker" | "cluster";
  /** A name of the registry. */
  readonly protocol: string;
  /** Which form of it ran: `model` for simulator and checker, `node` on real processes. */
  readonly form: "model" | "node";
  readonly variant: string | null;
  readonly options: unknown;
  readonly nodes: readonly NodeId[];
  readonly seed: number | null;
  /** Nodes that lied, and how, as one writes Byzantine behaviours that are plain data. Absent: nobody. */
  readonly byzantine?: Readonly<Record<NodeId, unknown>>;
  /** With what of its state each node began that differs from a first one. Absent: nobody began with a state of its own. */
  readonly states?: Readonly<Record<NodeId, Readonly<Record<string, unknown>>>>;
  /** What a counterexample is one of. */
  readonly violation: {
    readonly property: string;
    readonly claim: string;
    /** The part that repeats for ever begins with the entry of this index; null where nothing repeats. */
    readonly loopFrom: number | null;
  } | null;
}

/** What a failure detector finds out is told to parts that can do without a node. */
import type { NodeId } from "../../../core/protocol.ts";
import type { WireTable } from "../../system.ts";

export function watching(...parts: readonly string[]): WireTable {
  const telling = (type: string): WireTable[string][string] => {
    return ({ node }: { node: NodeId }, give) => {
      for (const part of parts) give(part, { type, node });
    };
  };
  return { detector: { suspected: telling("suspect"), restored: telling("restore") } };
}

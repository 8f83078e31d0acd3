/** What a failure detector finds out is told to a part that can do without a node. */
import type { WireTable } from "../../system.ts";

export const watching = (part: string): WireTable => ({
  detector: {
    suspected: ({ node }, give) => give(part, { type: "suspect", node }),
    restored: ({ node }, give) => give(part, { type: "restore", node }),
  },
});

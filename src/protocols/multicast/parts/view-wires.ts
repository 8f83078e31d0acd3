/** The wires between the carrier of a group's messages and the agreement on its views. */
import type { WireTable } from "../../system.ts";

export const viewWires: WireTable = {
  views: {
    flush: ({ round }, give) => give("multicast", { type: "flush", round }),
    fill: ({ round, cut, holders }, give) => give("multicast", { type: "fill", round, cut, holders }),
    installed: ({ view, members, cut }, give) => give("multicast", { type: "change", view, members, cut }),
    ejected: (_event, give) => give("multicast", { type: "eject" }),
  },
  multicast: {
    flushed: ({ round, received }, give) => give("views", { type: "flushed", round, received }),
    filled: ({ round }, give) => give("views", { type: "filled", round }),
  },
};

/** Events of the multicast that are not internal to the parts. */
export const multicastEvents = ["delivered", "refused", "stable", "blocked", "installed", "ejected"];

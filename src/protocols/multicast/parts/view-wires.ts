/** The wires between the carrier of a group's messages and the agreement on the group's views. */
import type { WireTable } from "../../system.ts";

/** The wires between the parts `views` and `multicast`. */
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

/** Events from the multicast that are not internal to the parts. */
export const multicastEvents = ["delivered", "refused", "stable", "blocked", "installed", "ejected"];

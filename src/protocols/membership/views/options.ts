/** The options of views. */
import { real } from "../../../core/shape.ts";
import { flag, type OptionsOf, option, optionTable, positive } from "../../options.ts";

export const viewsOptions = optionTable(
  "views",
  {
    gatherMs: positive(
      20,
      "how long the lowest node waits for further reasons to change the view, so that several make one change",
    ),
    firstGatherMs: positive(
      200,
      "the same before the first view, until all nodes that are not suspected have been detected",
    ),
    roundMs: positive(
      1_000,
      "the time of a step of a round; a node that has not answered is asked again after half of it, and is left out of the next round",
    ),
    backOffMs: positive(50, "the wait after a failed round, doubled with each"),
    maxBackOffMs: positive(2_000, "the longest such wait"),
    remindMs: option(
      real,
      1_000,
      "the time between two announcements of the view by the lowest member; 0: none, if no message is lost while links work",
      { min: 0 },
    ),
    joins: flag(true, "whether nodes ask to join the group when they start"),
  },
  ({ backOffMs, maxBackOffMs }, refuse) => {
    if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`);
  },
);

export type ViewsOptions = OptionsOf<typeof viewsOptions>;

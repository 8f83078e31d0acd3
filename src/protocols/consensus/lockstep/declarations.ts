/** What lockstep turns say of themselves: source, assumptions, costs, and what they look like. */
import type { Protocol } from "../../../core/protocol.ts";
import { lockstepProperties } from "./properties.ts";
import type { LockstepOptions } from "./vocabulary.ts";
import { type Lockstep, shapes } from "./vocabulary.ts";

type Declared = "shapes" | "source" | "assumes" | "properties" | "costs" | "view";

export const declarations = (options: LockstepOptions): Pick<Protocol<Lockstep>, Declared> => ({
  shapes,
  source: "Baughman & Levine, INFOCOM 2001, §4",
  assumes: [
    "players that play begin each turn together",
    "what is due arrives within half of its deadline, if need be when it is asked for again",
    "unforgeable signatures",
    options.echoes ? "a minority of liars" : "nobody commits to two actions; where a minority may lie, echoes",
  ],
  properties: lockstepProperties(options),
  costs: [{ when: "a turn", messages: (nodes) => (options.echoes ? 3 : 2) * nodes * (nodes - 1) }],
  view: ({ phase, turn }) => ({ role: phase, term: turn }),
});

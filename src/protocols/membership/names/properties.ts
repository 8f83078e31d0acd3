/** What names declares: the shapes of what is sent and commanded, what it promises by itself, what it costs. */
import type { NodeId, Protocol, World } from "../../../core/protocol.ts";
import { boolean, natural, nullable, oneOf, text } from "../../../core/shape.ts";
import type { Forgotten, Names, State } from "./vocabulary.ts";

/** In UTF-8. */
const MAX_NAME_BYTES = 200;
const MAX_SETTING_BYTES = 10_000;
const MAX_REASON_BYTES = 1_024;

const name = text(MAX_NAME_BYTES);
const setting = text(MAX_SETTING_BYTES);
const why = text(MAX_REASON_BYTES);

/** How many nodes run the name in which of the ways in which it is run. */
function waysOf({ alive, state }: Pick<World<State>, "alive" | "state">, of: string): number[] {
  const counts: Record<string, number> = {};
  for (const node of alive) {
    const known = state(node).running[of];
    if (known !== undefined) counts[known.setting] = (counts[known.setting] ?? 0) + 1;
  }
  return Object.values(counts);
}

const namesIn = ({ alive, state }: World<State>): string[] => [
  ...new Set(alive.flatMap((node) => Object.keys(state(node).running))),
];

/** What one node has given up, and whether it might. */
interface GivenUp {
  readonly wrongly: boolean;
}

export const declarations: Pick<Protocol<Names>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view"> = {
  shapes: {
    message: {
      hello: {},
      inquire: { name },
      open: { name, setting },
      refuse: { name, setting, why },
      full: { name },
      ask: { name, round: natural },
      idle: { name, round: natural },
      over: { name },
    },
    command: {
      run: {
        name,
        setting,
        forgotten: oneOf<Forgotten>("alone", "together", "never"),
        isEstablished: boolean,
        by: nullable(natural),
      },
      refuse: { name, setting, why, to: natural },
      decline: { name, to: natural },
      inquire: { name, of: natural },
      use: { name },
      rest: { name },
      forget: { name },
      arrived: { name, from: natural, word: setting },
      suspect: { node: natural },
      restore: { node: natural },
      close: {},
    },
  },
  source: "Gray, Notes on Data Base Operating Systems, 1978, §5.8.3; Coterie's own",
  assumes: [
    "crash-recovery nodes",
    "reliable FIFO links between nodes that are up",
    "a node that is not suspected has nothing on its way that is older than its last heartbeat",
  ],
  properties: [
    {
      name: "majorities keep their settings",
      claim: "a node gives up what a majority has been known to run only for a majority that runs it otherwise",
      when: "always",
      history: {
        empty: { wrongly: false },
        after: (before: GivenUp, event: Names["event"]): GivenUp =>
          event.type === "gaveWay" && event.wasEstablished && !event.isOutvoted ? { wrongly: true } : before,
      },
      holds: ({ nodes, history }) => nodes.every((node: NodeId) => !history<GivenUp>(node).wrongly),
    },
    {
      name: "one setting",
      claim: "once all has been said, all run a name alike, or of an even number each half its own way",
      when: "quiescent",
      pendingTimers: [],
      holds: (world) =>
        world.alive.length < world.nodes.length ||
        namesIn(world).every((of) => {
          const ways = waysOf(world, of);
          return ways.length < 2 || ways.every((count) => 2 * count === world.nodes.length);
        }),
    },
  ],
  costs: [
    { when: "a name is opened at all nodes", messages: (nodes) => nodes * (nodes - 1) },
    { when: "it is put away by all", messages: (nodes) => 3 * (nodes - 1) },
  ],
  view: ({ running, isClosed }) => {
    const open = Object.values(running);
    if (isClosed) return { role: "closed" };
    if (open.length === 0) return { role: "nothing open" };
    return { role: open.some(({ isUsed }) => isUsed) ? "in use" : "idle" };
  },
};

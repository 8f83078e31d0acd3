/**
 * Interactive consistency: every node proposes a value, and all honest nodes decide on the same vector, with correct
 * entries for honest nodes. N agreements run at once. Each node is the commander in the agreement on its own value. Its
 * entry in the vector is the order that the other nodes obey.
 * Pease, Shostak & Lamport, "Reaching Agreement in the Presence of Faults", JACM 1980; Coulouris et al. §15.5.1.
 *
 * Assumes   as for Byzantine generals: synchronous rounds that begin at the same time on all nodes and last longer than
 *           any message delay; reliable links; at most m Byzantine nodes among N ≥ 3m + 1 nodes, or among N ≥ m + 2
 *           with unforgeable signatures.
 * Safety    agreement: no two honest nodes have different vectors. Validity: an honest node's entry is the value that
 *           it proposed.
 * Liveness  every honest node has a vector after m + 1 rounds.
 * Cost      N times the cost of Byzantine generals. With oral messages, 36 messages for N = 4, m = 1 and 1,092 for
 *           N = 7, m = 2; with signatures, N(N − 1)² messages. m + 1 rounds.
 *
 * Each order names its commander, so the N agreements do not interfere. A silent node's entry is "nothing".
 */
import { entriesIn, nodesIn, type PerNode } from "../../core/per-node.ts";
import { equal } from "../../core/plain.ts";
import type { Context, NodeId, Property, Protocol, Vocabulary, World } from "../../core/protocol.ts";
import { list } from "../../core/shape.ts";
import { contexts } from "../contexts.ts";
import { type OptionsOf, option, optionTable } from "../options.ts";
import {
  type GeneralsOptions,
  type OralMessages,
  oralMessages,
  orderShape,
  roundOptions,
} from "./byzantine-generals/byzantine-generals.ts";
import { type SignedMessages, signedMessages } from "./byzantine-generals/signed-messages.ts";

/** Vocabulary of interactive consistency. `General` is the vocabulary of agreement on a single value. */
export type InteractiveConsistency<General extends Vocabulary = OralMessages> = {
  state: {
    /** The current round, or m + 2 after the last round. */
    round: number;
    proposed: string | null;
    /** For each commander: this node's state as one of that commander's generals. */
    generals: PerNode<General["state"]>;
    decided: PerNode<string> | null;
  };
  message: General["message"];
  timer: "round";
  command: { type: "propose"; value: string };
  event: /** The vector, and a readable form of it. */ {
    type: "decided";
    vector: PerNode<string>;
    value: string;
  };
};

const NOTHING = "nothing";
const MAX_VALUES = 1_000;
const consistencyOptions = optionTable("interactiveConsistency", {
  ...roundOptions,
  values: option(
    list(orderShape, MAX_VALUES),
    [],
    "the values that nodes propose when they start, indexed by node id; if empty, the values come from commands",
  ),
});

/** Options for `interactiveConsistency()` and `signedInteractiveConsistency()`. */
export type InteractiveConsistencyOptions = OptionsOf<typeof consistencyOptions>;

type Given = Partial<InteractiveConsistencyOptions>;

/** Creates interactive consistency based on OM(m). */
export const interactiveConsistency = (given?: Given): Protocol<InteractiveConsistency> =>
  overGenerals<OralMessages>(oralMessages, ({ path }) => path[0], given);

/** Creates interactive consistency based on SM(m). */
export const signedInteractiveConsistency = (given?: Given): Protocol<InteractiveConsistency<SignedMessages>> =>
  overGenerals<SignedMessages>(signedMessages, ({ statements }) => statements[0]?.by, given);

// Only the names of the handlers are known here. Messages are passed on unchanged.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;
type Generals = OralMessages | SignedMessages;

function overGenerals<General extends Generals>(
  make: (options: Partial<GeneralsOptions>) => Protocol<General>,
  commanderOf: (message: General["message"]) => NodeId | undefined,
  given: Given | undefined,
): Protocol<InteractiveConsistency<General>> {
  type State = InteractiveConsistency<General>["state"];
  type Ctx = Context<InteractiveConsistency<General>>;
  const { values, ...options } = consistencyOptions.settle(given);
  const { roundMs } = options;

  const made = new Map<NodeId, Protocol<General>>();
  /** Returns the algorithm for this commander. */
  function general(commander: NodeId): Any {
    const known = made.get(commander) ?? make({ ...options, commander, order: null, missing: NOTHING });
    made.set(commander, known);
    return known;
  }
  /** The contexts of the agreements. They share one round timer, and their results are read from their states. */
  const within = contexts(() => ({ setTimer: () => {}, emit: () => {} }));

  function propose(state: State, value: string, ctx: Ctx): void {
    if (state.round > 1 || state.proposed !== null) return;
    state.proposed = value;
    general(ctx.self).command.propose(state.generals[ctx.self], { type: "propose", value }, within(ctx));
  }

  function decide(state: State, ctx: Ctx): void {
    const vector = Object.fromEntries(entriesIn(state.generals).map(([of, { decided }]) => [of, decided as string]));
    state.decided = vector;
    ctx.emit({ type: "decided", vector, value: textOf(vector) });
  }

  return {
    name: "interactive-consistency",
    init: (self, peers) => ({
      round: 1,
      proposed: null,
      generals: Object.fromEntries(
        [self, ...peers].map((commander) => [commander, general(commander).init(self, peers)]),
      ),
      decided: null,
    }),
    start(state, ctx) {
      ctx.setTimer("round", roundMs);
      const own = values[ctx.self];
      if (own !== undefined) propose(state, own, ctx);
    },
    receive: {
      order(state: State, from: NodeId, message: General["message"], ctx: Ctx) {
        const commander = commanderOf(message);
        const known = commander === undefined ? undefined : state.generals[commander];
        if (known !== undefined) general(commander as NodeId).receive.order(known, from, message, within(ctx));
      },
    },
    timeout: {
      round(state, ctx) {
        for (const [commander, known] of entriesIn(state.generals))
          general(commander).timeout.round(known, within(ctx));
        state.round += 1;
        if (entriesIn(state.generals).every(([, { decided }]) => decided !== null)) decide(state, ctx);
        else ctx.setTimer("round", roundMs);
      },
    },
    command: { propose: (state, { value }, ctx) => propose(state, value, ctx) },
    shapes: { ...general(0).shapes, command: { propose: { value: orderShape } } },
    source: "Pease, Shostak & Lamport, JACM 1980",
    assumes: general(0).assumes,
    properties,
    costs: [{ when: "all nodes propose", messages: (nodes) => nodes * general(0).costs[0].messages(nodes) }],
    view: ({ round, decided }) => ({ role: decided === null ? "undecided" : textOf(decided), term: round }),
  };
}

const textOf = (vector: PerNode<string>): string =>
  entriesIn(vector)
    .map(([node, value]) => `${node}: ${value}`)
    .join(", ");

type Deciding = Pick<InteractiveConsistency["state"], "proposed" | "decided">;

const properties = [
  {
    name: "agreement",
    claim: "no two honest nodes have different vectors",
    when: "always",
    holds({ alive, state }: World<Deciding>) {
      const [first, ...others] = alive.map((node) => state(node).decided).filter((vector) => vector !== null);
      return others.every((vector) => equal(vector, first));
    },
  },
  {
    name: "validity",
    claim: "in an honest node's vector, the entry for each honest node is the value that it proposed",
    when: "always",
    holds: ({ alive, state }: World<Deciding>) =>
      alive.every((node) => {
        const vector = state(node).decided;
        return (
          vector === null ||
          nodesIn(vector).every((of) => {
            const proposed = alive.includes(of) ? state(of).proposed : null;
            return proposed === null || vector[of] === proposed;
          })
        );
      }),
  },
  {
    name: "termination",
    claim: "after the last round, every honest node has a vector",
    when: "quiescent",
    pendingTimers: ["round"],
    holds: ({ alive, state }: World<Deciding>) => alive.every((node) => state(node).decided !== null),
  },
] as Property<Vocabulary>[];

/**
 * FloodSet: agreement in f + 1 synchronous rounds, despite up to f crashes. In each round, all nodes send all the
 * values that they know. At least one of the f + 1 rounds has no crash. After that round, all nodes know the same
 * values.
 * Lynch, "Distributed Algorithms", 1996, §6.2.1; Coulouris et al. §15.5.2; necessity of f + 1 rounds: Fischer & Lynch
 * 1982, Dolev & Strong 1983.
 *
 * Assumes   synchronous rounds that begin at the same time on all nodes and last longer than any message delay;
 *           reliable links; at most f crashes, each possibly in the middle of a broadcast; no recovery.
 * Safety    no two nodes decide differently, including crashed ones; every decided value was proposed.
 * Liveness  every live node decides after f + 1 rounds.
 * Cost      (f + 1)N(N − 1) messages.
 *
 * The option `rounds: "f"` removes one round, so that f crashes can cause different decisions. This demonstrates the
 * lower bound.
 */
import type { Context, Property, Protocol, World } from "../../core/protocol.ts";
import { list, natural, oneOf, text } from "../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive, whole } from "../options.ts";
import { decisionProperties } from "./parts/decisions.ts";

/** Vocabulary of FloodSet. */
export type FloodSet = {
  state: {
    /** The current round, or one past the last round once all rounds are over. */
    round: number;
    proposed: string | null;
    /** All known values, in ascending order. In the book, this is W. */
    values: string[];
    decided: string | null;
  };
  message: { type: "values"; round: number; values: string[] };
  timer: "round";
  command: { type: "propose"; value: string };
  event: { type: "decided"; value: string };
};

type State = FloodSet["state"];
type Ctx = Context<FloodSet>;

const MAX_VALUES = 1_000;
const value = text(1_000);
const values = list(value, MAX_VALUES);
const floodSetOptions = optionTable(
  "floodSet",
  {
    f: whole(1, "the number of crashes tolerated"),
    rounds: option(oneOf("f + 1", "f"), "f + 1", "the number of rounds"),
    values: option(
      values,
      [],
      "the values that nodes propose when they start, indexed by node id; if empty, the values come from commands",
    ),
    roundMs: positive(100, "the length of a round; must exceed every message delay"),
  },
  ({ f, rounds }, refuse) => {
    if (rounds === "f" && f === 0) refuse("f", "at least 1 if there are f rounds");
  },
);

/** Options for `floodSet()`. */
export type FloodSetOptions = OptionsOf<typeof floodSetOptions>;

/** Creates FloodSet. @throws UsageError `bad-option` if an option is unknown or out of range. */
export function floodSet(given?: Partial<FloodSetOptions>): Protocol<FloodSet> {
  const options = floodSetOptions.settle(given);
  const { f, roundMs } = options;
  const rounds = options.rounds === "f" ? f : f + 1;

  /**
   * Sends all known values: in the first round, the node's own value; in later rounds, the values known when the
   * previous round ended.
   */
  function tell(state: State, ctx: Ctx): void {
    ctx.broadcast({ type: "values", round: state.round, values: state.values });
  }

  function propose(state: State, own: string, ctx: Ctx): void {
    if (state.round > 1 || state.proposed !== null) return;
    state.proposed = own;
    state.values = union(state.values, [own]);
    ctx.broadcast({ type: "values", round: 1, values: [own] });
  }

  function decide(state: State, ctx: Ctx): void {
    const [least] = state.values;
    if (least === undefined) return; // No node has proposed a value.
    state.decided = least;
    ctx.emit({ type: "decided", value: least });
  }

  return {
    name: "flood-set",
    init: () => ({ round: 1, proposed: null, values: [], decided: null }),
    start(state, ctx) {
      ctx.setTimer("round", roundMs);
      const own = options.values[ctx.self];
      if (own !== undefined) propose(state, own, ctx);
    },
    receive: {
      values(state, _from, message) {
        if (message.round < state.round) return; // Late: its round is over.
        state.values = union(state.values, message.values);
      },
    },
    timeout: {
      round(state, ctx) {
        const isLast = state.round === rounds;
        state.round += 1;
        if (isLast) return decide(state, ctx);
        tell(state, ctx);
        ctx.setTimer("round", roundMs);
      },
    },
    command: { propose: (state, { value: own }, ctx) => propose(state, own, ctx) },
    shapes: { message: { values: { round: natural, values } }, command: { propose: { value } } },
    source: "Lynch 1996, §6.2.1",
    assumes: ["synchronous rounds", "reliable links", "at most f crashes, no recovery"],
    properties,
    costs: [{ when: "all nodes propose", messages: (nodes) => rounds * nodes * (nodes - 1) }],
    view: ({ round, decided }) => ({ role: decided ?? "undecided", term: round }),
  };
}

/** Returns the union in ascending order, without duplicates. Values beyond the limit are dropped. */
const union = (one: readonly string[], other: readonly string[]): string[] =>
  [...new Set([...one, ...other])].sort().slice(0, MAX_VALUES);

const properties = [
  ...decisionProperties<FloodSet>(),
  {
    name: "termination",
    claim: "after the last round, every live node that has proposed has decided",
    when: "quiescent",
    pendingTimers: ["round"],
    holds: ({ alive, state }: World<State>) =>
      alive.every((node) => state(node).proposed === null || state(node).decided !== null),
  },
] as Property<FloodSet>[];

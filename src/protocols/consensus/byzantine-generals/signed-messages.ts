/**
 * Byzantine generals, signed messages, SM(m): an order carries the signatures of all generals that have relayed it, so
 * a traitor can withhold it but not change it. A lieutenant obeys the only order that it has seen. If it has seen two,
 * the commander is a traitor.
 * Lamport, Shostak & Pease, "The Byzantine Generals Problem", ACM TOPLAS 1982, §4; two orders are enough: Dolev &
 * Strong 1983.
 *
 * Assumes   synchronous rounds that begin at the same time on all nodes and last longer than any message delay;
 *           reliable links; signatures cannot be forged; at most m traitors among N ≥ m + 2 generals.
 * Safety    IC1: all loyal lieutenants obey the same order. IC2: if the commander is loyal, they obey its order.
 * Liveness  every loyal general decides after m + 1 rounds.
 * Cost      (N − 1) + (N − 1)(N − 2) messages for one order; at most (N − 1) + 2(N − 1)(N − 2) if a traitor gives two
 *           orders.
 *
 * A signature covers the order and the path up to its signer, so a signature for one path proves nothing about others.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { list, natural, struct } from "../../../core/shape.ts";
import { isGenuine, type Signed, sign, signed } from "../../../core/signatures.ts";
import { type GeneralsOptions, generalsOptions, loyalty, orderShape, requireCommander } from "./byzantine-generals.ts";

/**
 * The signed content. `path` contains the generals that have relayed the order, the commander first and the signer
 * last.
 */
interface Statement {
  order: string;
  path: NodeId[];
}

/** Vocabulary of the signed-messages algorithm, SM(m). */
export type SignedMessages = {
  state: {
    /** The current round, counted from 1, or m + 2 after the last round. */
    round: number;
    ordered: string | null;
    /** The orders seen (at most two), each with the statements that prove it. In the paper, this is V. */
    orders: { order: string; statements: Signed<Statement>[] }[];
    decided: string | null;
  };
  /** One statement from each general on the path, in path order. */
  message: { type: "order"; statements: Signed<Statement>[] };
  timer: "round";
  command: /** The commander gives its order; other generals ignore the command. */ { type: "propose"; value: string };
  event: { type: "decided"; value: string };
};

type State = SignedMessages["state"];
type Ctx = Context<SignedMessages>;

const MAX_GENERALS = 100;
/** The maximum number of orders to keep. Two already prove that the commander is a traitor. */
const ENOUGH_ORDERS = 2;

const statementShape = struct<Statement>({ order: orderShape, path: list(natural, MAX_GENERALS) });
const signedStatement = signed("order", statementShape);

/**
 * Creates the signed-messages algorithm, SM(m). @throws UsageError `bad-option` if an option is unknown or out of
 * range.
 */
export function signedMessages(given?: Partial<GeneralsOptions>): Protocol<SignedMessages> {
  const options = generalsOptions.settle(given);
  const { commander, order: ownOrder, missing, roundMs } = options;
  const roundsOf = (generals: number): number => (options.m ?? Math.max(0, generals - 2)) + 1;
  const rounds = (ctx: Pick<Ctx, "peers">): number => roundsOf(ctx.peers.length + 1);

  /**
   * Signs the orders received in the current round and relays them to all generals that are not on their path. Runs
   * when a round ends.
   */
  function passOn(state: State, ctx: Ctx): void {
    for (const { order, statements } of state.orders) {
      if (statements.length !== state.round) continue; // Already relayed in an earlier round.
      const path = [...statements.map(({ by }) => by), ctx.self];
      const message = {
        type: "order" as const,
        statements: [...statements, sign(ctx, signedStatement, { order, path })],
      };
      for (const to of ctx.peers) if (!path.includes(to)) ctx.send(to, message);
    }
  }

  /** Returns the only order, or the default if there are none or two. In the paper, this is choice(V). */
  const choice = ({ orders }: State): string => (orders.length === 1 ? (orders[0]?.order as string) : missing);

  function decide(state: State, value: string, ctx: Ctx): void {
    state.decided = value;
    ctx.emit({ type: "decided", value });
  }

  return {
    name: "byzantine-generals",
    init(self, peers) {
      requireCommander(options, self, peers);
      return { round: 1, ordered: null, orders: [], decided: null };
    },
    start: (_state, ctx) => ctx.setTimer("round", roundMs),
    receive: {
      order(state, from, { statements }, ctx) {
        if (statements.length < state.round) return; // Withheld: it was due in an earlier round.
        if (!isProof(statements, from, commander, rounds(ctx), ctx)) return;
        const { order } = (statements[0] as Signed<Statement>).value;
        if (state.orders.length >= ENOUGH_ORDERS || state.orders.some((known) => known.order === order)) return;
        state.orders.push({ order, statements });
      },
    },
    timeout: {
      round(state, ctx) {
        const isLast = state.round === rounds(ctx);
        if (ctx.self !== commander && !isLast) passOn(state, ctx);
        if (isLast && state.decided === null) decide(state, choice(state), ctx);
        state.round += 1;
        if (!isLast) ctx.setTimer("round", roundMs);
      },
    },
    command: {
      propose(state, { value }, ctx) {
        if (ctx.self !== commander || state.round > 1 || state.ordered !== null) return;
        const order = ownOrder ?? value;
        state.ordered = order;
        const statement = sign(ctx, signedStatement, { order, path: [commander] });
        ctx.broadcast({ type: "order", statements: [statement] });
        decide(state, order, ctx);
      },
    },
    shapes: {
      message: { order: { statements: list(signedStatement, MAX_GENERALS) } },
      command: { propose: { value: orderShape } },
    },
    source: "Lamport, Shostak & Pease, ACM TOPLAS 1982, §4",
    assumes: [
      "synchronous rounds",
      "reliable links",
      "unforgeable signatures",
      "at most m traitors among N ≥ m + 2 generals",
    ],
    properties: loyalty(options),
    costs: [
      {
        when: "the commander gives an order",
        messages: (nodes) => (roundsOf(nodes) === 1 ? nodes - 1 : (nodes - 1) ** 2),
      },
    ],
    view: ({ round, decided }) => ({ role: decided ?? "undecided", term: round }),
  };
}

/** Returns whether the commander gave this order and distinct generals relayed it, with the sender last. */
const isProof = (
  statements: readonly Signed<Statement>[],
  from: NodeId,
  commander: NodeId,
  rounds: number,
  ctx: Ctx,
): boolean => {
  const path = statements.map(({ by }) => by);
  const order = statements[0]?.value.order;
  return (
    path[0] === commander &&
    path.at(-1) === from &&
    path.length <= rounds &&
    new Set([...path, ctx.self]).size === path.length + 1 &&
    path.every((node) => ctx.peers.includes(node)) &&
    statements.every(
      (statement, at) =>
        statement.value.order === order &&
        statement.value.path.join() === path.slice(0, at + 1).join() &&
        isGenuine(ctx, signedStatement, statement),
    )
  );
};

/**
 * Byzantine generals, oral messages, OM(m): a commander's order is relayed along every path of m + 1 different
 * generals, and each lieutenant takes the majority of the orders it received, path by path.
 * Lamport, Shostak & Pease, "The Byzantine Generals Problem", ACM TOPLAS 1982, §3.
 *
 * Assumes   synchronous rounds that begin together and last longer than any message travels; reliable links; a receiver
 *           knows the sender of a message; at most m traitors among N ≥ 3m + 1 generals, who may send anything to
 *           anyone.
 * Safety    IC1: all loyal lieutenants obey the same order. IC2: if the commander is loyal, they obey its order.
 * Liveness  every loyal general decides after m + 1 rounds.
 * Cost      Σ over k = 0 … m of (N − 1)(N − 2)…(N − 1 − k) messages: 9 for N = 4, m = 1; 156 for N = 7, m = 2. m + 1
 *           rounds.
 *
 * An order that has not arrived when its round ends counts as "retreat". With N = 3 one traitor wins. If ties are
 * broken by the default, a lieutenant makes the other one disobey a loyal commander. If they are broken by a general's
 * own message, a commander that sends two orders divides them. A scenario shows each of these two pictures of the
 * paper.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context, NodeId, Property, Protocol, Vocabulary, World } from "../../../core/protocol.ts";
import { toleratedByzantine } from "../../../core/quorums.ts";
import { list, natural, nullable, oneOf, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";

// Shared by both algorithms: the commander, the value of missing messages, and the duties of loyal generals.

export const orderShape = text(1_000);

/** Options shared by algorithms with rounds of generals. */
export const roundOptions = {
  m: option(
    nullable(natural),
    null,
    "the number of traitors tolerated, in m + 1 rounds; `null`: as many as N nodes can tolerate",
  ),
  ties: option(
    oneOf("default", "heard"),
    "default",
    "with oral messages, the value used without a majority: a default, or the value that the node received itself",
  ),
  roundMs: positive(100, "the length of a round; must exceed every message delay"),
};

export const generalsOptions = optionTable("generals", {
  commander: whole(0, "the node that gives the order"),
  order: option(nullable(orderShape), "attack", "the order, as `--order`; `null`: the order in the command `order`"),
  missing: option(orderShape, "retreat", "the order assumed if none arrives"),
  ...roundOptions,
});

export type GeneralsOptions = OptionsOf<typeof generalsOptions>;

/** @throws UsageError if the commander is not one of the generals. */
export function requireCommander({ commander }: GeneralsOptions, self: NodeId, peers: readonly NodeId[]): void {
  if (commander !== self && !peers.includes(commander))
    throw new UsageError(
      "bad-option",
      unexpected("generals.commander", `among ${[self, ...peers].join(", ")}`, commander),
    );
}

/** The part of a general's state that the properties read. */
interface Deciding {
  /** The order that the commander gave; null: none yet, or not the commander. */
  ordered: string | null;
  decided: string | null;
}

type Generals = Vocabulary & { state: Deciding; timer: "round" };

/** IC1 and IC2 of Lamport, Shostak & Pease 1982. With traitors, the properties cover loyal generals only. */
export function loyalty<V extends Generals>({ commander }: GeneralsOptions): Property<V>[] {
  const decisions = ({ alive, state }: World<Deciding>): string[] =>
    alive.flatMap((node) => (node === commander ? [] : (state(node).decided ?? [])));
  const isOver = ({ alive, state }: World<Deciding>): boolean => alive.every((node) => state(node).decided !== null);
  return [
    {
      name: "IC1 agreement",
      claim: "all loyal lieutenants obey the same order",
      when: "always",
      holds: (world: World<Deciding>) => new Set(decisions(world)).size <= 1,
    },
    {
      name: "IC2 validity",
      claim: "if the commander is loyal, every loyal lieutenant obeys its order",
      when: "always",
      holds(world: World<Deciding>) {
        const ordered = world.alive.includes(commander) ? world.state(commander).ordered : null;
        return ordered === null || decisions(world).every((decided) => decided === ordered);
      },
    },
    {
      name: "termination",
      claim: "after the last round, every loyal general has decided",
      when: "quiescent",
      pendingTimers: ["round"],
      holds: isOver,
    },
  ] as Property<V>[];
}

/** The generals that have relayed an order, the commander first. */
type Path = NodeId[];

export type OralMessages = {
  state: {
    /** The current round; above m + 1 when all are over. */
    round: number;
    ordered: string | null;
    /** The orders received, by path, for example `0.2`. */
    heard: Record<string, string>;
    decided: string | null;
  };
  message: { type: "order"; path: Path; order: string };
  timer: "round";
  command: /** The commander gives its order; other generals ignore the command. */ { type: "propose"; value: string };
  event: { type: "decided"; value: string };
};

type State = OralMessages["state"];
type Ctx = Context<OralMessages>;

const MAX_ROUNDS = 10;
/** The most paths that a general stores. */
const MAX_PATHS = 100_000;

export function oralMessages(given?: Partial<GeneralsOptions>): Protocol<OralMessages> {
  const options = generalsOptions.settle(given);
  const { commander, order: ownOrder, missing, ties, roundMs } = options;
  const roundsOf = (generals: number): number => (options.m ?? toleratedByzantine(generals)) + 1;
  const rounds = (ctx: Pick<Ctx, "peers">): number => roundsOf(ctx.peers.length + 1);

  const heardBy = ({ heard }: State, path: Path): string => heard[path.join(".")] ?? missing;

  /** At the end of a round: relays the orders received in it to all generals that are not on their path. */
  function passOn(state: State, ctx: Ctx): void {
    for (const path of pathsOf(state.round, ctx)) {
      const order = heardBy(state, path);
      for (const to of beyond(path, ctx)) ctx.send(to, { type: "order", path: [...path, ctx.self], order });
    }
  }

  /** @returns all paths of this length that an order may have taken to this general. */
  function pathsOf(length: number, ctx: Ctx): Path[] {
    let paths: Path[] = [[commander]];
    for (let more = 1; more < length; more++)
      paths = paths.flatMap((path) => beyond(path, ctx).map((node) => [...path, node]));
    return paths;
  }

  /** OM(m), step 3, from the longest paths up. */
  function resolved(state: State, path: Path, ctx: Ctx): string {
    const own = heardBy(state, path);
    if (path.length === rounds(ctx)) return own;
    return majorityOf(ties === "heard" ? own : missing, [
      own,
      ...beyond(path, ctx).map((node) => resolved(state, [...path, node], ctx)),
    ]);
  }

  function decide(state: State, value: string, ctx: Ctx): void {
    state.decided = value;
    ctx.emit({ type: "decided", value });
  }

  return {
    name: "byzantine-generals",
    init(self, peers) {
      requireCommander(options, self, peers);
      requireFew(peers.length + 1, rounds({ peers }));
      return { round: 1, ordered: null, heard: {}, decided: null };
    },
    start: (_state, ctx) => ctx.setTimer("round", roundMs),
    receive: {
      order(state, from, { path, order }, ctx) {
        if (isLate(state, path) || !isPath(path, from, commander, rounds(ctx), ctx)) return;
        state.heard[path.join(".")] ??= order; // Of two different orders the first one counts.
      },
    },
    timeout: {
      round(state, ctx) {
        const isLast = state.round === rounds(ctx);
        if (ctx.self !== commander && !isLast) passOn(state, ctx);
        if (isLast && ctx.self !== commander) decide(state, resolved(state, [commander], ctx), ctx);
        if (isLast && state.decided === null) decide(state, missing, ctx); // A commander without an order.
        state.round += 1;
        if (!isLast) ctx.setTimer("round", roundMs);
      },
    },
    command: {
      propose(state, { value }, ctx) {
        if (ctx.self !== commander || state.round > 1 || state.ordered !== null) return;
        const order = ownOrder ?? value;
        state.ordered = order;
        ctx.broadcast({ type: "order", path: [commander], order });
        decide(state, order, ctx);
      },
    },
    shapes: {
      message: { order: { path: list(natural, MAX_ROUNDS), order: orderShape } },
      command: { propose: { value: orderShape } },
    },
    source: "Lamport, Shostak & Pease, ACM TOPLAS 1982, §3",
    assumes: ["synchronous rounds", "reliable links", "at most m traitors among N ≥ 3m + 1 generals"],
    properties: loyalty(options),
    costs: [
      {
        when: "the commander gives an order",
        messages: (nodes) => messagesOf(nodes, roundsOf(nodes)),
      },
    ],
    view: ({ round, decided }) => ({ role: decided ?? "undecided", term: round }),
  };
}

/** Σ over k = 0 … m of (N − 1)(N − 2)…(N − 1 − k). */
function messagesOf(generals: number, rounds: number): number {
  let [sum, paths] = [0, 1];
  for (let k = 1; k <= rounds; k++) {
    paths *= generals - k;
    sum += paths;
  }
  return sum;
}

/** The other generals that are not on the path. */
const beyond = (path: Path, { peers }: Pick<Ctx, "peers">): NodeId[] => peers.filter((node) => !path.includes(node));

/** A traitor may send an order whose round is over. */
const isLate = ({ round }: State, path: Path): boolean => path.length < round;

/** Whether an order can have taken this path: from the commander, over different generals, to its sender. */
const isPath = (path: Path, from: NodeId, commander: NodeId, rounds: number, { self, peers }: Ctx): boolean =>
  path[0] === commander &&
  path.at(-1) === from &&
  path.length <= rounds &&
  !path.includes(self) &&
  new Set(path).size === path.length &&
  path.every((node) => peers.includes(node));

/** @returns the order of more than half, or `otherwise`. */
const majorityOf = (otherwise: string, orders: readonly string[]): string =>
  orders.find((order) => 2 * orders.filter((other) => other === order).length > orders.length) ?? otherwise;

function requireFew(generals: number, rounds: number): void {
  const paths = messagesOf(generals - 1, rounds - 1) + 1;
  if (rounds > MAX_ROUNDS || rounds > Math.max(1, generals - 1) || paths > MAX_PATHS)
    throw new UsageError(
      "bad-option",
      unexpected(
        "generals.m",
        `at most ${generals - 2} with ${generals} generals, below ${MAX_ROUNDS}, and with at most ${MAX_PATHS} paths (${generals} generals tolerate ${toleratedByzantine(generals)})`,
        rounds - 1,
      ),
    );
}

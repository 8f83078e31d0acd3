/**
 * Byzantine generals, oral messages, OM(m): a commander's order is relayed along every path of m + 1 different
 * generals, and each lieutenant takes the majority of the orders it received, path by path.
 * Lamport, Shostak & Pease, "The Byzantine Generals Problem", ACM TOPLAS 1982, §3.
 *
 * Assumes   synchronous rounds that begin at the same time on all nodes and last longer than any message delay;
 *           reliable links; a receiver knows who sent a message; among N ≥ 3m + 1 generals, at most m traitors, who may
 *           send anything to anyone.
 * Safety    IC1: all loyal lieutenants obey the same order. IC2: if the commander is loyal, they obey its order.
 * Liveness  every loyal general decides after m + 1 rounds.
 * Cost      Σ over k = 0 … m of (N − 1)(N − 2)…(N − 1 − k) messages: 9 for N = 4, m = 1; 156 for N = 7, m = 2. m + 1
 *           rounds.
 *
 * An order that has not arrived when its round ends counts as "retreat". With N = 3, one traitor defeats the algorithm.
 * If ties are broken by the default value, a traitorous lieutenant makes the other one disobey a loyal commander. If
 * ties are broken by the order received from the commander, a traitorous commander sends two different orders and
 * divides the lieutenants. Two scenarios show these cases, which are figures in the paper.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context, NodeId, Property, Protocol, Vocabulary, World } from "../../../core/protocol.ts";
import { toleratedByzantine } from "../../../core/quorums.ts";
import { list, natural, nullable, oneOf, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";

// Shared by both algorithms: the commander, the default for missing messages, and the properties of loyal generals.

export const orderShape = text(1_000);

/** Options shared by the algorithms that run rounds of generals. */
export const roundOptions = {
  m: option(
    nullable(natural),
    null,
    "the number of traitors tolerated; there are m + 1 rounds; `null` means as many as N nodes can tolerate",
  ),
  ties: option(
    oneOf("default", "heard"),
    "default",
    "with oral messages, the value used without a majority: the default, or the value that the node itself received",
  ),
  roundMs: positive(100, "the length of a round; must exceed every message delay"),
};

/** The option table for both algorithms. */
export const generalsOptions = optionTable("generals", {
  commander: whole(0, "the node that gives the order"),
  order: option(
    nullable(orderShape),
    "attack",
    "the commander's order; `null` means the value in the `propose` command",
  ),
  missing: option(orderShape, "retreat", "the order assumed if none arrives"),
  ...roundOptions,
});

/** Options for `oralMessages()` and `signedMessages()`. */
export type GeneralsOptions = OptionsOf<typeof generalsOptions>;

/** Checks the commander. @throws UsageError if it is not one of the generals */
export function requireCommander({ commander }: GeneralsOptions, self: NodeId, peers: readonly NodeId[]): void {
  if (commander !== self && !peers.includes(commander))
    throw new UsageError(
      "bad-option",
      unexpected("generals.commander", `among ${[self, ...peers].join(", ")}`, commander),
    );
}

/** The part of a general's state that the properties read. */
interface Deciding {
  /** The order that this node gave as the commander. Null if it has given none or is not the commander. */
  ordered: string | null;
  decided: string | null;
}

type Generals = Vocabulary & { state: Deciding; timer: "round" };

/**
 * Returns the properties IC1 and IC2 of Lamport, Shostak & Pease 1982. If there are traitors, the properties cover only
 * loyal generals.
 */
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

/** Vocabulary of the oral-messages algorithm, OM(m). */
export type OralMessages = {
  state: {
    /** The current round, or m + 2 after the last round. */
    round: number;
    ordered: string | null;
    /** The orders received, keyed by path, such as `0.2`. */
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
/** The maximum number of paths that a general stores. */
const MAX_PATHS = 100_000;

/**
 * Creates the oral-messages algorithm, OM(m).
 * @throws UsageError `bad-option` if an option is unknown or out of range.
 */
export function oralMessages(given?: Partial<GeneralsOptions>): Protocol<OralMessages> {
  const options = generalsOptions.settle(given);
  const { commander, order: ownOrder, missing, ties, roundMs } = options;
  const roundsOf = (generals: number): number => (options.m ?? toleratedByzantine(generals)) + 1;
  const rounds = (ctx: Pick<Ctx, "peers">): number => roundsOf(ctx.peers.length + 1);

  const heardBy = ({ heard }: State, path: Path): string => heard[path.join(".")] ?? missing;

  /**
   * Relays the orders received in the current round to all generals that are not on their path. Runs when a round ends.
   */
  function passOn(state: State, ctx: Ctx): void {
    for (const path of pathsOf(state.round, ctx)) {
      const order = heardBy(state, path);
      for (const to of beyond(path, ctx)) ctx.send(to, { type: "order", path: [...path, ctx.self], order });
    }
  }

  /** Returns all paths of this length that an order may have taken to this general. */
  function pathsOf(length: number, ctx: Ctx): Path[] {
    let paths: Path[] = [[commander]];
    for (let more = 1; more < length; more++)
      paths = paths.flatMap((path) => beyond(path, ctx).map((node) => [...path, node]));
    return paths;
  }

  /** Performs step 3 of OM(m): returns the majority for a path, computed recursively from the longest paths. */
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
        state.heard[path.join(".")] ??= order; // If two orders arrive, the first counts.
      },
    },
    timeout: {
      round(state, ctx) {
        const isLast = state.round === rounds(ctx);
        if (ctx.self !== commander && !isLast) passOn(state, ctx);
        if (isLast && ctx.self !== commander) decide(state, resolved(state, [commander], ctx), ctx);
        if (isLast && state.decided === null) decide(state, missing, ctx); // A commander that was given no order.
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

/** Returns the sum of (N − 1)(N − 2)…(N − 1 − k) over k = 0 … m. */
function messagesOf(generals: number, rounds: number): number {
  let [sum, paths] = [0, 1];
  for (let k = 1; k <= rounds; k++) {
    paths *= generals - k;
    sum += paths;
  }
  return sum;
}

/** Returns the other generals that are not on the path. */
const beyond = (path: Path, { peers }: Pick<Ctx, "peers">): NodeId[] => peers.filter((node) => !path.includes(node));

/** Returns whether this order's round is over. A traitor may send such orders. */
const isLate = ({ round }: State, path: Path): boolean => path.length < round;

/** Returns whether an order can have taken this path: from the commander, through distinct generals, to its sender. */
const isPath = (path: Path, from: NodeId, commander: NodeId, rounds: number, { self, peers }: Ctx): boolean =>
  path[0] === commander &&
  path.at(-1) === from &&
  path.length <= rounds &&
  !path.includes(self) &&
  new Set(path).size === path.length &&
  path.every((node) => peers.includes(node));

/** Returns the majority order, or `otherwise` if there is none. */
const majorityOf = (otherwise: string, orders: readonly string[]): string =>
  orders.find((order) => 2 * orders.filter((other) => other === order).length > orders.length) ?? otherwise;

function requireFew(generals: number, rounds: number): void {
  const paths = messagesOf(generals - 1, rounds - 1) + 1;
  if (rounds > MAX_ROUNDS || rounds > Math.max(1, generals - 1) || paths > MAX_PATHS)
    throw new UsageError(
      "bad-option",
      unexpected(
        "generals.m",
        `at most ${generals - 2} with ${generals} generals, less than ${MAX_ROUNDS}, and small enough for at most ${MAX_PATHS} paths (${generals} generals tolerate ${toleratedByzantine(generals)})`,
        rounds - 1,
      ),
    );
}

/**
 * Byzantine generals, oral messages, OM(m): a commander's order is passed on along every path of m + 1 different generals, and each
 * lieutenant takes the majority of what it has heard, path by path.
 * Lamport, Shostak & Pease, "The Byzantine Generals Problem", ACM TOPLAS 1982, §3.
 *
 * Assumes   synchronous rounds that begin together and last longer than any message travels; reliable links; a receiver
 *           knows who sent a message; at most m traitors among N ≥ 3m + 1 generals, who may say anything to anybody.
 * Safety    IC1: all loyal lieutenants obey the same order. IC2: if the commander is loyal, they obey its order.
 * Liveness  every loyal general decides after m + 1 rounds.
 * Cost      Σ over k = 0 … m of (N − 1)(N − 2)…(N − 1 − k) messages: 9 for N = 4, m = 1; 156 for N = 7, m = 2. m + 1 rounds.
 *
 * What has not arrived when its round ends counts as "retreat". With N = 3 one traitor wins: where ties are broken by the default,
 * a lieutenant makes the other disobey a loyal commander; where by what a general has heard itself, a commander that says
 * two things divides them. Each of the paper's two pictures is a scenario.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { Context, NodeId, Property, Protocol, Vocabulary, World } from "../../../core/protocol.ts";
import { toleratedByzantine } from "../../../core/quorums.ts";
import { list, natural, nullable, oneOf, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";

// What both algorithms of the generals share: who commands, what missing messages stand for, and what loyal generals owe each other.

export const orderShape = text(1_000);

/** What algorithms of rounds of generals share. */
export const roundOptions = {
  m: option(
    nullable(natural),
    null,
    "the algorithm has m + 1 rounds and tolerates m traitors; `null`: as many as N nodes can tolerate",
  ),
  ties: option(
    oneOf("default", "heard"),
    "default",
    "with oral messages, the value without a majority: a default, or the value that the node received itself",
  ),
  roundMs: positive(100, "the length of a round, longer than any message travels"),
};

export const generalsOptions = optionTable("generals", {
  commander: whole(0, "the node that gives the order"),
  order: option(nullable(orderShape), "attack", "the order, as `--order`; `null`: the one in the command `order`"),
  missing: option(orderShape, "retreat", "the order that is assumed if none arrives"),
  ...roundOptions,
});

export type GeneralsOptions = OptionsOf<typeof generalsOptions>;

/** @throws UsageError if the commander is none of the generals. */
export function requireCommander({ commander }: GeneralsOptions, self: NodeId, peers: readonly NodeId[]): void {
  if (commander !== self && !peers.includes(commander))
    throw new UsageError(
      "bad-option",
      unexpected("generals.commander", `among ${[self, ...peers].join(", ")}`, commander),
    );
}

/** What a general's state says to the properties. */
interface Deciding {
  /** What the commander has ordered; null: nothing, or it is none. */
  ordered: string | null;
  decided: string | null;
}

type Generals = Vocabulary & { state: Deciding; timer: "round" };

/** IC1 and IC2 of Lamport, Shostak & Pease 1982. Where generals lie, the properties speak of the loyal ones. */
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
      claim: "every loyal lieutenant obeys the order that a loyal commander has sent",
      when: "always",
      holds(world: World<Deciding>) {
        const ordered = world.alive.includes(commander) ? world.state(commander).ordered : null;
        return ordered === null || decisions(world).every((decided) => decided === ordered);
      },
    },
    {
      name: "termination",
      claim: "when the last round is over, every loyal general has decided",
      when: "quiescent",
      pendingTimers: ["round"],
      holds: isOver,
    },
  ] as Property<V>[];
}

/** Who has passed an order on, the commander first. */
type Path = NodeId[];

export type OralMessages = {
  state: {
    /** The one that goes on; above m + 1 when all are over. */
    round: number;
    ordered: string | null;
    /** What has been heard, by path, as in `0.2`. */
    heard: Record<string, string>;
    decided: string | null;
  };
  message: { type: "order"; path: Path; order: string };
  timer: "round";
  command: /** The commander gives its order; others have none to give. */ { type: "propose"; value: string };
  event: { type: "decided"; value: string };
};

type State = OralMessages["state"];
type Ctx = Context<OralMessages>;

const MAX_ROUNDS = 10;
/** Paths to remember, at each general. */
const MAX_PATHS = 100_000;

export function oralMessages(given?: Partial<GeneralsOptions>): Protocol<OralMessages> {
  const options = generalsOptions.settle(given);
  const { commander, order: ownOrder, missing, ties, roundMs } = options;
  const roundsOf = (generals: number): number => (options.m ?? toleratedByzantine(generals)) + 1;
  const rounds = (ctx: Pick<Ctx, "peers">): number => roundsOf(ctx.peers.length + 1);

  const heardBy = ({ heard }: State, path: Path): string => heard[path.join(".")] ?? missing;

  /** At the end of a round: what was heard in it is passed on to all that it has not passed yet. */
  function passOn(state: State, ctx: Ctx): void {
    for (const path of pathsOf(state.round, ctx)) {
      const order = heardBy(state, path);
      for (const to of beyond(path, ctx)) ctx.send(to, { type: "order", path: [...path, ctx.self], order });
    }
  }

  /** All paths of that length by which an order may have come here. */
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
        state.heard[path.join(".")] ??= order; // Who says two things is held to the first.
      },
    },
    timeout: {
      round(state, ctx) {
        const isLast = state.round === rounds(ctx);
        if (ctx.self !== commander && !isLast) passOn(state, ctx);
        if (isLast && ctx.self !== commander) decide(state, resolved(state, [commander], ctx), ctx);
        if (isLast && state.decided === null) decide(state, missing, ctx); // A commander that was not asked.
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

/** The others that are not on the path. */
const beyond = (path: Path, { peers }: Pick<Ctx, "peers">): NodeId[] => peers.filter((node) => !path.includes(node));

/** A traitor may send what is due in a round that is over. */
const isLate = ({ round }: State, path: Path): boolean => path.length < round;

/** Whether an order can have come by it: from the commander, over different generals, to its sender. */
const isPath = (path: Path, from: NodeId, commander: NodeId, rounds: number, { self, peers }: Ctx): boolean =>
  path[0] === commander &&
  path.at(-1) === from &&
  path.length <= rounds &&
  !path.includes(self) &&
  new Set(path).size === path.length &&
  path.every((node) => peers.includes(node));

/** What more than half say. */
const majorityOf = (otherwise: string, orders: readonly string[]): string =>
  orders.find((order) => 2 * orders.filter((other) => other === order).length > orders.length) ?? otherwise;

function requireFew(generals: number, rounds: number): void {
  const paths = messagesOf(generals - 1, rounds - 1) + 1;
  if (rounds > MAX_ROUNDS || rounds > Math.max(1, generals - 1) || paths > MAX_PATHS)
    throw new UsageError(
      "bad-option",
      unexpected(
        "generals.m",
        `at most ${generals - 2} with ${generals} generals, below ${MAX_ROUNDS}, and with at most ${MAX_PATHS} paths (${toleratedByzantine(generals)} is all that they stand)`,
        rounds - 1,
      ),
    );
}

/**
 * Super-peers by repelling tokens: there are as many tokens as there should be super-peers. Tokens push each other
 * apart, and a node that has held a token long enough is a super-peer. Lo, Zhou, Liu, GauthierDickey & Li, "Scalable
 * Supernode Selection in Peer-to-Peer Overlay Networks", HOT-P2P 2005; terms of Tanenbaum & van Steen §6.5.3.
 *
 * Assumes   crash-recovery nodes with a journal; reliable links; every node knows its position in the space and some
 *           neighbors (the nearest ones, and one at each scale of distance up to the next tokens); a move ends within
 *           `moveRounds`; a holder and its heir do not crash within `lostRounds` of each other.
 * Safety    a node holds at most one token; no token is held by two nodes (after a loss, eventually).
 * Liveness  tokens settle: each token makes at most 1 + log(12 / threshold) / log(cooling) moves in an epoch, because
 *           every move raises the force that the next one needs, and no net force exceeds the force of the 12 tokens
 *           that a node knows. Eventually, there are as many tokens as initially, and each node uses a super-peer.
 * Cost      2N gossip messages per round, plus one to each token's heir.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { count, nodeIds, type OptionsOf, option, optionTable, positive } from "../../options.ts";
import { age, learn, type Neighbourhood, neighbourhood, told } from "./gossip.ts";
import {
  type Ctx,
  isLater,
  type Legacy,
  length,
  MAX_KNOWN,
  netForce,
  type Point,
  type Sighting,
  type State,
  type SuperPeerTokens,
  shapes,
  space,
  spaceOptions,
  superPeerProperties,
  type Token,
} from "./vocabulary.ts";

/** Vocabulary of the super-peer election by repelling tokens. */
export type { SuperPeerTokens } from "./vocabulary.ts";

/** The option table of super-peer-tokens. */
export const tokenOptions = optionTable("super-peer-tokens", {
  ...spaceOptions,
  share: positive(0.1, "the share of all nodes that should be super-peers", { max: 1 }),
  members: option(
    nodeIds(1_000_000),
    [],
    "all nodes; if empty, the nodes that the driver names. With more than a thousand nodes, listing them is faster",
  ),
  roundMs: count(500, "the time between two rounds"),
  reach: positive(2.5, "the range of a token's force, in multiples of the distance between evenly spread tokens"),
  threshold: positive(
    0.1,
    "the net force needed to move a token for the first time; one nearby token has a force of 1",
  ),
  cooling: positive(1.25, "each move multiplies `threshold` by this factor; tokens settle only if it exceeds 1", {
    above: 1,
  }),
  step: positive(0.35, "how far a force of 1 moves a token, in the same unit as `reach`"),
  holdRounds: count(6, "how many rounds a token stays in place after a move, so that other nodes learn about it"),
  settleRounds: count(12, "the holder of a token becomes a super-peer after this many rounds"),
  moveRounds: count(3, "a move counts as failed after this many rounds"),
  lostRounds: count(6, "a successor regenerates the token after this many silent rounds"),
});

/** Options of `superPeerTokens()`. */
export type SuperPeerTokensOptions = OptionsOf<typeof tokenOptions>;

/** Creates the super-peer election by repelling tokens. @throws UsageError if an option is unknown or out of range. */
export function superPeerTokens(given?: Partial<SuperPeerTokensOptions>): Protocol<SuperPeerTokens> {
  const options = tokenOptions.settle(given);
  const { roundMs, holdRounds, settleRounds, moveRounds, lostRounds, threshold, cooling, members, share } = options;
  const where = space(options);
  let around: { nodes: readonly NodeId[]; made: Neighbourhood } | null = null;

  /** Returns the neighborhood, which is created on first use. All nodes share it. */
  function surroundings(self: NodeId, peers: readonly NodeId[]): Neighbourhood {
    const nodes = members.length > 0 ? members : [...peers, self].sort((a, b) => a - b);
    if (around === null || (around.nodes !== nodes && !isSame(around.nodes, nodes)))
      around = { nodes, made: neighbourhood(where, nodes, share) };
    return around.made;
  }

  function init(self: NodeId, peers: readonly NodeId[]): State {
    const { neighbours, firstToken } = surroundings(self, peers);
    const first = firstToken(self);
    return {
      neighbours: neighbours(self),
      token: first === null ? null : { id: first, epoch: 0, moves: 0 },
      held: 0,
      moving: 0,
      heir: null,
      legacies: [],
      known: [],
      turn: 0,
      partner: null,
      silent: [],
      superPeer: null,
    };
  }

  function round(state: State, ctx: Ctx): void {
    ctx.setTimer("round", roundMs);
    age(state, 2 * settleRounds);
    if (state.partner !== null && !state.silent.includes(state.partner)) state.silent.push(state.partner);
    if (state.token !== null) keep(state, state.token, ctx);
    state.legacies = state.legacies.flatMap((legacy) => watch(state, legacy, ctx) ?? []);
    gossip(state, ctx);
    choose(state, ctx);
  }

  const isSettled = ({ token, held }: State): boolean => token !== null && held >= settleRounds;

  /** Performs the holder's part of a round. */
  function keep(state: State, token: Token, ctx: Ctx): void {
    if (state.moving > 0) {
      state.moving -= 1;
      if (state.moving === 0) stay(state, token);
    } else if (state.held >= holdRounds) push(state, token, ctx);
    if (state.moving === 0) state.held = Math.min(state.held + 1, settleRounds);
    nameHeir(state, token, ctx);
  }

  /** Moves the token if the net force is strong enough and there is a node in its direction. */
  function push(state: State, token: Token, ctx: Ctx): void {
    const { spacing } = surroundings(ctx.self, ctx.peers);
    // Beyond half the torus's circumference, a token would push from the wrong side.
    const reach = Math.min(options.reach * spacing, 0.5);
    const force = netForce(where, ctx.self, state.known, reach);
    if (length(force) <= threshold * cooling ** token.moves) return;
    const scale = Math.min(options.step * spacing, reach / 2 / length(force));
    const goal = where.moved(
      where.pointOf(ctx.self),
      force.map((x) => x * scale),
    );
    const next = nearer(state, ctx.self, goal);
    if (next === null) return; // No neighbor is closer to the goal.
    state.moving = moveRounds;
    ctx.send(next, { type: "move", token: { ...token, moves: token.moves + 1 }, goal, holder: ctx.self });
  }

  /** Returns the neighbor closest to the goal, if it is closer than this node. */
  function nearer(state: State, self: NodeId, goal: Point): NodeId | null {
    let [best, least]: [NodeId | null, number] = [null, where.distance(where.pointOf(self), goal)];
    for (const node of state.neighbours) {
      const distance = where.distance(where.pointOf(node), goal);
      if (distance >= least || state.silent.includes(node)) continue;
      [best, least] = [node, distance];
    }
    return best;
  }

  function giveAway(state: State, token: Token, ctx: Ctx): void {
    if (state.heir !== null) ctx.send(state.heir, { type: "heir", token, isOver: true });
    state.token = null;
    state.heir = null;
    state.held = 0;
    state.moving = 0;
  }

  function nameHeir(state: State, token: Token, ctx: Ctx): void {
    const heir = nearestFree(state);
    if (state.heir !== null && state.heir !== heir) ctx.send(state.heir, { type: "heir", token, isOver: true });
    state.heir = heir ?? null;
    if (heir !== undefined) ctx.send(heir, { type: "heir", token, isOver: false });
  }

  /** Performs the heir's part of a round. Returns null if there is nothing left to watch. */
  function watch(state: State, legacy: Legacy, ctx: Ctx): Legacy | null {
    const elsewhere = state.known.find(({ id }) => id === legacy.id);
    if (elsewhere !== undefined && isLater(elsewhere, legacy)) return null; // The token survives elsewhere.
    const silence = legacy.silence + 1;
    const { id, epoch, moves, holder } = legacy;
    // Ask the holder before suspecting it, because its rounds may be longer than this node's.
    if (silence === lostRounds) ctx.send(holder, { type: "check", token: { id, epoch, moves } });
    if (silence <= lostRounds) return { ...legacy, silence };
    const renewed = { id, epoch: epoch + 1, moves: 0 };
    if (state.token === null) {
      take(state, renewed);
      nameHeir(state, renewed, ctx);
      return null;
    }
    // This node already holds a different token, so it sends this one to another node. If that fails, it will try again
    // after the next `check`.
    const free = nearestFree(state);
    if (free !== undefined)
      ctx.send(free, { type: "move", token: renewed, goal: [...where.pointOf(free)], holder: ctx.self });
    return { ...legacy, silence: lostRounds - 1 };
  }

  function gossip(state: State, ctx: Ctx): void {
    const { neighbours } = state;
    const partner = neighbours[state.turn % Math.max(1, neighbours.length)];
    state.partner = partner ?? null;
    if (partner === undefined) return; // This node is alone.
    state.turn = (state.turn + 1) % neighbours.length;
    ctx.send(partner, { type: "gossip", tokens: told(state, ctx.self, isSettled(state)) });
  }

  function hear(state: State, from: NodeId, tokens: readonly Sighting[], ctx: Ctx): void {
    if (state.silent.includes(from)) state.silent = state.silent.filter((node) => node !== from);
    const { token } = state;
    if (token !== null && tokens.some((each) => each.id === token.id && isLater(each, { ...token, holder: ctx.self })))
      giveAway(state, token, ctx); // The token was recreated, or taken without this node's knowledge.
    learn(where, state, ctx.self, state.token === null ? tokens : tokens.filter(({ id }) => id !== state.token?.id));
    choose(state, ctx);
  }

  /** Chooses the nearest super-peer that this node knows of. */
  function choose(state: State, ctx: Ctx): void {
    const superPeer = isSettled(state) ? ctx.self : state.known.find((each) => each.isSettled)?.holder;
    if (superPeer === undefined || superPeer === state.superPeer) return;
    state.superPeer = superPeer;
    ctx.emit({ type: "elected", leader: superPeer });
  }

  return {
    name: "super-peer-tokens",
    init,
    start(state, ctx) {
      ctx.compact([{ type: "begun" }]);
      round(state, ctx);
    },
    replay: { begun: forgo },
    receive: {
      gossip(state, from, { tokens }, ctx) {
        const own = told(state, ctx.self, isSettled(state));
        hear(state, from, tokens, ctx);
        ctx.send(from, { type: "answer", tokens: own });
      },
      answer(state, from, { tokens }, ctx) {
        if (state.partner === from) state.partner = null;
        hear(state, from, tokens, ctx);
      },
      move(state, _from, { token, goal, holder }, ctx) {
        const next = nearer(state, ctx.self, goal);
        if (next !== null) return ctx.send(next, { type: "move", token, goal, holder });
        if (state.token !== null) return ctx.send(holder, { type: "refused", token });
        take(state, token);
        ctx.send(holder, { type: "taken", token });
      },
      taken(state, from, { token }, ctx) {
        state.legacies = state.legacies.filter(({ id }) => id !== token.id);
        if (state.token?.id !== token.id || !isLater({ ...token, holder: from }, { ...state.token, holder: ctx.self }))
          return; // The answer is late: gossip was faster, or the token was given up and has since come back.
        giveAway(state, token, ctx);
        learn(where, state, ctx.self, [{ ...token, holder: from, age: 0, isSettled: false }]);
      },
      refused(state, _from, { token }) {
        if (state.moving === 0 || state.token?.id !== token.id) return; // A late answer.
        stay(state, state.token);
      },
      heir(state, from, { token, isOver }) {
        const others = state.legacies.filter(({ id, holder }) => id !== token.id || (isOver && holder !== from));
        state.legacies = isOver ? others : [...others, { ...token, holder: from, silence: 0 }].slice(-MAX_KNOWN);
      },
      check(state, from, { token }, ctx) {
        // A node that gave the token away has already notified its heir. A node that lost it in a crash does not
        // answer.
        if (state.token?.id === token.id) ctx.send(from, { type: "heir", token: state.token, isOver: false });
      },
    },
    timeout: { round },
    command: { call: (state, _command, ctx) => round(state, ctx) },
    shapes,
    ...declared,
    properties: superPeerProperties(isSettled, () => around?.made.tokens ?? 0),
    view: (state) => ({ role: roleOf(state, isSettled(state)), leader: state.superPeer }),
  };
}

/**
 * Gives up the initial token, which the node has passed on or lost in a crash. If the token was lost, its heir
 * recreates it.
 */
function forgo(state: State): void {
  state.token = null;
}

function roleOf({ token, moving }: State, isSuperPeer: boolean): string {
  if (token === null) return "node";
  return isSuperPeer ? "super-peer" : moving > 0 ? "moving" : "holder";
}

const isSame = (a: readonly NodeId[], b: readonly NodeId[]): boolean =>
  a.length === b.length && a.every((node, i) => node === b[i]);

/** Returns the nearest neighbor that, as far as this node knows, answers and does not hold a token. */
function nearestFree({ neighbours, silent, known }: State): NodeId | undefined {
  return neighbours.find((node) => !silent.includes(node) && !known.some(({ holder }) => holder === node));
}

function take(state: State, token: Token): void {
  state.token = token;
  state.held = 0;
  state.moving = 0;
  state.known = state.known.filter(({ id }) => id !== token.id);
}

/** Ends a failed move. It still counts as a move, so that the attempts come to an end. */
function stay(state: State, token: Token): void {
  state.moving = 0;
  state.held = 0;
  state.token = { ...token, moves: token.moves + 1 };
}

const declared: Pick<Protocol<SuperPeerTokens>, "source" | "assumes" | "costs"> = {
  source: "Lo, Zhou, Liu, GauthierDickey & Li, HOT-P2P 2005; Tanenbaum & van Steen §6.5.3",
  assumes: [
    "crash-recovery nodes with a journal",
    "reliable links",
    "every node knows its position in the space and some neighbors",
    "a move ends within moveRounds",
    "a holder and its successor do not crash within lostRounds of each other",
  ],
  costs: [{ when: "one gossip round of all nodes", messages: (count) => 2 * count }],
};

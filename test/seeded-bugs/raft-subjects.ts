/** Raft as some of its bugs need it: in a state that takes long to come to, with a client, with a property that no other bug breaks. */
import type { EventOf, Property, Protocol } from "../../src/core/protocol.ts";
import { safety } from "../../src/protocols/consensus/raft/properties.ts";
import type { Raft } from "../../src/protocols/consensus/raft/raft.ts";
import type { Follower, Role } from "../../src/protocols/consensus/raft/vocabulary.ts";
import { changedContext, withContext } from "../../src/protocols/contexts.ts";

/** Of three nodes two have entries at one place, of terms 2 and 3, and neither is committed. */
export function asInFigure8(bounded: Protocol<Raft>): Protocol<Raft> {
  const terms = [[1, 2], [1], [1, 3]];
  const entry = (term: number, at: number) =>
    ({ type: "command", term, command: { client: 0, sequence: 10 * term + at, operation: "x" } }) as const;
  return {
    ...bounded,
    init(self, peers) {
      const entries = (terms[self] ?? []).map(entry);
      return { ...bounded.init(self, peers), term: 3, log: { offset: 0, offsetTerm: 0, entries } };
    },
  };
}

interface Asked {
  readonly decided: number;
  readonly isStale: boolean;
}

const readsAreNew: Property<Raft> = {
  name: "reads",
  claim: "a read is answered with all that anybody knew to be decided when it was asked for",
  when: "always",
  history: {
    empty: { decided: 0, isStale: false },
    after({ decided, isStale }: Asked, event: EventOf<Raft>): Asked {
      if (event.type === "decided") return { decided: event.index, isStale };
      return { decided, isStale: isStale || (event.type === "readable" && event.read > decided) };
    },
  },
  holds: ({ nodes, history }) => nodes.every((node) => !history<Asked>(node).isStale),
};

/** 0 leads term 1. Who is told of a command tells the client at 0 at once, which reads it there: the read's number is its place. */
export function readElsewhere(bounded: Protocol<Raft>): Protocol<Raft> {
  const telling = withContext(bounded, (ctx) =>
    changedContext(ctx, {
      emit(event: EventOf<Raft>) {
        ctx.emit(event);
        if (event.type !== "decided" || ctx.self === 0) return;
        ctx.send(0, { type: "forward", request: { type: "read", read: event.index } } as never);
      },
    }),
  ) as Protocol<Raft>;
  return {
    ...telling,
    properties: [...safety, readsAreNew],
    init: (self, peers) => ({
      ...bounded.init(self, peers),
      term: 1,
      votedFor: 0,
      log: { offset: 0, offsetTerm: 0, entries: [{ type: "noop", term: 1 }] },
      commitIndex: 1,
      role: self === 0 ? leading(peers) : { is: "follower", leader: 0, hasHeard: false, incoming: null },
    }),
    receive: {
      ...telling.receive,
      forward(state, from, message, ctx) {
        const { request } = message;
        if (request.type === "read") telling.command?.read(state, request, ctx);
        else telling.receive.forward(state, from, message, ctx);
      },
    },
  };
}

/** A leader whose followers have its only entry. */
const leading = (peers: readonly number[]): Role => ({
  is: "leader",
  firstIndex: 1,
  persisted: 1,
  followers: Object.fromEntries(peers.map((peer) => [peer, follower])),
  round: 0,
  answered: [...peers],
  asking: [],
  next: [],
  leaseRound: null,
  transfer: null,
  mayLease: false,
  uncommittedChars: 0,
  heir: null,
  catchUp: null,
});
const follower: Follower = {
  next: 2,
  match: 1,
  sending: { is: "pipelining", inFlight: [] },
  isOverdue: false,
  isActive: true,
  hasAnswered: true,
};

/** Whoever has begun the highest term that there is has voted for itself in it, and is in it still. */
const begunByCandidates: Property<Raft> = {
  name: "terms begin with candidates",
  claim: "in the highest term that any node is in some node has stood for election",
  when: "always",
  holds({ nodes, alive, state }) {
    if (alive.length < nodes.length) return true;
    const terms = alive.map((node) => state(node).term);
    const highest = Math.max(...terms);
    return highest === 0 || alive.some((node) => state(node).term === highest && state(node).votedFor === node);
  },
};

export const withPreVotes = (whole: Protocol<Raft>): Protocol<Raft> => ({
  ...whole,
  properties: [...safety, begunByCandidates],
});

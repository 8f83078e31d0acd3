/**
 * Initial states of Raft that explorations would take long to reach, with clients that read and properties that only
 * these states show.
 */
import type { Context, Duration, EventOf, NodeId, Property, Protocol, TimerOf } from "../../src/core/protocol.ts";
import { safety } from "../../src/protocols/consensus/raft/properties.ts";
import type { Raft } from "../../src/protocols/consensus/raft/raft.ts";
import type { Follower, Role } from "../../src/protocols/consensus/raft/vocabulary.ts";
import { changedContext, withContext } from "../../src/protocols/contexts.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** Two of three nodes have entries of terms 2 and 3 at the same index. Neither entry is committed. */
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

interface Observed {
  readonly decided: number;
  readonly isStale: boolean;
}

const readsAreNew: Property<Raft> = {
  name: "reads",
  claim: "a read returns all entries that any node knew to be decided when the read was requested",
  when: "always",
  history: {
    empty: { decided: 0, isStale: false },
    after({ decided, isStale }: Observed, event: EventOf<Raft>): Observed {
      if (event.type === "decided") return { decided: event.index, isStale };
      return { decided, isStale: isStale || (event.type === "readable" && event.read > decided) };
    },
  },
  holds: ({ nodes, history }) => nodes.every((node) => !history<Observed>(node).isStale),
};

/**
 * Node 0 leads term 1. The checker has no clock. Therefore a node that learns of a command notifies the client at node
 * 0 with a message, and that client reads.
 */
export function readElsewhere(bounded: Protocol<Raft>): Protocol<Raft> {
  const telling = withContext(bounded, (ctx) =>
    changedContext(ctx, {
      emit(event: EventOf<Raft>) {
        ctx.emit(event);
        if (event.type !== "decided" || ctx.self === 0) return;
        ctx.send(0, { type: "forward", request: { type: "read", read: event.index } } as never); // The read's number.
      },
    }),
  ) as Protocol<Raft>;
  return {
    ...telling,
    properties: [...safety, readsAreNew],
    init: (self, peers) => ledBy0(bounded.init(self, peers), self, peers),
    start(state, ctx) {
      ctx.emit({ type: "led", leader: 0, term: 1 });
      telling.start?.(state, ctx);
    },
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

/** Node 0 leads term 1. All nodes have its first entry and know that it is committed. */
export const ledBy0 = (initial: State, self: NodeId, peers: readonly NodeId[]): State => ({
  ...initial,
  term: 1,
  votedFor: 0,
  log: { offset: 0, offsetTerm: 0, entries: [{ type: "noop", term: 1 }] },
  commitIndex: 1,
  role: self === 0 ? leading(peers) : { is: "follower", leader: 0, hasHeard: false, incoming: null },
});

/** Returns the role of a leader whose followers have its only entry. */
const leading = (peers: readonly number[]): Role => ({
  is: "leader",
  firstIndex: 1,
  persisted: 1,
  followers: Object.fromEntries(peers.map((peer) => [peer, follower])),
  round: 0,
  answered: [...peers],
  asking: [],
  next: [],
  isTimely: false,
  leaseRound: null,
  transfer: null,
  mayLease: true,
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

/**
 * Node 0 leads term 2, and its second entry is committed. Node 2 was cut off in term 1. Its second and third entries
 * are from that term, so they conflict with the snapshot that it receives once node 0 takes one.
 */
export function overAConflict(bounded: Protocol<Raft>): Protocol<Raft> {
  const noop = (term: number) => ({ type: "noop", term }) as const;
  return {
    ...bounded,
    init(self, peers) {
      const before = ledBy0(bounded.init(self, peers), self, peers);
      if (self === 2) return { ...before, log: { ...before.log, entries: [noop(1), noop(1), noop(1)] } };
      const log = { ...before.log, entries: [noop(1), noop(2)] };
      if (before.role.is !== "leader") return { ...before, term: 2, log, commitIndex: 2 };
      const followers = Object.fromEntries(
        peers.map((peer) => [
          peer,
          peer === 2
            ? { ...follower, next: 3, match: 1, sending: { is: "probing", isAwaiting: false } as const }
            : { ...follower, next: 3, match: 2 },
        ]),
      );
      return {
        ...before,
        term: 2,
        log,
        commitIndex: 2,
        role: { ...before.role, firstIndex: 2, persisted: 2, followers },
      };
    },
  };
}

/** Contains marks for reads that a leader answered by its lease. */
interface Marked {
  hasReadByLease?: boolean;
}

const leaseIsUsed: Property<Raft> = {
  name: "a read by lease",
  claim: "a leader answers a read by its lease",
  when: "sometimes",
  holds: ({ alive, state }) => alive.some((node) => (state(node) as State & Marked).hasReadByLease === true),
};

/**
 * Explores all runs within one lease without a clock: no promise and no lease that begins in a run expires in it, and
 * any other timer may expire at any time. A run begins after a silence: node 0 leads, and the promises to it have just
 * expired. A leader's timer starts one round of heartbeats, and nodes become candidates in one more term.
 *
 * @param cut nodes without a link to each other
 */
export function withinALease(whole: Protocol<Raft>, cut: readonly NodeId[] = []): Protocol<Raft> {
  const LAST_TERM = 2;
  const expires = (timer: TimerOf<Raft>, { role, term }: State): boolean => {
    if (timer === "election") return term < LAST_TERM && !(role.is === "follower" && role.hasHeard);
    return timer === "heartbeat" && role.is === "leader" && role.round === 0;
  };
  const inTime = (state: State, ctx: Ctx): Ctx =>
    changedContext(ctx, {
      setTimer(timer: TimerOf<Raft>, duration: Duration) {
        if (expires(timer, state)) ctx.setTimer(timer, duration);
        else ctx.cancelTimer(timer);
      },
      send(to: NodeId, message: Raft["message"]) {
        if (!(cut.includes(ctx.self) && cut.includes(to))) ctx.send(to, message);
      },
    });
  const timed = <T extends object>(handlers: T): T =>
    Object.fromEntries(
      Object.entries(handlers as Record<string, (...args: unknown[]) => void>).map(([name, handle]) => [
        name,
        (...args: unknown[]) => handle(...args.slice(0, -1), inTime(args[0] as State, args.at(-1) as Ctx)),
      ]),
    ) as T;
  const { receive, timeout, command, ...rest } = whole;
  return {
    ...rest,
    properties: [...safety, leaseIsUsed],
    init: (self, peers) => ledBy0(whole.init(self, peers), self, peers),
    start(_state, ctx) {
      ctx.emit({ type: "led", leader: 0, term: 1 });
      ctx.setTimer(ctx.self === 0 ? "heartbeat" : "election", 1);
    },
    receive: timed(receive),
    timeout: timed({
      ...timeout,
      election(state: State, ctx: Ctx) {
        if (expires("election", state)) timeout.election(state, ctx);
      },
    }),
    command: timed({
      ...command,
      read(state: State & Marked, asked: Extract<Raft["command"], { type: "read" }>, ctx: Ctx) {
        if (state.role.is === "leader" && state.role.leaseRound !== null) state.hasReadByLease = true;
        command.read(state, asked, ctx);
      },
    }),
  };
}

/** The node that began the highest term voted for itself in that term, and is still in it. */
const begunByCandidates: Property<Raft> = {
  name: "terms begin with candidates",
  claim: "some node became a candidate in the highest term of any node",
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

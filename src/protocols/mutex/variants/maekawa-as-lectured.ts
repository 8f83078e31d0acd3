/**
 * Maekawa's algorithm as presented in a lecture: a node asks only the other members of its voting set and needs K − 1
 * votes. While it waits, it votes for a node with a lower timestamp, but its own vote does not count for itself. Two
 * nodes can be inside. The variant is kept because the checker refutes it. The correct form is in `../maekawa.ts`.
 */
import { precedes, type Stamp, tick } from "../../../core/clocks.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { include } from "../../node-set.ts";
import { requireNoOptions } from "../../options.ts";
import { mutexProperties, type Section } from "../family/workload.ts";
import { electorates } from "../parts/voting-sets.ts";

export type MaekawaAsLectured = {
  state: {
    clock: number;
    section: Section;
    /** T of the node's last request. */
    time: number;
    /** Vi − {pi}, in ascending order. */
    voters: NodeId[];
    votes: NodeId[];
    voted: boolean;
    queue: NodeId[];
  };
  message: { type: "request"; time: number } | { type: "vote"; time: number } | { type: "release"; time: number };
  command: { type: "enter" } | { type: "exit" };
  event: { type: "entered"; token: number } | { type: "exited" };
};

type State = MaekawaAsLectured["state"];
type Ctx = Context<MaekawaAsLectured>;

/**
 * Creates Maekawa's algorithm as presented in a lecture.
 * @throws UsageError if any option is given, because there are none.
 */
export function maekawaAsLectured(given?: Record<never, never>): Protocol<MaekawaAsLectured> {
  requireNoOptions("maekawa", given);
  const votersOf = electorates();

  /** Whether state = TAKEN, or voted, or state = WANTED and (T, pi) < (Tj, pj). */
  const mustWait = ({ section, voted, time }: State, request: Stamp, self: NodeId): boolean =>
    section === "held" || voted || (section === "wanted" && precedes({ time, node: self }, request));

  function vote(candidate: NodeId, state: State, ctx: Ctx): void {
    state.voted = true;
    ctx.send(candidate, { type: "vote", time: state.clock });
  }

  function enterIfElected(state: State, ctx: Ctx): void {
    if (state.section !== "wanted" || state.votes.length < state.voters.length) return;
    state.section = "held";
    ctx.emit({ type: "entered", token: state.clock });
  }

  return {
    name: "maekawa",
    init: (self, peers) => ({
      clock: 0,
      section: "released",
      time: 0,
      voters: votersOf(self, peers).filter((node) => node !== self),
      votes: [],
      voted: false,
      queue: [],
    }),
    receive: {
      request(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        if (mustWait(state, { time, node: from }, ctx.self)) state.queue.push(from);
        else vote(from, state, ctx);
      },
      vote(state, from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        include(state.votes, from);
        enterIfElected(state, ctx);
      },
      release(state, _from, { time }, ctx) {
        state.clock = tick(state.clock, time);
        state.voted = false;
        const next = state.queue.shift();
        if (next !== undefined) vote(next, state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        state.clock = tick(state.clock);
        Object.assign(state, { section: "wanted", time: state.clock, votes: [] });
        for (const voter of state.voters) ctx.send(voter, { type: "request", time: state.time });
        enterIfElected(state, ctx); // A lone node has no votes to wait for.
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // The node is not inside.
        state.clock = tick(state.clock);
        state.section = "released";
        ctx.emit({ type: "exited" });
        for (const voter of state.voters) ctx.send(voter, { type: "release", time: state.clock });
      },
    },
    shapes: {
      message: { request: { time: natural }, vote: { time: natural }, release: { time: natural } },
      command: { enter: {}, exit: {} },
    },
    source: "a lecture on Coulouris et al. §15.2",
    assumes: ["no crashes", "reliable links"],
    properties: mutexProperties(({ section }) => section),
    costs: [],
    view: ({ section, voted }) => ({ role: voted ? `${section}, voted` : section }),
  };
}

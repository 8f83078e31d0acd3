/**
 * Views agreed through a replicated log. A group in the coordination service lists the members. The members flush the
 * current view's messages, and the next view is an entry in the log. Birman & Joseph, "Exploiting Virtual Synchrony in
 * Distributed Systems", SOSP 1987, for views and the flush; Schneider, ACM Computing Surveys 1990, for the log that
 * orders them.
 *
 * Assumes   the same as the service: crash-recovery nodes with a journal; for liveness, a majority connected to a
 *           common leader, eventually no false suspicions, and round trips shorter than `roundMs`. Links between
 *           members may lose, duplicate and reorder messages.
 * Safety    agreement: no two nodes have different views with the same number. A member that moves from one view to the
 *           next holds all messages in the cut and has delivered none beyond it. Once the log has removed a member, no
 *           view contains it.
 * Liveness  a node that wants to be in the group is eventually in a view, and no member stays blocked.
 * Cost      a change takes two log entries (the group's members, and the view), N − 1 answers to the coordinator, and a
 *           fill and its answer for each member that lacks messages from the previous view.
 *
 * A view change works as follows:
 *
 *     log         grouped: the members are these, at revision r
 *     members     flush: stop sending, count received messages           ── promise(r) ──▶ coordinator (the lowest member)
 *     coordinator cut := for each sender the most that a survivor has    ── fill(r) ──▶ member with gaps ── filled(r) ──▶
 *     log         view: round r, cut. Every member that applies it delivers up to the cut and installs the view
 *
 * If the group changes again before the view is in the log, the view's entry names an outdated round and has no effect.
 * All nodes that follow the log therefore install the same views. A suspected member is expelled by a log entry, and
 * enters again once it has applied that entry.
 */
import type { NodeId, Protocol, World } from "../../../../core/protocol.ts";
import { natural, nullable } from "../../../../core/shape.ts";
import { exclude, include } from "../../../node-set.ts";
import { groupUpdateShapes } from "../../../service/coordination-service/group-updates.ts";
import { CAUGHT_UP, rounds } from "./rounds.ts";
import {
  coordinatorOf,
  counts,
  isCoordinating,
  isCurrent,
  type LogViews,
  type LogViewsOptions,
  logViewsOptions,
  nowhere,
  type State,
  viewIn,
} from "./vocabulary.ts";

export type { LogViews, LogViewsOptions } from "./vocabulary.ts";

/** The maximum number of times that the back-off is doubled. */
const MOST_DOUBLINGS = 10;

/** Creates the agreement on views through a log. @throws UsageError if an option is unknown or out of range. */
export function logViews(given?: Partial<LogViewsOptions>): Protocol<LogViews> {
  const options = logViewsOptions.settle(given);
  const steps = rounds(options);
  const { askForSession, enter, notePromise, proposeIfFilled, considerSuspects, expel, pursue } = steps;
  return {
    name: "log-views",
    init: () => ({
      ...{ membership: "outside", session: null, wait: 0 },
      ...nowhere(),
      ...{ suspected: [], attempts: 0, isStalled: false },
    }),
    start: (_state, ctx) => askForSession(ctx),
    receive: {
      promise(state, from, { round, members, received }, ctx) {
        const { membership } = state;
        if (membership === "outside" || membership === "left") return;
        if (received !== null && received.length !== members.length) return; // No correct member sends such an answer.
        notePromise(state, from, { round, members, received }, ctx);
      },
      fill(state, from, { round, cut, holders }, ctx) {
        const isOurs = isCurrent(state, round) && from === coordinatorOf(state);
        if (isOurs && state.promised?.length === cut.length) ctx.emit({ type: "fill", round, cut, holders });
      },
      filled(state, from, { round }, ctx) {
        if (!isCurrent(state, round) || state.filling === null) return; // The answer belongs to an earlier round.
        exclude(state.filling.awaited, from);
        proposeIfFilled(state, ctx);
      },
    },
    timeout: {
      round: pursue,
      expel(state, ctx) {
        expel(state, state.suspected, ctx);
        considerSuspects(state, ctx);
      },
      enter,
      left: (_state, ctx) => ctx.emit({ type: "left" }),
      stall(state, ctx) {
        state.isStalled = true;
        ctx.emit({ type: "stalled" });
      },
    },
    command: { ...membershipCommands(options, steps), ...roundCommands(steps) } as Commands,
    shapes: {
      message: {
        promise: { round: natural, members: counts, received: nullable(counts) },
        fill: { round: natural, cut: counts, holders: counts },
        filled: { round: natural },
      },
      command: {
        suspect: { node: natural },
        restore: { node: natural },
        leave: {},
        ...groupUpdateShapes,
        flushed: { round: natural, received: counts },
        filled: { round: natural },
      },
    },
    source: "Birman & Joseph, SOSP 1987; Schneider, ACM Computing Surveys 1990",
    assumes: [
      "crash-recovery nodes with a journal",
      "for liveness: a majority connected to a common leader of the log, round trips below roundMs, eventually no false suspicion",
    ],
    properties: [agreement, nobodyStaysBlocked],
    costs: [],
    view: ({ membership, view, isChanging }) => ({
      role: membership === "inside" && isChanging ? "changing" : membership,
      term: view.number,
    }),
  };
}

type Steps = ReturnType<typeof rounds>;
type Commands = NonNullable<Protocol<LogViews>["command"]>;

/** Creates the handlers for commands about the group's members and the log's leader. */
function membershipCommands(options: LogViewsOptions, steps: Steps): Partial<Commands> {
  const { group: name, backOffMs, maxBackOffMs, stallMs } = options;
  const { ask, askForSession, enter, dropOut, beginRound, install, considerSuspects, catchUp, resume } = steps;
  return {
    suspect(state, { node }, ctx) {
      if (node === ctx.self) return;
      include(state.suspected, node);
      considerSuspects(state, ctx);
    },
    restore(state, { node }, ctx) {
      exclude(state.suspected, node);
      considerSuspects(state, ctx);
    },
    leave(state, _command, ctx) {
      if (state.membership === "left") return;
      dropOut(state, ctx);
      state.membership = "left";
      ctx.cancelTimer("enter");
      ask({ type: "leaveGroup", name }, ctx);
      ctx.setTimer("left", 0); // Wait for the next step, so that all layers have received `ejected`.
    },
    began(state, { session }, ctx) {
      if (session === state.session || state.membership === "left") return;
      state.session = session;
      dropOut(state, ctx);
      enter(state, ctx);
    },
    over(state, { session }, ctx) {
      // The session belongs to an earlier incarnation.
      if (session !== state.session || state.membership === "left") return;
      state.session = null;
      askForSession(ctx);
    },
    restored(state, _command, ctx) {
      if (state.membership === "left") return;
      dropOut(state, ctx);
      enter(state, ctx);
    },
    /**
     * Handles a change of the log's leader. Another leader is usually elected soon, and members stay in their view
     * until then.
     */
    led(state, { leader }, ctx) {
      if (leader === null) return ctx.setTimer("stall", stallMs);
      ctx.cancelTimer("stall");
      if (state.isStalled) catchUp(state, ctx);
    },
    grouped(state, { name: of, view: revision, members }, ctx) {
      const { membership, session, wait } = state;
      if (of !== name || (membership !== "entering" && membership !== "inside")) return;
      if (!members.some((each) => each.session === session && each.wait === wait)) {
        if (membership === "entering") return;
        dropOut(state, ctx);
        state.attempts += 1;
        const doubled = backOffMs * 2 ** Math.min(state.attempts, MOST_DOUBLINGS);
        return ctx.setTimer("enter", [backOffMs, Math.min(maxBackOffMs, doubled)]);
      }
      const roster = members.map((each) => ({ node: each.member, session: each.session, wait: each.wait }));
      state.membership = "inside";
      state.roster = { revision, members: roster.sort((a, b) => a.node - b.node) };
      beginRound(state, ctx);
    },
    said(state, { name: of, from, text: said, revision }, ctx) {
      if (of !== name || state.membership !== "inside") return;
      if (said === CAUGHT_UP) {
        if (from === ctx.self) resume(state, ctx);
        return;
      }
      const entry = viewIn(said);
      if (entry !== null && isCurrent(state, entry.round) && from === coordinatorOf(state))
        install(state, revision, entry, ctx);
    },
  };
}

/** Creates the handlers for replies from the message carrier and for reports of failed operations. */
function roundCommands(steps: Steps): Partial<Commands> {
  const { askForSession, enter, promise, proposeIfFilled, considerSuspects, catchUp } = steps;
  return {
    flushed(state, { round, received }, ctx) {
      if (!isCurrent(state, round)) return;
      state.promised = received;
      promise(state, ctx);
    },
    filled(state, { round }, ctx) {
      if (!isCurrent(state, round)) return;
      if (!isCoordinating(state, ctx)) return ctx.send(coordinatorOf(state), { type: "filled", round });
      if (state.filling === null) return;
      exclude(state.filling.awaited, ctx.self);
      proposeIfFilled(state, ctx);
    },
    notDone(state, { operation }, ctx) {
      const { membership, session, wait } = state;
      if (membership === "left") return;
      if (operation.type === "leaveGroup") {
        if (session === null) askForSession(ctx);
      } else if (operation.type === "enterGroup") {
        if (membership === "entering" && operation.wait === wait) enter(state, ctx);
      } else if (operation.type === "expelFromGroup") considerSuspects(state, ctx);
      else if (operation.text === CAUGHT_UP) catchUp(state, ctx);
      else if (state.isProposed && operation.wait === wait) {
        state.isProposed = false;
        proposeIfFilled(state, ctx);
      }
    },
  };
}

const agreement = {
  name: "agreement on views",
  claim: "no two nodes have different views with the same number",
  when: "always",
  holds: ({ alive, state }: World<State>): boolean => {
    const known = new Map<number, string>();
    return alive.every((node) => {
      const { number, members } = state(node).view;
      if (!known.has(number)) known.set(number, members.join());
      return known.get(number) === members.join();
    });
  },
} as const;

const nobodyStaysBlocked = {
  name: "no member stays blocked",
  claim: "a member that stops sending for a view change eventually sends again, inside or outside the group",
  when: "leadsTo",
  given: ({ state }: World<State>, node: NodeId): boolean => state(node).isChanging,
  holds: ({ state }: World<State>, node: NodeId): boolean => !state(node).isChanging,
} as const;

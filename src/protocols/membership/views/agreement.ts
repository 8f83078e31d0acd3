/**
 * Views: the nodes of a group agree on one sequence of views, on the members of each view, and on the messages
 * delivered before each view. Views are defined as in Birman & Joseph, "Exploiting Virtual Synchrony in Distributed
 * Systems", SOSP 1987. All nodes decide each view by Paxos (Lamport, "Paxos Made Simple", 2001), so there is a single
 * sequence even if the failure detector is wrong.
 *
 * Assumes   crash-recovery nodes with a journal. For liveness: a connected majority is alive; eventually, a round trip,
 *           including the time to obtain missing messages, takes less than `roundMs`.
 * Safety    agreement: no two nodes have different views with the same number; every node in a view has asked to join.
 *           A node that moves from one view to the next holds all messages in the cut, and has delivered none beyond
 *           it.
 * Liveness  eventually, all live nodes that want to be in the group are in the same view, and no other nodes are. A
 *           node that has blocked for a change eventually resumes. A minority installs no view and reports that it is
 *           stalled.
 * Cost      5(N − 1) messages for a change if all nodes answer: N − 1 each of prepare, promise, propose, accept and
 *           decided. 3(N − 1) for the first view if all nodes are present, because it is proposed at once. 2 more (fill
 *           and filled) for each member that lacks messages from the previous view; N − 1 more (wish) if a node asks to
 *           join or leave; 1 more for each answer that is missing after half of `roundMs`.
 *
 * A member is one incarnation of a node, so every restart is noticed, no matter how quick it is. A round for view k + 1
 * works as follows:
 *
 *     prepare ──▶ a member of view k blocks and counts its messages (flush, flushed)
 *     promise ◀── … and reports them. The cut: for each member of k, the highest count of any of them
 *     fill    ──▶ to members that lack some of it; they obtain the rest from its holders
 *     filled  ◀── nothing is proposed before every future member holds the cut
 *     propose ──▶ accept ◀── from a majority: decided
 *
 * So by the time a value is accepted, all its members hold its cut, even if another node later proposes the value
 * again. After half of `roundMs`, the step's message is resent to nodes that have not answered, so that a single lost
 * message does not exclude a node. A node that restarts in the meantime is asked again, because its previous
 * incarnation's promises and messages are lost.
 */
import type { NodeId, Protocol, World } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, type Shape, struct } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";
import {
  accept,
  adopt,
  beginLife,
  invite,
  keep,
  resume,
  rounds,
  sayLeft,
  stall,
  tellAll,
  trusts,
  wish,
  wishOf,
} from "./rounds.ts";
import {
  type Accepted,
  type Ctx,
  type GroupView,
  isAbsurdRound,
  isAbsurdValue,
  isAbsurdView,
  isChangeDue,
  isEmpty,
  isEverybodyHeard,
  isGranted,
  isInside,
  type Member,
  nodesOf,
  present,
  type State,
  type Views,
  type ViewsOptions,
  viewsOptions,
} from "./vocabulary.ts";

const MAX_MEMBERS = 10_000;
const counts = list(natural, MAX_MEMBERS);
const viewShape: Shape<GroupView> = struct<GroupView>({
  number: natural,
  members: list(struct<Member>({ node: natural, incarnation: natural }), MAX_MEMBERS),
  cut: counts,
});
const acceptedShape = nullable(struct<Accepted>({ round: natural, view: viewShape }));

type Group = World<Views["state"]>;

const inside = ({ alive, state }: Group): NodeId[] => alive.filter((node) => isInside(state(node), node));

const declarations: Pick<Protocol<Views>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view"> = {
  shapes: {
    message: {
      prepare: { view: viewShape, round: natural },
      promise: {
        base: natural,
        round: natural,
        accepted: acceptedShape,
        incarnation: natural,
        wants: boolean,
        received: nullable(counts),
      },
      refuse: { base: natural, promised: natural },
      fill: { base: natural, round: natural, cut: counts, holders: counts },
      filled: { base: natural, round: natural },
      propose: { round: natural, view: viewShape },
      accept: { base: natural, round: natural },
      decided: { view: viewShape },
      wish: { base: natural, incarnation: natural, wants: boolean },
    },
    command: {
      suspect: { node: natural },
      restore: { node: natural },
      join: {},
      leave: {},
      flushed: { round: natural, received: counts },
      filled: { round: natural },
    },
    record: {
      register: { incarnation: natural, promised: natural, accepted: acceptedShape, view: viewShape },
    },
  },
  source: "Birman & Joseph, SOSP 1987; Lamport, Paxos Made Simple, 2001",
  assumes: [
    "crash-recovery nodes with a journal",
    "for liveness: a live, connected majority, with round trips eventually below roundMs",
  ],
  properties: [
    {
      name: "agreement on views",
      claim: "no two nodes have different views with the same number",
      when: "always",
      holds: ({ alive, state }) => {
        const known = new Map<number, string>();
        return alive.every((node) => {
          const { view } = state(node);
          const said = JSON.stringify([view.members, view.cut]);
          if (!known.has(view.number)) known.set(view.number, said);
          return known.get(view.number) === said;
        });
      },
    },
    {
      name: "no node is added without its request",
      claim: "no view contains an incarnation of a node that has not started",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node) =>
          state(node).view.members.every(
            (member) => !alive.includes(member.node) || member.incarnation <= state(member.node).incarnation,
          ),
        ),
    },
    {
      name: "the group is the nodes that want to be in it",
      claim: "eventually, all live nodes that want to be in the group, and no others, are in the same view",
      when: "eventually",
      holds: (world) => {
        const { alive, state } = world;
        const willing = alive.filter((node) => state(node).wants);
        return (
          inside(world).join() === willing.join() &&
          willing.every((node) => nodesOf(state(node).view).join() === willing.join()) &&
          new Set(willing.map((node) => state(node).view.number)).size <= 1
        );
      },
    },
    {
      name: "no node stays silent",
      claim: "a node that stops sending for a view change eventually sends again, inside or outside the group",
      when: "leadsTo",
      given: ({ state }, node) => state(node).isBlocked,
      holds: ({ state }, node) => !state(node).isBlocked,
    },
  ],
  costs: [
    {
      when: "one view change, if all members answer and no message is missing",
      messages: (nodes) => 5 * (nodes - 1),
    },
  ],
  view: (state, self) => ({
    role: !isInside(state, self) ? "outside" : state.isBlocked ? "changing" : "inside",
    term: state.view.number,
  }),
};

/** Vocabulary and options of `views()`. */
export type { Views, ViewsOptions } from "./vocabulary.ts";

/** Creates the agreement on views. @throws UsageError if an option is unknown or out of range. */
export function views(given?: Partial<ViewsOptions>): Protocol<Views> {
  const options = viewsOptions.settle(given);
  const steps = rounds(options);
  const { consider, hasten, yieldTo, renew, begin, prepare, fallSilent, promise, notePromise } = steps;
  const { confirm, noteFilled, noteAccept, takeTooLong, doWithout } = steps;

  /** Returns whether the sender is behind. If so, sends it the current view. */
  function isBehind(state: State, from: NodeId, base: number, ctx: Ctx): boolean {
    if (base >= state.view.number) return false;
    ctx.send(from, { type: "decided", view: state.view });
    return true;
  }

  /** Returns whether this node has promised to ignore the round. If so, sends `refuse`. */
  function isRefused(state: State, from: NodeId, round: number, ctx: Ctx): boolean {
    if (round >= state.promised) return false;
    ctx.send(from, { type: "refuse", base: state.view.number, promised: state.promised });
    return true;
  }

  /** Repeats this node's request to join or leave until a view grants it. */
  function insist(state: State, ctx: Ctx): void {
    if (!isGranted(state.view, ctx.self, state)) wish(state, ctx);
    hasten(state, ctx);
  }

  return {
    name: "views",
    init: () => ({
      incarnation: 0,
      wants: options.joins,
      view: { number: 0, members: [], cut: [] },
      promised: 0,
      accepted: null,
      isBlocked: false,
      phase: { is: "idle" },
      suspected: [],
      wishes: {},
      late: [],
      attempts: 0,
      isStalled: false,
    }),
    start(state, ctx) {
      beginLife(state, ctx);
      if (options.remindMs > 0) ctx.setTimer("remind", options.remindMs);
      // An earlier incarnation of this node may be in a view that the node has not journaled.
      const isNew = state.incarnation === 1 && isGranted(state.view, ctx.self, state);
      if (!isNew) wish(state, ctx);
      consider(state, ctx);
    },
    receive: {
      prepare(state, from, { view, round }, ctx) {
        if (isAbsurdRound(state, round, ctx) || isAbsurdView(state, view, ctx)) return;
        if (view.number > state.view.number) {
          adopt(state, view, ctx);
          // First, the layers above continue in that view. Then this node's message makes the coordinator ask the node
          // again.
          if (isInside(state, ctx.self)) return ctx.send(from, wishOf(state));
        }
        if (isBehind(state, from, view.number, ctx) || isRefused(state, from, round, ctx)) return;
        state.promised = round;
        keep(state, ctx);
        yieldTo(state, ctx);
        fallSilent(state, ctx);
      },
      promise(state, from, { base, round, accepted, incarnation, wants, received }, ctx) {
        if (base !== state.view.number || isAbsurdValue(state, accepted, ctx)) return;
        notePromise(state, from, round, { accepted, incarnation, wants, received }, ctx);
      },
      refuse(state, _from, { base, promised }, ctx) {
        const { phase } = state;
        if (base !== state.view.number || phase.is === "idle" || phase.is === "due") return; // That round is over.
        // The refusal belongs to an earlier attempt, or is invalid.
        if (promised <= state.promised || isAbsurdRound(state, promised, ctx)) return;
        state.promised = promised;
        keep(state, ctx);
        state.attempts += 1;
        yieldTo(state, ctx);
      },
      fill(state, from, { base, round, cut, holders }, ctx) {
        if (isBehind(state, from, base, ctx)) return;
        if (base === state.view.number && round === state.promised) ctx.emit({ type: "fill", round, cut, holders });
      },
      filled(state, from, { base, round }, ctx) {
        if (base === state.view.number) noteFilled(state, from, round, ctx);
      },
      propose(state, from, { round, view }, ctx) {
        if (isAbsurdRound(state, round, ctx) || isAbsurdView(state, view, ctx)) return;
        if (isBehind(state, from, view.number - 1, ctx) || isRefused(state, from, round, ctx)) return;
        // This node has missed a view, which it will receive in a reminder.
        if (view.number - 1 > state.view.number) return;
        accept(state, round, view, ctx);
        yieldTo(state, ctx);
        ctx.send(from, { type: "accept", base: state.view.number, round });
      },
      accept(state, from, { base, round }, ctx) {
        if (base === state.view.number) noteAccept(state, from, round, ctx);
      },
      decided(state, from, { view }, ctx) {
        if (isAbsurdView(state, view, ctx)) return;
        if (isBehind(state, from, view.number, ctx) || view.number === state.view.number) return;
        adopt(state, view, ctx);
        consider(state, ctx);
      },
      wish(state, from, { base, incarnation, wants }, ctx) {
        isBehind(state, from, base, ctx); // The request counts even if the sender is behind.
        state.wishes[from] = { base, incarnation, wants };
        renew(state, from, incarnation, ctx);
        begin(state, ctx);
        const isComplete = isEmpty(state.view) && isEverybodyHeard(state, ctx);
        if (from < ctx.self || isComplete)
          hasten(state, ctx); // This node goes first, or all nodes have been heard.
        else consider(state, ctx);
      },
    },
    timeout: {
      change(state, ctx) {
        if (state.phase.is !== "due") return takeTooLong(state, ctx);
        state.phase = { is: "idle" };
        if (isChangeDue(state, ctx.self)) prepare(state, ctx);
      },
      remind(state, ctx) {
        ctx.setTimer("remind", options.remindMs);
        const members = nodesOf(state.view);
        const lowest = present(state, ctx.self).find((node) => members.includes(node));
        if (lowest === ctx.self) tellAll({ type: "decided", view: state.view }, ctx);
      },
      left: (_state, ctx) => ctx.emit({ type: "left" }),
    },
    command: {
      suspect(state, { node }, ctx) {
        if (!ctx.peers.includes(node)) return; // The node is not a member.
        include(state.suspected, node);
        if (!trusts(state, ctx)) stall(state, ctx);
        doWithout(state, node, ctx);
        hasten(state, ctx);
      },
      restore(state, { node }, ctx) {
        if (!ctx.peers.includes(node)) return;
        exclude(state.suspected, node);
        // The node may have been left out without noticing.
        if (isInside(state, ctx.self)) ctx.send(node, { type: "decided", view: state.view });
        state.attempts = 0;
        if (trusts(state, ctx) && !isChangeDue(state, ctx.self)) resume(state, ctx);
        invite(state, node, ctx);
        hasten(state, ctx);
      },
      join(state, _command, ctx) {
        state.wants = true;
        ctx.cancelTimer("left");
        insist(state, ctx);
      },
      leave(state, _command, ctx) {
        const wasToCome = state.wants && !isInside(state, ctx.self);
        state.wants = false;
        if (wasToCome) {
          beginLife(state, ctx); // A round may be about to admit the current incarnation.
          wish(state, ctx);
        }
        if (!isInside(state, ctx.self)) sayLeft(ctx);
        insist(state, ctx);
      },
      flushed(state, { round, received }, ctx) {
        if (state.isBlocked && round === state.promised) promise(state, received, ctx);
      },
      filled(state, { round }, ctx) {
        if (state.isBlocked && round === state.promised) confirm(state, round, ctx);
      },
    },
    replay: {
      register(state, { incarnation, promised, accepted, view }) {
        Object.assign(state, { incarnation, promised, accepted, view });
      },
    },
    ...declarations,
  };
}

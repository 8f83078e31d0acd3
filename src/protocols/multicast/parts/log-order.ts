/**
 * Total order through the replicated log of a coordination service. Messages are log entries in one of the service's
 * groups, and are delivered in log order. When a node's session ends, the node is not in a view until its next session
 * has entered the group, but it still receives the group's messages, so it misses none. It then resends its own
 * messages, except those that the log accepted. The node is ejected only if it catches up from a snapshot that skips
 * part of the log. It then joins as a newcomer.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { problem, type Shape, type Shapes, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable } from "../../options.ts";
import { type GroupUpdate, groupUpdateShapes } from "../../service/coordination-service/group-updates.ts";
import type { GroupOperation, SessionId } from "../../service/coordination-service/operations.ts";
import type { GroupEvent, Multicast, Refusal } from "./layers.ts";

/** Vocabulary of the total order through a log. */
export type LogOrder<P = string> = {
  state: {
    /**
     * `entering`: the node has requested to enter, and ignores log entries before its own. `inside`: it follows the
     * group from its own entry onward.
     */
    membership: "outside" | "entering" | "inside" | "left";
    /** The node's session in this run. Null while it has none. */
    session: SessionId | null;
    /** How many times the node has entered the group in this run. */
    wait: number;
    /** The number of the current view. 0 if the node does not follow the group. */
    view: number;
    /** The members of the view, which may not include this node. */
    members: NodeId[];
    /** Whether the view includes this node's latest membership. */
    isMember: boolean;
    /** The number of messages that the node has submitted to the log during this membership. */
    numbered: number;
    /** Messages that have been sent but not yet delivered. */
    undelivered: P[];
    /** Messages sent while the node was not a member of the view. */
    waiting: P[];
  };
  command: Multicast<P>["command"] | { type: "leave" } | GroupUpdate;
  event:
    | Multicast<P>["event"]
    | Refusal<P>
    | GroupEvent
    | { type: "left" }
    | { type: "stalled" }
    | { type: "resumed" }
    /** A request for the session. */
    | { type: "asked"; operation: GroupOperation };
};

const logOrderOptions = optionTable("multicast", {
  group: option(text(256), "group", "the name of the group in the service"),
  setting: option(text(4_096), "", "how the group is used; members that join with a different setting are rejected"),
});

export type LogOrderOptions = OptionsOf<typeof logOrderOptions>;

/** The maximum number of waiting messages. Further ones are refused. */
const MAX_WAITING = 1_000;

/** Creates the total order through a log. @throws UsageError if an option is unknown or out of range. */
export function logOrder<P = string>(
  given: Partial<LogOrderOptions> | undefined,
  payload: Shape<P>,
): Protocol<LogOrder<P>> {
  const { group: name, setting } = logOrderOptions.settle(given);
  type State = LogOrder<P>["state"];
  type Ctx = Context<LogOrder<P>>;

  const ask = (operation: GroupOperation, ctx: Ctx): void => ctx.emit({ type: "asked", operation });
  /** Requests a session. For a non-member, leaving a group has no effect except that it creates a session. */
  const askForSession = (ctx: Ctx): void => ask({ type: "leaveGroup", name }, ctx);
  const isEnding = ({ membership }: State): boolean => membership === "left";

  /** Enters as a new member. */
  function enter(state: State, ctx: Ctx): void {
    state.isMember = false;
    if (state.session === null) return askForSession(ctx);
    if (state.membership === "outside") state.membership = "entering";
    state.wait += 1;
    ask({ type: "enterGroup", name, wait: state.wait, setting }, ctx);
  }

  function say(state: State, message: P, ctx: Ctx): void {
    state.numbered += 1;
    const { wait, numbered: number } = state;
    ask({ type: "say", name, wait, number, to: null, text: JSON.stringify(message) }, ctx);
  }

  /**
   * Runs when the node has become a member. Submits the messages that the log has not accepted yet, and the waiting
   * ones.
   */
  function sayAll(state: State, ctx: Ctx): void {
    state.numbered = 0;
    state.undelivered.push(...state.waiting.splice(0));
    for (const message of state.undelivered) say(state, message, ctx);
  }

  return {
    name: "log-multicast",
    init: () => ({ membership: "outside", session: null, wait: 0, ...nowhere(), waiting: [] }),
    start: (_state, ctx) => askForSession(ctx),
    command: {
      send(state, { payload: message }, ctx) {
        if (state.isMember) {
          state.undelivered.push(message);
          say(state, message, ctx);
        } else if (state.waiting.length < MAX_WAITING) state.waiting.push(message);
        else ctx.emit({ type: "refused", payload: message });
      },
      leave(state, _command, ctx) {
        if (isEnding(state)) return;
        Object.assign(state, { membership: "left", ...nowhere(), waiting: [] });
        ask({ type: "leaveGroup", name }, ctx);
        ctx.emit({ type: "left" });
      },
      began(state, { session }, ctx) {
        if (session === state.session || isEnding(state)) return;
        state.session = session;
        enter(state, ctx);
      },
      over(state, { session }, ctx) {
        if (session !== state.session || isEnding(state)) return; // The session belongs to an earlier incarnation.
        state.session = null;
        enter(state, ctx);
      },
      restored(state, _command, ctx) {
        if (isEnding(state)) return;
        const wasInside = state.membership === "inside";
        Object.assign(state, { membership: "outside", ...nowhere() });
        if (wasInside) ctx.emit({ type: "ejected" });
        if (state.session !== null) enter(state, ctx);
      },
      notDone(state, { operation }, ctx) {
        if (isEnding(state)) return;
        if (operation.type === "leaveGroup") {
          if (state.session === null) askForSession(ctx);
        } else if (operation.wait === state.wait && state.session !== null) enter(state, ctx);
      },
      led(_state, { leader }, ctx) {
        ctx.emit({ type: leader === null ? "stalled" : "resumed" });
      },
      grouped(state, { name: of, view, members }, ctx) {
        const { membership, session, wait, isMember } = state;
        if (of !== name || (membership !== "inside" && membership !== "entering")) return;
        const isOwn = members.some((each) => each.session === session && each.wait === wait);
        if (membership === "entering" && !isOwn) return;
        const nodes = members.map(({ member }) => member).sort((a, b) => a - b);
        Object.assign(state, { membership: "inside", view, members: nodes, isMember: isOwn });
        ctx.emit({ type: "installed", view, members: [...nodes] });
        if (isOwn && !isMember) sayAll(state, ctx);
        else if (isMember && !isOwn && session !== null) enter(state, ctx); // This membership was removed.
      },
      said(state, { name: of, from, text: said, revision }, ctx) {
        if (of !== name || state.membership !== "inside") return;
        const message = read(said, payload);
        if (message === null) return;
        if (from === ctx.self) state.undelivered.shift();
        ctx.emit({ type: "delivered", from, payload: message, id: `${from}.${revision}` });
      },
    },
    shapes: { command: commandShapes(payload) },
    source: "Schneider, ACM Computing Surveys 1990; Chandra & Toueg, JACM 1996, §7",
    assumes: [
      "crash-recovery nodes with a journal",
      "for liveness: a live majority connected to a common leader; eventually reliable links and bounded delay",
    ],
    properties: [],
    costs: [{ when: "one multicast by the leader of the log", messages: (nodes) => 3 * (nodes - 1) }],
    view: ({ membership, view }) => ({ role: membership, ...(view > 0 ? { term: view } : {}) }),
  };
}

const nowhere = () => ({ view: 0, members: [], isMember: false, numbered: 0, undelivered: [] });

const commandShapes = <P>(payload: Shape<P>): Shapes<LogOrder<P>["command"]> => ({
  send: { payload },
  leave: {},
  ...groupUpdateShapes,
});

/** Parses a message. It comes from another node, so it may contain anything. Returns null if the payload is invalid. */
function read<P>(said: string, payload: Shape<P>): P | null {
  try {
    const message: unknown = JSON.parse(said);
    return problem(payload, message, "payload") === null ? (message as P) : null;
  } catch {
    return null;
  }
}

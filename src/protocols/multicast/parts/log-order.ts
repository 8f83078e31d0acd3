/**
 * Total order by the replicated log of a coordination service: messages are log entries in a group of the service,
 * delivered in log order. A node whose session ends is in no view until its next session has entered, but still receives
 * the group's messages, so it misses none. Its own messages that the log did not accept are then sent again. Only if a
 * snapshot took it past a part of the log is it ejected and joins as a newcomer.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { problem, type Shape, type Shapes, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable } from "../../options.ts";
import { type GroupUpdate, groupUpdateShapes } from "../../service/coordination-service/group-updates.ts";
import type { GroupOperation, SessionId } from "../../service/coordination-service/operations.ts";
import type { GroupEvent, Multicast, Refusal } from "./layers.ts";

export type LogOrder<P = string> = {
  state: {
    /** `entering`: it has requested to enter and ignores earlier log entries. `inside`: it follows the group from there on. */
    membership: "outside" | "entering" | "inside" | "left";
    /** The session of this run of the node. Null while it has none. */
    session: SessionId | null;
    /** Counts the entries into the group in this run. */
    wait: number;
    /** 0 outside. */
    view: number;
    /** The members of the view. This node need not be among them. */
    members: NodeId[];
    /** Whether this node, as it last entered, is a member. */
    isMember: boolean;
    /** The number of messages that it has submitted to the log in this membership. */
    numbered: number;
    /** Sent and not delivered yet. */
    undelivered: P[];
    /** Sent while no message could be submitted. */
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
    /** To the session. */
    | { type: "asked"; operation: GroupOperation };
};

const logOrderOptions = optionTable("multicast", {
  group: option(text(256), "group", "the name of the group in the service"),
  setting: option(text(4_096), "", "how the group is used; members that join with another setting are rejected"),
});

export type LogOrderOptions = OptionsOf<typeof logOrderOptions>;

/** The maximum number of waiting messages. Further ones are refused. */
const MAX_WAITING = 1_000;

export function logOrder<P = string>(
  given: Partial<LogOrderOptions> | undefined,
  payload: Shape<P>,
): Protocol<LogOrder<P>> {
  const { group: name, setting } = logOrderOptions.settle(given);
  type State = LogOrder<P>["state"];
  type Ctx = Context<LogOrder<P>>;

  const ask = (operation: GroupOperation, ctx: Ctx): void => ctx.emit({ type: "asked", operation });
  /** Leaving a group has no effect for a non-member, but it creates a session. */
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

  /** The node has become a member: submits messages that the log did not accept before, and waiting ones. */
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
        if (session !== state.session || isEnding(state)) return; // From an earlier life.
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
        else if (isMember && !isOwn && session !== null) enter(state, ctx); // Another member of this node has left.
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
      "for liveness: a majority alive and connected to a common leader; eventually reliable links and bounded delay",
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

/** Messages come from another node, so they may contain anything. Invalid payloads are ignored. */
function read<P>(said: string, payload: Shape<P>): P | null {
  try {
    const message: unknown = JSON.parse(said);
    return problem(payload, message, "payload") === null ? (message as P) : null;
  } catch {
    return null;
  }
}

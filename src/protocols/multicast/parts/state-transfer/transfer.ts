/**
 * Tracks which members hold, request and provide a group's state. This knowledge changes only with deliveries at
 * positions in the order, so all members of a view have the same knowledge. Standings are collected again in each view.
 *
 *   (1) a member that wants the state announces it in the order. When this is delivered, members that have not yet
 *   reported their standing in this view do so;
 *   (2) at the first position where a member is known to hold the state, that member becomes the source for all members
 *   that want it: its user returns its state as of that position, which replaces all earlier deliveries;
 *   (3) if all members have reported that they hold no state, one that wants it founds it. Former holders come first,
 *   then the member that has waited longest, because it has received every message that the others received while they
 *   waited;
 *   (4) a member that wants the state requests it in parts. Once it has all of them, it announces in the order that it
 *   holds the state, and receives the state when this is delivered;
 *   (5) if the source reports that it no longer holds the state, or the view changes, the procedure restarts.
 */
import type { Context, NodeId, Protocol } from "../../../../core/protocol.ts";
import {
  beforeWordsOf,
  commandShapes,
  type Entry,
  isOfView,
  MAX_PARTS,
  messageShapes,
  type Place,
  type Standing,
  type Transfer,
} from "./vocabulary.ts";

/** How long to wait for requested parts before requesting them again. */
const REQUEST_MS = 200;

/** The number of parts sent per request. */
const BURST = 8;

const wants = (is: Standing | undefined): boolean => is === "seeking" || is === "returning";

type State = Transfer<unknown>["state"];

/** Whether the node has not made any report in this view. */
const isSilent = ({ spoken, view }: State): boolean => spoken <= beforeWordsOf(view);

/** The position before all others. */
const START: Place = { view: 0, place: 0 };
const here = ({ view, place }: State): Place => ({ view, place });

const isEarlier = (one: Place, other: Place): boolean =>
  one.view < other.view || (one.view === other.view && one.place < other.place);

/** If no member holds the group's state, returns the member whose own state becomes the group's. */
function founderOf({ known }: State, seekers: readonly NodeId[]): NodeId | undefined {
  const returning = seekers.find((node) => known[node]?.is === "returning");
  const sinceOf = (node: NodeId): Place => (known[node] as State["known"][NodeId]).waitingSince;
  const longest = (one: NodeId, other: NodeId): NodeId => (isEarlier(sinceOf(other), sinceOf(one)) ? other : one);
  return returning ?? (seekers.length === 0 ? undefined : seekers.reduce(longest));
}

const nothing = () => ({ place: 0, known: {}, sources: {}, parts: [], snapshots: [] });

/** Whether this node's known standing reflects its user's latest request. */
const isPresent = (state: State, self: NodeId): boolean =>
  state.standing !== "lacking" && (state.known[self]?.number ?? 0) >= state.since;

function give(
  state: State,
  to: NodeId,
  place: number,
  first: number,
  ctx: Pick<Context<Transfer<never>>, "send">,
): void {
  const parts = state.snapshots.find((snapshot) => snapshot.place === place)?.parts ?? [];
  const { view } = state;
  parts.slice(first, first + BURST).forEach((text, n) => {
    ctx.send(to, { type: "part", view, place, part: first + n, count: parts.length, text });
  });
}

/** Discards snapshots that no member is waiting for. */
function forgetGiven(state: State, self: NodeId): void {
  const awaited = new Set(Object.values(state.sources).flatMap(({ from, place }) => (from === self ? [place] : [])));
  state.snapshots = state.snapshots.filter(({ place }) => awaited.has(place));
}

/** Creates the part that requests and sends states. */
export function transfer<P>(begin: "inside" | "outside"): Protocol<Transfer<P>> {
  type Ctx = Context<Transfer<P>>;

  function say(state: State, ctx: Ctx, is: Standing, place = 0): void {
    if (state.membership !== "member") return; // The node announces its request in the next view.
    state.spoken = Math.max(state.spoken, beforeWordsOf(state.view)) + 1;
    const waitingSince = state.waitingSince ?? START;
    ctx.emit({ type: "say", payload: { type: "standing", number: state.spoken, is, place, waitingSince } });
  }

  /**
   * Handles a report. Ignores reports from earlier views, because the sender may have received or founded the state
   * since.
   */
  function hear(state: State, from: NodeId, said: Extract<Entry<P>, { type: "standing" }>, ctx: Ctx): void {
    const { number, is, place, waitingSince } = said;
    if (!isOfView(number, state.view)) return;
    if (place > 0 && state.sources[from]?.place !== place) return; // This state is no longer assigned to the sender.
    state.known[from] = { number, is, waitingSince };
    delete state.sources[from];
    if (from === ctx.self && place > 0) receiveState(state, ctx);
    if (is !== "holding") abandon(state, from, ctx);
    assign(state, ctx);
    if (wants(is) && isSilent(state) && from !== ctx.self) say(state, ctx, state.standing);
  }

  function receiveState(state: State, ctx: Ctx): void {
    const parts = state.parts.splice(0);
    ctx.cancelTimer("request");
    if (!isPresent(state, ctx.self)) return;
    state.standing = "holding";
    ctx.emit({ type: "state", parts });
  }

  /** Removes a source that no longer holds the state. Members that it served need another source. */
  function abandon(state: State, source: NodeId, ctx: Ctx): void {
    for (const [seeker, { from }] of Object.entries(state.sources)) {
      if (from !== source) continue;
      delete state.sources[Number(seeker)];
      if (Number(seeker) === ctx.self) ctx.cancelTimer("request");
    }
    if (source === ctx.self) state.snapshots = [];
  }

  /** Assigns a source, if there is one, to members that want the state. */
  function assign(state: State, ctx: Ctx): void {
    const { members, known, sources } = state;
    let seekers = members.filter((node) => wants(known[node]?.is) && sources[node] === undefined);
    let source = members.find((node) => known[node]?.is === "holding");
    if (source === undefined) {
      if (members.some((node) => known[node] === undefined)) return;
      const founder = founderOf(state, seekers);
      if (founder === undefined) return;
      found(state, founder, ctx);
      source = founder;
      seekers = seekers.filter((node) => node !== founder);
    }
    if (seekers.length === 0) return;
    for (const seeker of seekers) sources[seeker] = { from: source, place: state.place };
    if (seekers.includes(ctx.self)) beginRequests(state, ctx);
    if (source === ctx.self && state.standing === "holding" && isPresent(state, ctx.self)) {
      state.snapshots.push({ place: state.place, parts: null });
      ctx.emit({ type: "wanted", view: state.view, place: state.place });
    }
  }

  function found(state: State, founder: NodeId, ctx: Ctx): void {
    state.known[founder] = { number: 0, waitingSince: START, ...state.known[founder], is: "holding" };
    if (state.standing === "holding" && !state.members.includes(ctx.self)) {
      // The others have founded a new state without this node.
      Object.assign(state, { standing: "returning", waitingSince: here(state) });
      ctx.emit({ type: "waiting" });
    }
    if (founder !== ctx.self || !isPresent(state, ctx.self)) return;
    state.standing = "holding";
    ctx.emit({ type: "founded" });
  }

  function beginRequests(state: State, ctx: Ctx): void {
    state.parts = [];
    if (!isPresent(state, ctx.self)) return; // The user has changed its request, and the node has announced the change.
    if (state.standing === "holding") Object.assign(state, { standing: "seeking", waitingSince: here(state) });
    ctx.emit({ type: "placed" });
    request(state, ctx);
  }

  function request(state: State, ctx: Ctx): void {
    const source = state.sources[ctx.self];
    if (source === undefined) return;
    const { view, parts } = state;
    ctx.send(source.from, { type: "request", view, place: source.place, part: parts.length });
    ctx.setTimer("request", REQUEST_MS);
  }

  const groupHandlers: Pick<Protocol<Transfer<P>>["command"], "block" | "install" | "eject"> = {
    block(state, _command, ctx) {
      state.membership = "changing";
      ctx.emit({ type: "blocked" });
    },
    install(state, { view, members }, ctx) {
      const sorted = members.toSorted((a, b) => a - b);
      // The node may learn of views before it is back in one.
      const membership = members.includes(ctx.self) ? "member" : "changing";
      Object.assign(state, { ...nothing(), view, members: sorted, membership });
      for (const timer of ["request", "repeat"] as const) ctx.cancelTimer(timer);
      ctx.emit({ type: "installed", view, members });
      if (!wants(state.standing)) return;
      state.waitingSince ??= here(state);
      say(state, ctx, state.standing);
    },
    eject(state, _command, ctx) {
      Object.assign(state, { ...nothing(), members: [], membership: "outside", waitingSince: null });
      ctx.cancelTimer("request");
      ctx.emit({ type: "ejected" });
      if (state.standing !== "holding") return;
      state.standing = "returning"; // Others may have applied different messages.
      ctx.emit({ type: "waiting" });
    },
  };

  return {
    name: "state-transfer",
    init: (self, peers) => ({
      standing: "lacking",
      view: 0,
      members: begin === "inside" ? [self, ...peers].sort((a, b) => a - b) : [],
      membership: begin === "inside" ? "member" : "outside",
      spoken: 0,
      since: 0,
      waitingSince: null,
      ...nothing(),
    }),
    receive: {
      request(state, from, { view, place, part }, ctx) {
        const source = state.sources[from];
        if (view !== state.view || source?.from !== ctx.self || source.place !== place) return; // Obsolete.
        give(state, from, place, part, ctx);
      },
      part(state, from, { view, place, part, count, text }, ctx) {
        const source = state.sources[ctx.self];
        // The part comes from an old source.
        if (view !== state.view || source?.from !== from || source.place !== place) return;
        if (part !== state.parts.length || part >= count || count > MAX_PARTS) return; // The part is out of sequence.
        state.parts.push(text);
        if (part + 1 === count) {
          ctx.cancelTimer("request");
          if (wants(state.standing)) say(state, ctx, "holding", place);
        } else if (state.parts.length % BURST === 0) request(state, ctx);
      },
    },
    timeout: {
      request,
      repeat: (state, ctx) => say(state, ctx, state.standing),
    },
    command: {
      deliver(state, { from, payload, id }, ctx) {
        state.place += 1;
        if (payload.type === "message") ctx.emit({ type: "delivered", from, payload: payload.payload, id });
        else {
          hear(state, from, payload, ctx);
          forgetGiven(state, ctx.self);
        }
      },
      ...groupHandlers,
      pass: (_state, { event }, ctx) => ctx.emit(event),
      refuse(_state, _command, ctx) {
        ctx.setTimer("repeat", REQUEST_MS);
      },
      seek(state, _command, ctx) {
        if (state.standing !== "lacking") return;
        state.standing = "seeking";
        state.since = state.spoken + 1;
        state.waitingSince = state.membership === "outside" ? null : here(state);
        say(state, ctx, state.standing);
      },
      lack(state, _command, ctx) {
        if (state.standing === "lacking") return;
        state.standing = "lacking";
        state.snapshots = [];
        ctx.cancelTimer("request");
        if (!isSilent(state)) say(state, ctx, state.standing);
      },
      snapshot(state, { view, place, parts }, ctx) {
        const wanted = state.snapshots.find((snapshot) => snapshot.place === place);
        // No member is waiting for this state any longer.
        if (view !== state.view || wanted === undefined || wanted.parts !== null) return;
        wanted.parts = parts.length > 0 ? parts : [""];
        for (const [seeker, source] of Object.entries(state.sources))
          if (source.from === ctx.self && source.place === place) give(state, Number(seeker), place, 0, ctx);
      },
    },
    shapes: { message: messageShapes, command: commandShapes as never },
    source: "Birman & Joseph, SOSP 1987, §4: state transfer to joining members",
    assumes: ["a total order with views, the same at all nodes that move from one view to the next"],
    properties: [],
    costs: [],
    view: ({ standing, view }) => ({ role: standing, ...(view > 0 ? { term: view } : {}) }),
  };
}

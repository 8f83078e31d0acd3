/**
 * Who holds the state of a group, who wants it, and who gives it. All of that changes only at places of the order, by what is
 * delivered there, so that every member of a view knows it alike; what is known of standings is counted anew in each view.
 *
 *   (1) who wants the state says so in the order; where it is delivered, members that have not yet said in this view how they
 *       stand do so;
 *   (2) at the first place where a member is known to hold, that member is the source of all that want it: its user says its
 *       state as of that place, which replaces all earlier deliveries;
 *   (3) where all members have said that they hold none, one that wants it founds: those that had it before come first, then the
 *       one that has waited longest, because it has received every message that the others received while they waited;
 *   (4) the state goes to who wants it in parts, which it asks for; having all, it says in the order that it holds, and is
 *       given the state where that is delivered;
 *   (5) where the source is known to hold no more, or the view changes, it begins anew.
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

/** Parts that have not arrived after this time are requested again. */
const REQUEST_MS = 200;

/** So many parts come at once. */
const BURST = 8;

const wants = (is: Standing | undefined): boolean => is === "seeking" || is === "returning";

type State = Transfer<unknown>["state"];

/** In this view. */
const isSilent = ({ spoken, view }: State): boolean => spoken <= beforeWordsOf(view);

/** Before every other position. */
const START: Place = { view: 0, place: 0 };
const here = ({ view, place }: State): Place => ({ view, place });

const isEarlier = (one: Place, other: Place): boolean =>
  one.view < other.view || (one.view === other.view && one.place < other.place);

/** If no member has the state: the seeker whose state becomes that of the group. */
function founderOf({ known }: State, seekers: readonly NodeId[]): NodeId | undefined {
  const returning = seekers.find((node) => known[node]?.is === "returning");
  const sinceOf = (node: NodeId): Place => (known[node] as State["known"][NodeId]).waitingSince;
  const longest = (one: NodeId, other: NodeId): NodeId => (isEarlier(sinceOf(other), sinceOf(one)) ? other : one);
  return returning ?? (seekers.length === 0 ? undefined : seekers.reduce(longest));
}

const nothing = () => ({ place: 0, known: {}, sources: {}, parts: [], snapshots: [] });

/** Whether what is known of this node's own standing is what its user wants now, and not what it wanted before. */
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

/** What this node gives, once nobody waits for it, is given no more. */
function forgetGiven(state: State, self: NodeId): void {
  const awaited = new Set(Object.values(state.sources).flatMap(({ from, place }) => (from === self ? [place] : [])));
  state.snapshots = state.snapshots.filter(({ place }) => awaited.has(place));
}

export function transfer<P>(begin: "inside" | "outside"): Protocol<Transfer<P>> {
  type Ctx = Context<Transfer<P>>;

  function say(state: State, ctx: Ctx, is: Standing, place = 0): void {
    if (state.membership !== "member") return; // Who wants the state says so in the next view.
    state.spoken = Math.max(state.spoken, beforeWordsOf(state.view)) + 1;
    const waitingSince = state.waitingSince ?? START;
    ctx.emit({ type: "say", payload: { type: "standing", number: state.spoken, is, place, waitingSince } });
  }

  /** What was said in an earlier view says nothing of this one: its speaker may have got the state since, or founded it. */
  function hear(state: State, from: NodeId, said: Extract<Entry<P>, { type: "standing" }>, ctx: Ctx): void {
    const { number, is, place, waitingSince } = said;
    if (!isOfView(number, state.view)) return;
    if (place > 0 && state.sources[from]?.place !== place) return; // It has got a state for which it was to wait no more.
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

  /** Those whose source it was have none now. */
  function abandon(state: State, source: NodeId, ctx: Ctx): void {
    for (const [seeker, { from }] of Object.entries(state.sources)) {
      if (from !== source) continue;
      delete state.sources[Number(seeker)];
      if (Number(seeker) === ctx.self) ctx.cancelTimer("request");
    }
    if (source === ctx.self) state.snapshots = [];
  }

  /** Gives those that want the state a source, if there can be one. */
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
      Object.assign(state, { standing: "returning", waitingSince: here(state) }); // The others founded a new state without it.
      ctx.emit({ type: "waiting" });
    }
    if (founder !== ctx.self || !isPresent(state, ctx.self)) return;
    state.standing = "holding";
    ctx.emit({ type: "founded" });
  }

  function beginRequests(state: State, ctx: Ctx): void {
    state.parts = [];
    if (!isPresent(state, ctx.self)) return; // Its user has changed its mind, and so it has said.
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
      const membership = members.includes(ctx.self) ? "member" : "changing"; // It may be told of views before it is back in one.
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
      state.standing = "returning"; // What it has applied last, others may not have, or in another order.
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
        if (view !== state.view || source?.from !== ctx.self || source.place !== place) return; // It has another by now, or has it.
        give(state, from, place, part, ctx);
      },
      part(state, from, { view, place, part, count, text }, ctx) {
        const source = state.sources[ctx.self];
        if (view !== state.view || source?.from !== from || source.place !== place) return; // Of a source that it has no more.
        if (part !== state.parts.length || part >= count || count > MAX_PARTS) return; // It has it, or lacks one before it.
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
        if (view !== state.view || wanted === undefined || wanted.parts !== null) return; // Nobody waits for it any more.
        wanted.parts = parts.length > 0 ? parts : [""];
        for (const [seeker, source] of Object.entries(state.sources))
          if (source.from === ctx.self && source.place === place) give(state, Number(seeker), place, 0, ctx);
      },
    },
    shapes: { message: messageShapes, command: commandShapes as never },
    source: "Birman & Joseph, SOSP 1987, §4: state transfer to who joins",
    assumes: ["a total order with views, the same at all who go from one to the next"],
    properties: [],
    costs: [],
    view: ({ standing, view }) => ({ role: standing, ...(view > 0 ? { term: view } : {}) }),
  };
}

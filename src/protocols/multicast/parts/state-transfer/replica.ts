/**
 * A user of state transfer, for the simulator and the checker. It sends messages and applies deliveries. Its state is
 * its founder's name followed by all the messages applied so far, so comparing two states shows whether they have the
 * same history.
 */
import type { NodeId, Property, Protocol, World } from "../../../../core/protocol.ts";
import { list, natural, text } from "../../../../core/shape.ts";
import { composed, type System } from "../../../system.ts";
import { eventually } from "../group.ts";
import { MAX_PART_BYTES, MAX_PARTS } from "./vocabulary.ts";

/** Vocabulary of a user of state transfer. */
export type Replica = {
  state: {
    /** Whether the user wants the state. */
    reads: boolean;
    holds: boolean;
    /** The founder, followed by the applied messages. Empty if the user never had a state. */
    line: string[];
    /** Messages that have been delivered but not yet applied. */
    waiting: string[];
    /** The number of waiting messages that the awaited state already includes. */
    covered: number;
    /**
     * The user's own messages that have been delivered to it since it last began to read, was excluded, or was ejected.
     */
    own: string[];
    sent: number;
    founded: number;
    view: number;
    members: NodeId[];
    membership: "member" | "outside";
  };
  command: /** Starts or stops reading. */
    | { type: "read" }
    | { type: "stop" }
    /** Sends one message. */
    | { type: "send" }
    // Commands from the transfer.
    | { type: "delivered"; payload: string }
    | { type: "waiting" }
    | { type: "placed" }
    | { type: "state"; parts: string[] }
    | { type: "founded" }
    | { type: "wanted"; view: number; place: number }
    | { type: "install"; view: number; members: NodeId[] }
    | { type: "eject" };
  event:
    | { type: "sent"; payload: string }
    | { type: "seeks" | "lacks" }
    | { type: "gave"; view: number; place: number; parts: string[] }
    /** The user has continued to the next view. `line` is its state at the end of the previous view. */
    | { type: "passed"; view: number; line: string[] };
};

type State = Replica["state"];

/** The number of lines per part, which is small so that states consist of several parts. */
const LINES_A_PART = 2;

/** Creates the user. @param begin the same as for its multicast */
export function replica(begin: "inside" | "outside" = "outside"): Protocol<Replica> {
  function apply(state: State): void {
    state.line.push(...state.waiting.splice(0));
  }

  return {
    name: "replica",
    init: () => ({
      reads: false,
      holds: false,
      line: [],
      waiting: [],
      covered: 0,
      own: [],
      sent: 0,
      founded: 0,
      view: 0,
      members: [],
      membership: begin === "inside" ? "member" : "outside",
    }),
    command: {
      read(state, _command, ctx) {
        if (state.reads) return;
        Object.assign(state, { reads: true, line: [], waiting: [], covered: 0, own: [] });
        ctx.emit({ type: "seeks" });
      },
      stop(state, _command, ctx) {
        Object.assign(state, { reads: false, holds: false, line: [], waiting: [], covered: 0, own: [] });
        ctx.emit({ type: "lacks" });
      },
      send(state, _command, ctx) {
        state.sent += 1;
        ctx.emit({ type: "sent", payload: `${ctx.self}.${state.sent}/${state.view}` });
      },
      delivered(state, { payload }, ctx) {
        if (!state.reads) return;
        state.waiting.push(payload);
        if (payload.startsWith(`${ctx.self}.`)) state.own.push(payload);
        if (state.holds) apply(state);
      },
      waiting(state) {
        Object.assign(state, { holds: false, own: [] });
      },
      placed(state) {
        Object.assign(state, { holds: false, covered: state.waiting.length });
      },
      state(state, { parts }) {
        state.waiting.splice(0, state.covered);
        state.line = JSON.parse(parts.join("")) as string[];
        state.holds = true;
        apply(state);
      },
      founded(state, _command, ctx) {
        state.founded += 1;
        state.line.unshift(`by ${ctx.self}.${state.founded}/${state.view}`);
        state.holds = true;
        apply(state);
      },
      wanted({ line }, { view, place }, ctx) {
        const text = JSON.stringify(line);
        const size = Math.ceil(text.length / Math.max(1, Math.ceil(line.length / LINES_A_PART)));
        const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, n) =>
          text.slice(n * size, (n + 1) * size),
        );
        ctx.emit({ type: "gave", view, place, parts });
      },
      install(state, { view, members }, ctx) {
        if (state.holds && state.membership === "member")
          ctx.emit({ type: "passed", view: state.view, line: [...state.line] });
        Object.assign(state, { view, members, membership: "member" });
      },
      eject(state) {
        Object.assign(state, { membership: "outside", holds: false, own: [] });
      },
    },
    shapes: {
      command: {
        read: {},
        stop: {},
        send: {},
        delivered: { payload: text(MAX_PART_BYTES) },
        waiting: {},
        placed: {},
        state: { parts: list<string>(text(MAX_PART_BYTES), MAX_PARTS) },
        founded: {},
        wanted: { view: natural, place: natural },
        install: { view: natural, members: list(natural, 1_000) },
        eject: {},
      },
    },
    source: "Schneider, ACM Computing Surveys 1990",
    assumes: [],
    properties: [oneLine, samePast, nothingTwice, nothingLost, everybodyHolds],
    costs: [],
    view: ({ holds, reads }) => ({ role: holds ? "holding" : reads ? "waiting" : "away" }),
  };
}

const isPrefix = (one: readonly string[], other: readonly string[]): boolean =>
  one.length <= other.length ? one.every((each, place) => each === other[place]) : isPrefix(other, one);

/**
 * Checks that, of any two states in a view, one is a prefix of the other. A state begins with its founder, so this also
 * implies that there is a single founder.
 */
const oneLine: Property<Replica> = {
  name: "one state",
  claim:
    "if two members of a view hold the state, one member's state equals the current or an earlier state of the other",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    alive.every((node, i) =>
      alive.slice(i + 1).every((other) => {
        const [one, two] = [state(node), state(other)];
        const areTogether = one.holds && two.holds && one.view === two.view;
        const areIn = one.membership === "member" && two.membership === "member";
        return !(areTogether && areIn) || isPrefix(one.line, two.line);
      }),
    ),
};

type Passed = Extract<Replica["event"], { type: "passed" }>;

const samePast: Property<Replica> = {
  name: "one state at each place",
  claim:
    "all nodes that carried their state from one view to the next, including nodes that later crashed, had the same state",
  when: "always",
  history: {
    empty: [] as readonly Passed[],
    after: (before, event) => (event.type === "passed" ? [...(before as readonly Passed[]), event] : before),
  },
  holds: ({ nodes, history }) => {
    const atEnd = new Map<number, string>();
    return nodes.every((node) =>
      history<readonly Passed[]>(node).every(({ view, line }) => {
        const text = line.join();
        if (!atEnd.has(view)) atEnd.set(view, text);
        return atEnd.get(view) === text;
      }),
    );
  },
};

const nothingTwice: Property<Replica> = {
  name: "nothing twice",
  claim: "no state contains a message twice",
  when: "always",
  holds: ({ alive, state }) => alive.every((node) => new Set(state(node).line).size === state(node).line.length),
};

/**
 * Checks that no state is lost. A returning member may found a new state from its old one. The new state then has two
 * founders and lacks messages that other members received in the meantime.
 */
const nothingLost: Property<Replica> = {
  name: "nothing lost",
  claim: "a state contains all messages of its reader that were delivered, unless a returning member founded it",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { holds, line, own } = state(node);
      const isOfReturned = line.filter((each) => each.startsWith("by ")).length > 1;
      return !holds || isOfReturned || own.every((each) => line.includes(each));
    }),
};

const everybodyHolds: Property<Replica> = eventually(
  "state reached",
  "a member that wants the state eventually receives or founds it",
  ({ state }, node) => !state(node).reads || state(node).holds,
);

/**
 * Adds a replica to every node of a system whose algorithm is its `multicast` part.
 * @param made creates the replica. Tests pass a faulty one.
 */
export function withReplica({ parts, wires, algorithm }: System, made: () => Protocol<Replica> = replica) {
  return composed({
    parts: { replica: () => made(), ...parts },
    wires: {
      ...wires,
      replica: {
        sent: ({ payload }: { payload: string }, give: Give) => give("multicast", { type: "send", payload }),
        seeks: (_event: object, give: Give) => give("multicast", { type: "seek" }),
        lacks: (_event: object, give: Give) => give("multicast", { type: "lack" }),
        gave: (event: object, give: Give) => give("multicast", { ...event, type: "snapshot" }),
      },
      multicast: {
        ...(wires as { multicast?: object }).multicast,
        delivered: ({ payload }: { payload: string }, give: Give) => give("replica", { type: "delivered", payload }),
        ...Object.fromEntries(
          ["waiting", "placed", "state", "founded", "wanted"].map((type) => [
            type,
            (event: object, give: Give) => give("replica", { ...event, type }),
          ]),
        ),
        installed: (event: object, give: Give) => give("replica", { ...event, type: "install" }),
        ejected: (_event: object, give: Give) => give("replica", { type: "eject" }),
      },
    } as never,
    algorithm,
  });
}

type Give = (part: string, command: object) => void;

/**
 * Raymond: the nodes form a tree, and each node knows which neighbor leads to the privilege. Requests travel toward the
 * privilege, which comes back the same way. Raymond, "A Tree-Based Algorithm for Distributed Mutual Exclusion", ACM
 * TOCS 7(1), 1989.
 *
 * Assumes   no crashes; reliable links, in any order; no node stays inside forever.
 * Safety    ME1: at most one node is inside. Not ME3: each node serves its neighbors in FIFO order, but no global order
 *           is guaranteed.
 * Liveness  ME2: every request is granted.
 * Cost      2d messages per entry, where d is the distance to the privilege: none at the node that has it, and twice
 *           the diameter at worst. The worst case is 4 on a star, 4·log2((N + 1)/2) on a full binary tree, and 2(N − 1)
 *           on a line. If all nodes always want to enter, the cost is 4(N − 1)/N. A client waits 2d message delays to
 *           enter; a hand-over takes d.
 *
 * Other texts call the paper's PRIVILEGE the token. Here, a token is an entry's fencing token. As an addition to the
 * paper, the privilege carries the last fencing token. It also increases with each hand-over, so that duplicates of the
 * privilege can be detected.
 */
import type { Context, NodeId, Property, Protocol } from "../../core/protocol.ts";
import { natural, oneOf } from "../../core/shape.ts";
import { type OptionsOf, option, optionTable } from "../options.ts";
import { mutexProperties, type Section } from "./family/workload.ts";

/** Vocabulary of Raymond's algorithm. */
export type Raymond = {
  state: {
    section: Section;
    /** HOLDER: the neighbor on the way to the privilege, or the node itself if it has the privilege. */
    holder: NodeId;
    /** REQUEST_Q: the requesting neighbors and the node itself, in FIFO order. */
    queue: NodeId[];
    /** ASKED: whether this node has sent a request to its `holder`. */
    asked: boolean;
    /** The highest token that this node has seen. */
    token: number;
  };
  message: { type: "request" } | { type: "privilege"; token: number };
  /** `enter` is ignored unless the section is `released`; `exit` is ignored unless it is `held`. */
  command: { type: "enter" } | { type: "exit" };
  /** The token increases with every entry. A resource that remembers the highest token can reject a stale holder. */
  event: { type: "entered"; token: number } | { type: "exited" };
};

type State = Raymond["state"];
type Ctx = Context<Raymond>;

const raymondOptions = optionTable("raymond", {
  tree: option(
    oneOf("binary", "star", "line"),
    "binary",
    "how the nodes, by ascending id, form a tree whose root starts with the privilege: a binary tree, a star or a chain",
  ),
});

/** Options of `raymond()`. */
export type RaymondOptions = OptionsOf<typeof raymondOptions>;
/** The shape of the tree, as set by the `tree` option. */
export type Tree = RaymondOptions["tree"];

/** Creates Raymond's algorithm. @throws UsageError if an option is unknown or out of range. */
export function raymond(given?: Partial<RaymondOptions>): Protocol<Raymond> {
  const { tree } = raymondOptions.settle(given);
  return {
    name: "raymond",
    init(self, peers) {
      const nodes = [self, ...peers].sort((a, b) => a - b);
      const parent = nodes[parentOf[tree](nodes.indexOf(self))] ?? self;
      return { section: "released", holder: parent, queue: [], asked: false, token: 0 };
    },
    receive: {
      request(state, from, _message, ctx) {
        if (state.queue.includes(from)) return; // A duplicate: a neighbor sends one request, then waits.
        state.queue.push(from);
        assignPrivilege(state, ctx);
        makeRequest(state, ctx);
      },
      privilege(state, _from, { token }, ctx) {
        if (token <= state.token) return; // A duplicate: the privilege has already been here with this number.
        state.token = token;
        state.holder = ctx.self;
        assignPrivilege(state, ctx);
        makeRequest(state, ctx);
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        state.section = "wanted";
        state.queue.push(ctx.self);
        assignPrivilege(state, ctx);
        makeRequest(state, ctx);
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // The node is not inside.
        state.section = "released";
        ctx.emit({ type: "exited" });
        assignPrivilege(state, ctx);
        makeRequest(state, ctx);
      },
    },
    shapes: { message: { request: {}, privilege: { token: natural } }, command: { enter: {}, exit: {} } },
    source: "Raymond, ACM TOCS 7(1), 1989",
    assumes: ["no crashes", "reliable links", "no node stays inside forever"],
    properties: [...mutexProperties<Raymond>(({ section }) => section), onePrivilege],
    costs: [
      { when: "one entry and exit of the node that has the privilege", messages: () => 0 },
      {
        when: "one entry and exit of a node as far from the privilege as the tree allows",
        messages: (nodes) => 2 * diameterOf[tree](nodes),
      },
    ],
    view: ({ section, holder }, self) => ({ role: holder === self ? `${section}, with the privilege` : section }),
  };
}

/** For each kind of tree, returns the index of a node's parent. Out of range for the root. */
const parentOf: Readonly<Record<Tree, (place: number) => number>> = {
  binary: (place) => Math.floor((place - 1) / 2),
  star: (place) => (place === 0 ? -1 : 0),
  line: (place) => place - 1,
};

/** For each kind of tree, returns the longest distance between two nodes. */
const diameterOf: Readonly<Record<Tree, (nodes: number) => number>> = {
  binary(nodes) {
    const depth = Math.floor(Math.log2(nodes));
    // The right half may be shallower than the left.
    return nodes === 1 ? 0 : 2 * depth - (nodes < 3 * 2 ** (depth - 1) ? 1 : 0);
  },
  star: (nodes) => Math.min(nodes - 1, 2),
  line: (nodes) => nodes - 1,
};

function assignPrivilege(state: State, ctx: Ctx): void {
  if (state.holder !== ctx.self || state.section === "held") return;
  const next = state.queue.shift();
  if (next === undefined) return;
  state.asked = false;
  state.token += 1;
  if (next === ctx.self) return enter(state, ctx);
  state.holder = next;
  ctx.send(next, { type: "privilege", token: state.token });
}

function makeRequest(state: State, ctx: Ctx): void {
  if (state.holder === ctx.self || state.queue.length === 0 || state.asked) return;
  state.asked = true;
  ctx.send(state.holder, { type: "request" });
}

function enter(state: State, ctx: Ctx): void {
  state.section = "held";
  ctx.emit({ type: "entered", token: state.token });
}

const onePrivilege: Property<Raymond> = {
  name: "one privilege",
  claim: "at most one node has the privilege",
  when: "always",
  holds: ({ alive, state }) => alive.filter((node) => state(node).holder === node).length <= 1,
};

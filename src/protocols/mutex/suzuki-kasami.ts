/**
 * Suzuki–Kasami: a node that wants to enter asks all nodes for the privilege. The node that has the privilege forwards
 * it as soon as the node is outside. Suzuki & Kasami, "A Distributed Mutual Exclusion Algorithm", ACM TOCS 3(4), 1985.
 *
 * Assumes   no crashes; reliable links, in any order; no node stays inside forever.
 * Safety    ME1: at most one node is inside. Not ME3: requests are granted in the order they reach the privilege.
 *           Requests that arrive while a node is inside are granted in order of node id.
 * Liveness  ME2: every request is eventually granted.
 * Cost      N messages per entry (N − 1 requests and the privilege), or none if the node already has the privilege. A
 *           client waits 2 message delays to enter, or none; a hand-over takes 1.
 *
 * Other texts call the paper's PRIVILEGE the token. Here, a token is an entry's fencing token. To provide it, the
 * privilege counts entries, which is an addition to the paper.
 */
import type { PerNode } from "../../core/per-node.ts";
import type { Context, NodeId, Property, Protocol } from "../../core/protocol.ts";
import { list, natural, perNode } from "../../core/shape.ts";
import { requireNoOptions } from "../options.ts";
import { mutexProperties, type Section } from "./family/workload.ts";

/** Vocabulary of Suzuki–Kasami. */
export type SuzukiKasami = {
  state: {
    section: Section;
    /** RN: the highest known request number for each node. Nodes without requests are omitted. */
    rn: PerNode<number>;
    /** The privilege. Null while a different node has it. */
    privilege: Privilege | null;
    /** The token of this node's last entry, or 0 before the first. */
    token: number;
  };
  message: { type: "request"; n: number } | ({ type: "privilege" } & Privilege);
  /** `enter` is ignored unless the section is `released`; `exit` is ignored unless it is `held`. */
  command: { type: "enter" } | { type: "exit" };
  /** The token increases with every entry. A resource that remembers the highest token can reject a stale holder. */
  event: { type: "entered"; token: number } | { type: "exited" };
};

interface Privilege {
  /** Q: the nodes that will get the privilege next, in FIFO order. */
  queue: NodeId[];
  /** LN: the number of each node's last granted request. */
  ln: PerNode<number>;
  /** The number of entries so far. */
  entries: number;
}

type State = SuzukiKasami["state"];
type Ctx = Context<SuzukiKasami>;

const MAX_NODES = 10_000;

/** Creates the Suzuki–Kasami algorithm. @throws UsageError if any option is given, because there are none. */
export function suzukiKasami(given?: Record<never, never>): Protocol<SuzukiKasami> {
  requireNoOptions("suzuki-kasami", given);
  return {
    name: "suzuki-kasami",
    init: (self, peers) => ({
      section: "released",
      rn: {},
      privilege: peers.every((peer) => self < peer) ? { queue: [], ln: {}, entries: 0 } : null,
      token: 0,
    }),
    receive: {
      request(state, from, { n }, ctx) {
        state.rn[from] = Math.max(numberOf(state.rn, from), n);
        const { section, privilege } = state;
        if (section === "released" && privilege !== null && isWaiting(from, state, privilege))
          pass(privilege, from, state, ctx);
      },
      privilege(state, _from, { queue, ln, entries }, ctx) {
        if (isDuplicate(entries, state)) return;
        // Only a Byzantine node queues an unknown node.
        state.privilege = { queue: queue.filter((node) => ctx.peers.includes(node)), ln: { ...ln }, entries };
        if (state.section === "wanted") enter(state.privilege, state, ctx);
        else grantNext(state.privilege, state, ctx); // The node has crashed and lost its request.
      },
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        if (state.privilege !== null) return enter(state.privilege, state, ctx);
        state.section = "wanted";
        const n = numberOf(state.rn, ctx.self) + 1;
        state.rn[ctx.self] = n;
        ctx.broadcast({ type: "request", n });
      },
      exit(state, _command, ctx) {
        const { section, privilege } = state;
        if (section !== "held" || privilege === null) return; // The node is not inside.
        state.section = "released";
        ctx.emit({ type: "exited" });
        privilege.ln[ctx.self] = numberOf(state.rn, ctx.self);
        grantNext(privilege, state, ctx);
      },
    },
    shapes: {
      message: {
        request: { n: natural },
        privilege: { queue: list(natural, MAX_NODES), ln: perNode(natural, MAX_NODES), entries: natural },
      },
      command: { enter: {}, exit: {} },
    },
    source: "Suzuki & Kasami, ACM TOCS 3(4), 1985",
    assumes: ["no crashes", "reliable links", "no node stays inside forever"],
    properties: [...mutexProperties<SuzukiKasami>(({ section }) => section), onePrivilege],
    costs: [
      { when: "one entry and exit of a node without the privilege", messages: (nodes) => (nodes === 1 ? 0 : nodes) },
      { when: "one entry and exit of the node that has the privilege", messages: () => 0 },
    ],
    view: ({ section, privilege }) => ({ role: privilege === null ? section : `${section}, with the privilege` }),
  };
}

const numberOf = (numbers: PerNode<number>, node: NodeId): number => numbers[node] ?? 0;

/** Whether RN[j] = LN[j] + 1. Requests that have been granted, and duplicates, have lower numbers. */
const isWaiting = (node: NodeId, { rn }: State, { ln }: Privilege): boolean =>
  numberOf(rn, node) === numberOf(ln, node) + 1;

/**
 * Whether the privilege is a duplicate. A node enters as soon as it has the privilege, so an older copy of the
 * privilege has counted fewer entries than the node's token.
 */
const isDuplicate = (entries: number, { token }: State): boolean => entries < token;

function enter(privilege: Privilege, state: State, ctx: Ctx): void {
  state.section = "held";
  privilege.entries += 1;
  state.token = privilege.entries;
  ctx.emit({ type: "entered", token: state.token });
}

function grantNext(privilege: Privilege, state: State, ctx: Ctx): void {
  const { queue } = privilege;
  queue.push(...ctx.peers.filter((peer) => !queue.includes(peer) && isWaiting(peer, state, privilege)));
  const next = queue.shift();
  if (next !== undefined) pass(privilege, next, state, ctx);
}

function pass(privilege: Privilege, to: NodeId, state: State, ctx: Ctx): void {
  state.privilege = null;
  ctx.send(to, { type: "privilege", ...privilege });
}

const onePrivilege: Property<SuzukiKasami> = {
  name: "one privilege",
  claim: "at most one node has the privilege",
  when: "always",
  holds: ({ alive, state }) => alive.filter((node) => state(node).privilege !== null).length <= 1,
};

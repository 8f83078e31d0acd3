/**
 * Token ring: a token circulates on the ring, and only the node that has it may be inside. Le Lann, "Distributed
 * Systems: Towards a Formal Approach", IFIP 1977; terms of Coulouris et al. §15.2.
 *
 * Assumes   no crashes; reliable links; all nodes agree on the ring; no node stays inside forever.
 * Safety    ME1: at most one node is inside. Not ME3: entries follow the order of the ring.
 * Liveness  ME2: every request is eventually granted.
 * Cost      0 … N messages to enter, and 1 … N − 1 to hand over (N if the last holder itself re-enters). Idle nodes
 *           keep passing the token on, with one message each time, even if no node wants to enter.
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { Context, NodeId, Property, Protocol } from "../../core/protocol.ts";
import { natural } from "../../core/shape.ts";
import { nodeIds, type OptionsOf, option, optionTable, positive } from "../options.ts";
import { mutexProperties, type Section } from "./family/workload.ts";

/** Vocabulary of the token ring. */
export type TokenRing = {
  state: {
    section: Section;
    /** The clockwise neighbor. */
    next: NodeId;
    /** While this node has the token, the number of entries so far. Null while a different node has it. */
    token: number | null;
  };
  message: { type: "token"; entries: number };
  /** Expires when it is time for an idle holder to pass the token on. */
  timer: "pass";
  /** `enter` is ignored unless the section is `released`; `exit` is ignored unless it is `held`. */
  command: { type: "enter" } | { type: "exit" };
  /** The token increases with every entry. A resource that remembers the highest token can reject a stale holder. */
  event: { type: "entered"; token: number } | { type: "exited" };
};

/**
 * The ring's options. With the default of 5 ms, an idle ring sends 200 messages per second, which does not saturate the
 * network.
 */
const tokenRingOptions = optionTable("token-ring", {
  ring: option(nodeIds(10_000), [], "every node once, clockwise; if empty, in ascending order of id"),
  idleMs: positive(5, "how long an idle holder keeps the token"),
});

/** Options of `tokenRing()`. */
export type TokenRingOptions = OptionsOf<typeof tokenRingOptions>;

type State = TokenRing["state"];
type Ctx = Context<TokenRing>;

/**
 * Creates the token ring.
 * @throws UsageError if an option is unknown or out of range, or at `init` if the ring does not list every node once.
 */
export function tokenRing(given?: Partial<TokenRingOptions>): Protocol<TokenRing> {
  const { ring, idleMs } = tokenRingOptions.settle(given);

  function clockwise(self: NodeId, peers: readonly NodeId[]): readonly NodeId[] {
    const nodes = [...peers, self].sort((a, b) => a - b);
    if (ring.length === 0) return nodes;
    if (ring.length === nodes.length && nodes.every((node) => ring.includes(node))) return ring;
    throw new UsageError("bad-option", unexpected("token-ring.ring", "every node once", ring));
  }

  function take(entries: number, state: State, ctx: Ctx): void {
    state.token = entries;
    if (state.section === "wanted") enter(state, entries, ctx);
    else ctx.setTimer("pass", idleMs);
  }

  function enter(state: State, entries: number, ctx: Ctx): void {
    ctx.cancelTimer("pass");
    state.section = "held";
    state.token = entries + 1;
    ctx.emit({ type: "entered", token: entries + 1 });
  }

  function pass(state: State, ctx: Ctx): void {
    if (state.token === null || state.next === ctx.self) return; // A lone node keeps the token.
    ctx.send(state.next, { type: "token", entries: state.token });
    state.token = null;
  }

  return {
    name: "token-ring",
    init(self, peers) {
      const nodes = clockwise(self, peers);
      const place = nodes.indexOf(self);
      return { section: "released", next: nodes[(place + 1) % nodes.length] as NodeId, token: place === 0 ? 0 : null };
    },
    start(state, ctx) {
      if (state.token !== null) ctx.setTimer("pass", idleMs);
    },
    receive: { token: (state, _from, { entries }, ctx) => take(entries, state, ctx) },
    timeout: { pass },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        state.section = "wanted";
        if (state.token !== null) enter(state, state.token, ctx);
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // The node is not inside.
        state.section = "released";
        ctx.emit({ type: "exited" });
        pass(state, ctx);
      },
    },
    shapes: { message: { token: { entries: natural } }, command: { enter: {}, exit: {} } },
    source: "Le Lann, IFIP 1977; Coulouris et al. §15.2",
    assumes: ["no crashes", "reliable links", "all nodes agree on the ring", "no node stays inside forever"],
    properties,
    costs: [{ when: "one round of the token", messages: (nodes) => (nodes === 1 ? 0 : nodes) }],
    view: ({ section, token }) => ({ role: token === null ? section : `${section}, with the token` }),
  };
}

const properties: readonly Property<TokenRing>[] = [
  ...mutexProperties<TokenRing>(({ section }) => section, ["pass"]),
  {
    name: "one token",
    claim: "at most one node has the token",
    when: "always",
    holds: ({ alive, state }) => alive.filter((node) => state(node).token !== null).length <= 1,
  },
];

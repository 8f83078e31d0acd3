/**
 * Central server: one node grants permission to enter, one request at a time. Coulouris et al. §15.2. This is the
 * simplest algorithm, and the basic design of most lock services.
 *
 * Assumes   no crashes; reliable links, in any order; no node stays inside forever.
 * Safety    ME1: at most one node is inside. Not ME3: requests are granted in the order they arrive at the server, not
 *           in happened-before order.
 * Liveness  ME2: every request is eventually granted.
 * Cost      3 messages per entry (request, grant and release), none for the server itself. A client waits 2 message
 *           delays to enter; a hand-over also takes 2.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { natural, nullable } from "../../core/shape.ts";
import { type OptionsOf, option, optionTable } from "../options.ts";
import { mutexProperties, type Section } from "./family/workload.ts";

/** Vocabulary of the central server. */
export type CentralServer = {
  state: {
    section: Section;
    /** The token of the last grant to this node, or 0 before the first. */
    token: number;
    server: NodeId;
    /** The server's state. Null at every other node. */
    service: Service | null;
  };
  message: { type: "request" } | { type: "grant"; token: number } | { type: "release"; token: number };
  /** `enter` is ignored unless the section is `released`; `exit` is ignored unless it is `held`. */
  command: { type: "enter" } | { type: "exit" };
  /** The token increases with every grant. A resource that remembers the highest token can reject a stale holder. */
  event: { type: "entered"; token: number } | { type: "exited" };
};

interface Service {
  holder: NodeId | null;
  /** Waiting nodes in FIFO order. */
  queue: NodeId[];
  /** The number of grants so far. */
  grants: number;
}

const centralServerOptions = optionTable("central-server", {
  server: option(nullable(natural), null, "the server node; `null`: the node with the lowest id"),
});

/** Options of `centralServer()`. */
export type CentralServerOptions = OptionsOf<typeof centralServerOptions>;

type State = CentralServer["state"];
type Ctx = Context<CentralServer>;

/** Creates the central server. @throws UsageError if an option is unknown or out of range. */
export function centralServer(given?: Partial<CentralServerOptions>): Protocol<CentralServer> {
  const { server } = centralServerOptions.settle(given);

  function serve(service: Service, state: State, ctx: Ctx): void {
    if (service.holder !== null) return;
    const next = service.queue.shift();
    if (next === undefined) return;
    service.holder = next;
    service.grants += 1;
    if (next === ctx.self) enter(state, service.grants, ctx);
    else ctx.send(next, { type: "grant", token: service.grants });
  }

  function request(from: NodeId, state: State, ctx: Ctx): void {
    const { service } = state;
    // The request was meant for a different node, or is a duplicate.
    if (service === null || service.queue.includes(from)) return;
    service.queue.push(from);
    serve(service, state, ctx);
  }

  function release(from: NodeId, token: number, state: State, ctx: Ctx): void {
    const { service } = state;
    // The release was meant for a different node, or is a duplicate.
    if (service === null || service.holder !== from || service.grants !== token) return;
    service.holder = null;
    serve(service, state, ctx);
  }

  function enter(state: State, token: number, ctx: Ctx): void {
    state.section = "held";
    state.token = token;
    ctx.emit({ type: "entered", token });
  }

  return {
    name: "central-server",
    init(self, peers) {
      const serving = server ?? Math.min(self, ...peers);
      return {
        section: "released",
        token: 0,
        server: serving,
        service: serving === self ? { holder: null, queue: [], grants: 0 } : null,
      };
    },
    receive: {
      request: (state, from, _message, ctx) => request(from, state, ctx),
      grant(state, _from, { token }, ctx) {
        if (token <= state.token) return; // A duplicate.
        if (state.section === "wanted") return enter(state, token, ctx);
        state.token = token; // The grant answers a duplicate request, so it is not needed.
        ctx.send(state.server, { type: "release", token });
      },
      release: (state, from, { token }, ctx) => release(from, token, state, ctx),
    },
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        state.section = "wanted";
        if (state.server === ctx.self) request(ctx.self, state, ctx);
        else ctx.send(state.server, { type: "request" });
      },
      exit(state, _command, ctx) {
        if (state.section !== "held") return; // The node is not inside.
        state.section = "released";
        ctx.emit({ type: "exited" });
        if (state.server === ctx.self) release(ctx.self, state.token, state, ctx);
        else ctx.send(state.server, { type: "release", token: state.token });
      },
    },
    shapes: {
      message: { request: {}, grant: { token: natural }, release: { token: natural } },
      command: { enter: {}, exit: {} },
    },
    source: "Coulouris et al. §15.2",
    assumes: ["no crashes", "reliable links", "no node stays inside forever"],
    properties: mutexProperties(({ section }) => section),
    costs: [{ when: "one entry and exit of a node other than the server", messages: () => 3 }],
    view: ({ section, service }) => ({ role: service === null ? section : `${section}, serving` }),
  };
}

/**
 * A central server that is chosen by an election: any node can serve, and a change of server does not interrupt a node
 * that is inside. This is `elected-server.ts` without the election. The election's outcome arrives as commands, so one
 * election can serve any number of locks.
 *
 * A permission is a lease. A node that requests or renews it starts a timer when it *sends* the message. If the reply
 * names that message, the node holds the lease until the timer expires. The server reclaims the permission only after a
 * longer time without messages from the holder, counted from when it *received* the last one. Therefore, no delay can
 * make two nodes hold the lease at once.
 *
 * A new server may not know which node holds a grant from its predecessor. Before it grants anything, it asks all nodes
 * or waits until any such grant has expired. A node that knows the server's epoch ignores servers with lower epochs.
 */
import type { NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { natural, real, struct } from "../../../core/shape.ts";
import { boundMs, type LeaseTimer, leaseOptions, leaseTimer, requireLease } from "../../leases.ts";
import { include } from "../../node-set.ts";
import { type OptionsOf, optionTable } from "../../options.ts";
import { eachOnce, grantedTokens, mutexProperties } from "../family/workload.ts";
import { type Ctx, type LockService, type RequestId, type State, serverHandlers } from "./server.ts";

const requestId = struct<RequestId>({ run: natural, request: natural, round: natural });

const properties: readonly Property<LockService>[] = [
  ...mutexProperties<LockService>(({ section }) => section, ["renew", "reclaim", "recall"]),
  {
    name: "tokens are unique",
    claim: "no two entries had the same token, including entries by crashed nodes",
    when: "always",
    history: grantedTokens,
    holds: eachOnce(),
  },
];

const declarations: Pick<Protocol<LockService>, "shapes" | "source" | "assumes" | "properties" | "costs" | "view"> = {
  shapes: {
    message: {
      request: { epoch: natural, requestId },
      grant: { epoch: natural, token: natural, requestId },
      renew: { epoch: natural, token: natural, requestId },
      renewed: { token: natural, requestId },
      release: { epoch: natural, token: natural },
      withdraw: { epoch: natural, requestId },
      recall: { epoch: natural },
      empty: { epoch: natural },
    },
    command: {
      enter: {},
      exit: {},
      elected: { leader: natural, epoch: natural },
      deposed: { epoch: natural },
      suspect: { node: natural },
      resume: { token: natural, servedMs: real },
      depart: {},
    },
    record: { run: { run: natural } },
  },
  source: "Coulouris et al. §15.2; Gray & Cheriton, SOSP 1989",
  assumes: [
    "journals are kept",
    "for ME2: eventually a live, connected majority",
    "for ME1: clock rates within the drift, and no paused nodes",
  ],
  properties,
  costs: [{ when: "one entry and exit of a node other than the server, within renewMs", messages: () => 3 }],
  view: ({ section, server, service, epoch }) => ({
    role: service === null ? section : `${section}, serving`,
    leader: server,
    term: epoch,
  }),
};

/** The lease options. A lease lasts longer than a change of server, which takes epoch-bully at most 0.7 s. */
const lockServiceOptions = optionTable("elected-server", leaseOptions(1_000, 200), requireLease);

/** Options of `lockService()`. */
export type LockServiceOptions = OptionsOf<typeof lockServiceOptions>;

type Message = LockService["message"];
type Said<T extends Message["type"]> = Extract<Message, { type: T }>;

/** Creates the lock service. @throws UsageError if an option is unknown or out of range. */
export function lockService(given?: Partial<LockServiceOptions>): Protocol<LockService> {
  const { leaseMs, renewMs, drift } = lockServiceOptions.settle(given);
  const reclaimMs = boundMs(leaseMs, drift);
  const serving = serverHandlers({ renewMs, reclaimMs, tell });

  /** Sends a message. Messages from a node to itself are handled directly, without sending them. */
  function tell(to: NodeId, message: Message, state: State, ctx: Ctx): void {
    if (to === ctx.self) hear(state, ctx.self, message, ctx);
    else ctx.send(to, message);
  }

  function hear(state: State, from: NodeId, message: Message, ctx: Ctx): void {
    if (message.type === "grant") return granted(message, state, ctx);
    if (message.type === "renewed") return renewed(message, state, ctx);
    if (message.type === "recall") return recalled(from, message, state, ctx);
    return serving.hear(from, message, state, ctx);
  }

  /** Starts a lease, which counts from now if a server answers the message that follows. */
  function nextRound(state: State, ctx: Ctx): void {
    state.requestId.round += 1;
    const timer = leaseTimer(state.requestId.round);
    ctx.setTimer(timer, leaseMs);
    if (!state.running.includes(timer)) state.running.push(timer);
    state.running.sort();
  }

  function ask(state: State, ctx: Ctx): void {
    const { server, epoch } = state;
    ctx.setTimer("renew", renewMs);
    if (server === null) return; // The node sends the request as soon as it learns of a server.
    nextRound(state, ctx);
    tell(server, { type: "request", epoch, requestId: { ...state.requestId } }, state, ctx);
  }

  /** Starts the next round, or resends an unconfirmed one, whose lease still counts from when it was first sent. */
  function renew(state: State, ctx: Ctx): void {
    const { server, epoch, token } = state;
    ctx.setTimer("renew", renewMs);
    if (server === null) return;
    if (state.confirmed === state.requestId.round) nextRound(state, ctx);
    tell(server, { type: "renew", epoch, token, requestId: { ...state.requestId } }, state, ctx);
  }

  function askOrRenew(state: State, ctx: Ctx): void {
    if (state.section === "wanted") ask(state, ctx);
    else if (state.section === "held") renew(state, ctx);
  }

  function granted({ epoch, token, requestId }: Said<"grant">, state: State, ctx: Ctx): void {
    if (epoch !== state.epoch || state.server === null) return; // A grant from an earlier server.
    const isMine = requestId.run === state.requestId.run && requestId.request === state.requestId.request;
    if (isMine && state.section === "held") return renewed({ type: "renewed", token, requestId }, state, ctx);
    if (!isMine || state.section === "released")
      return tell(state.server, { type: "release", epoch, token }, state, ctx); // The request is no longer pending.
    if (!isInTime(state, requestId)) return; // The node will soon repeat the request.
    state.section = "held";
    state.token = token;
    ctx.emit({ type: "entered", token });
    confirm(requestId.round, state, ctx);
  }

  function recalled(from: NodeId, { epoch }: Said<"recall">, state: State, ctx: Ctx): void {
    if (epoch < state.epoch) return;
    if (epoch > state.epoch) learn(epoch, from, state, ctx);
    else askOrRenew(state, ctx);
    if (state.section === "released") tell(from, { type: "empty", epoch }, state, ctx);
  }

  function learn(epoch: number, leader: NodeId, state: State, ctx: Ctx): void {
    retire(state, ctx);
    state.epoch = epoch;
    state.server = leader;
    if (leader === ctx.self) {
      state.service = { grants: 0, awaited: [...ctx.peers], isRecalling: false, holder: null, queue: [] };
      if (state.section === "held") include(state.service.awaited, ctx.self);
      ctx.setTimer("reclaim", reclaimMs);
    }
    askOrRenew(state, ctx);
    sayDeparture(state, ctx);
  }

  function sayDeparture({ isDeparting, section, server, epoch }: State, ctx: Ctx): void {
    if (!isDeparting || section !== "released" || server === null || server === ctx.self) return;
    ctx.send(server, { type: "empty", epoch });
  }

  return {
    name: "elected-server",
    init: initial,
    receive: {
      ...{ request: hear, grant: hear, renew: hear, renewed: hear },
      ...{ release: hear, withdraw: hear, recall: hear, empty: hear },
    },
    timeout: {
      renew: askOrRenew,
      reclaim: serving.reclaim,
      recall: serving.recall,
      leaseEven: (state, ctx) => expire("leaseEven", state, ctx),
      leaseOdd: (state, ctx) => expire("leaseOdd", state, ctx),
    },
    command: {
      enter(state, _command, ctx) {
        // The node is already waiting or inside, or is about to stop.
        if (state.section !== "released" || state.isDeparting) return;
        if (!state.isNumbered) {
          state.requestId.run += 1;
          state.isNumbered = true;
          ctx.compact([{ type: "run", run: state.requestId.run }]);
        }
        state.section = "wanted";
        state.requestId.request += 1;
        ask(state, ctx);
      },
      exit(state, _command, ctx) {
        const { section, server, epoch, token } = state;
        if (section === "released") return; // The node is neither waiting nor inside.
        leave(state, ctx);
        if (section === "held") ctx.emit({ type: "exited" });
        if (server === null) return; // The next server learns of the release through its `recall`.
        if (section === "held") tell(server, { type: "release", epoch, token }, state, ctx);
        else tell(server, { type: "withdraw", epoch, requestId: { ...state.requestId } }, state, ctx);
      },
      elected(state, { leader, epoch }, ctx) {
        if (epoch > state.epoch) learn(epoch, leader, state, ctx);
      },
      deposed(state, { epoch }, ctx) {
        if (epoch === state.epoch && state.service !== null) retire(state, ctx);
      },
      suspect({ service }, { node }) {
        if (service !== null) service.queue = service.queue.filter((waiting) => waiting.node !== node);
      },
      resume: serving.resume,
      depart(state, _command, ctx) {
        state.isDeparting = true;
        sayDeparture(state, ctx);
      },
    },
    replay: {
      run(state, { run }) {
        state.requestId.run = run;
      },
    },
    ...declarations,
  };
}

const initial = (): State => ({
  section: "released",
  epoch: 0,
  server: null,
  requestId: { run: 0, request: 0, round: 0 },
  isNumbered: false,
  isDeparting: false,
  running: [],
  confirmed: 0,
  token: 0,
  service: null,
});

/** Whether a reply to the message still starts a valid lease. */
const isInTime = ({ requestId, running }: State, { run, round }: RequestId): boolean =>
  run === requestId.run && round > requestId.round - 2 && running.includes(leaseTimer(round));

function renewed({ token, requestId }: Said<"renewed">, state: State, ctx: Ctx): void {
  if (state.section !== "held" || token !== state.token || !isInTime(state, requestId)) return; // Late.
  if (requestId.round > state.confirmed) confirm(requestId.round, state, ctx);
}

/** Confirms this round's lease, which replaces the previous round's lease. */
function confirm(round: number, state: State, ctx: Ctx): void {
  state.confirmed = round;
  if (round === state.requestId.round) stop(leaseTimer(round - 1), state, ctx);
  ctx.emit({ type: "confirmed", token: state.token }, leaseTimer(round));
}

function stop(timer: LeaseTimer, state: State, ctx: Ctx): void {
  ctx.cancelTimer(timer);
  state.running = state.running.filter((other) => other !== timer);
}

function expire(timer: LeaseTimer, state: State, ctx: Ctx): void {
  state.running = state.running.filter((other) => other !== timer);
  if (state.section !== "held" || leaseTimer(state.confirmed) !== timer) return;
  leave(state, ctx);
  ctx.emit({ type: "lost", token: state.token });
}

function leave(state: State, ctx: Ctx): void {
  state.section = "released";
  ctx.cancelTimer("renew");
  stop("leaseEven", state, ctx);
  stop("leaseOdd", state, ctx);
}

function retire(state: State, ctx: Ctx): void {
  state.service = null;
  state.server = null;
  ctx.cancelTimer("reclaim");
  ctx.cancelTimer("recall");
}

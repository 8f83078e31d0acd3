/** The lock service's server role: grants, renewals, reclaims, and a new server's recall. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import type { LeaseTimer } from "../../leases.ts";
import { exclude } from "../../node-set.ts";
import { ENTRIES, EPOCHS, epochOf, fence, type Section } from "../family/workload.ts";

/** Vocabulary of the lock service. */
export type LockService = {
  state: {
    section: Section;
    /** The highest epoch that this node knows. */
    epoch: number;
    /** The server of that epoch. Null if unknown. */
    server: NodeId | null;
    /** Identifies the last request or renewal that this node sent. The run is journaled. */
    requestId: RequestId;
    /** Whether this run has been assigned a number. */
    isNumbered: boolean;
    /**
     * Whether the node is about to stop. If so, it makes no more requests, and reports this to each server without
     * being asked.
     */
    isDeparting: boolean;
    /** The running lease timers, for the last message sent and the one before it. */
    running: LeaseTimer[];
    /** While the section is held, the last round that a server has confirmed. */
    confirmed: number;
    /** The token of the last entry in this run, or 0 before the first. */
    token: number;
    /** The server's state. Null while this node is not the server. */
    service: Service | null;
  };
  message:
    | { type: "request"; epoch: number; requestId: RequestId }
    | { type: "grant"; epoch: number; token: number; requestId: RequestId }
    | { type: "renew"; epoch: number; token: number; requestId: RequestId }
    | { type: "renewed"; token: number; requestId: RequestId }
    | { type: "release"; epoch: number; token: number }
    /** Withdraws a request. */
    | { type: "withdraw"; epoch: number; requestId: RequestId }
    /** Asks for permissions granted by an earlier server. The reply is a renewal, a request, or `empty`. */
    | { type: "recall"; epoch: number }
    | { type: "empty"; epoch: number };
  timer: /** Repeats a request, or renews. */
    | "renew"
    /** Reclaims a grant that was not renewed, or treats grants from earlier servers as expired. */
    | "reclaim"
    | "recall"
    | LeaseTimer;
  command: /** Ignored unless released. */
    | { type: "enter" }
    /** Leaves the section or, while waiting, withdraws the request. */
    | { type: "exit" }
    | { type: "elected"; leader: NodeId; epoch: number }
    | { type: "deposed"; epoch: number }
    /**
     * Reports a suspected node. If the node is waiting, it loses its place in the queue. If it is alive, it repeats its
     * request.
     */
    | { type: "suspect"; node: NodeId }
    /**
     * Resumes a closed lock. Sent right after `elected` if this node has served in that epoch for `servedMs`, but had
     * closed this lock or never opened it. All the lock's earlier grants have been returned, and none had a token above
     * `token`.
     */
    | { type: "resume"; token: number; servedMs: number }
    /** Announces that this node is about to stop gracefully. Other nodes do not need to wait for it. */
    | { type: "depart" };
  event: /** The token increases with every grant, across all servers. */
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** The permission is confirmed. No other node is inside until the deadline. */
    | { type: "confirmed"; token: number }
    /** The permission has been lost. From now on, another node may be inside. */
    | { type: "lost"; token: number }
    /** The tokens for this epoch have been used up. More can be granted only in a new epoch. */
    | { type: "exhausted"; epoch: number };
  record: { type: "run"; run: number };
};

/** Identifies a message by the node's run, the request within the run, and the round within the request. */
export interface RequestId {
  run: number;
  request: number;
  round: number;
}

/** A server's state. */
interface Service {
  /** The number of grants so far. */
  grants: number;
  /**
   * Nodes that have not yet reported grants from earlier servers, in ascending order. Nothing is granted until the list
   * is empty.
   */
  awaited: NodeId[];
  /** Whether the server has sent `recall` to the awaited nodes. */
  isRecalling: boolean;
  holder: { node: NodeId; token: number; requestId: RequestId } | null;
  /** Waiting nodes in FIFO order. */
  queue: { node: NodeId; requestId: RequestId }[];
}

// The interface between the server role and the lock service.

export type State = LockService["state"];
export type Ctx = Context<LockService>;
type Message = LockService["message"];
type Renewal = Extract<Message, { type: "renew" }>;
/** Messages from nodes to the server. */
type ToServer = Extract<Message, { type: "request" | "renew" | "release" | "withdraw" | "empty" }>;

interface Server {
  hear(from: NodeId, request: ToServer, state: State, ctx: Ctx): void;
  /** Resends `recall` to nodes that have not answered. */
  recall(state: State, ctx: Ctx): void;
  /** Reclaims a grant that was not renewed, or all grants from earlier servers, because the leases have expired. */
  reclaim(state: State, ctx: Ctx): void;
  /** Resumes a closed lock, or opens one, after this node has served other locks for `servedMs`. */
  resume(state: State, before: { token: number; servedMs: number }, ctx: Ctx): void;
}

interface ServerOptions {
  renewMs: number;
  reclaimMs: number;
  tell(to: NodeId, message: Message, state: State, ctx: Ctx): void;
}

/** Creates the server's handlers. */
export function serverHandlers({ renewMs, reclaimMs, tell }: ServerOptions): Server {
  function enqueue(node: NodeId, requestId: RequestId, service: Service, state: State, ctx: Ctx): void {
    const { holder, queue } = service;
    if (holder?.node === node) {
      if (isSameRequest(requestId, holder.requestId)) return repeat(requestId, service, state, ctx);
      if (isOlder(requestId, holder.requestId)) return; // The request is late.
      // A new request means that the node has left the section. Its release is late, or was lost when its run ended.
      service.holder = null;
    }
    const waiting = queue.find((other) => other.node === node);
    if (waiting === undefined) queue.push({ node, requestId });
    else if (isOlder(waiting.requestId, requestId)) waiting.requestId = requestId;
  }

  /** Resends a grant that may have been lost. */
  function repeat(requestId: RequestId, service: Service, state: State, ctx: Ctx): void {
    const { holder } = service;
    if (holder === null || isOlder(requestId, holder.requestId)) return;
    grant({ ...holder, requestId }, service, state, ctx);
  }

  function grant(holder: NonNullable<Service["holder"]>, service: Service, state: State, ctx: Ctx): void {
    service.holder = holder;
    ctx.setTimer("reclaim", reclaimMs);
    const { node, token, requestId } = holder;
    tell(node, { type: "grant", epoch: state.epoch, token, requestId }, state, ctx);
  }

  function serve(service: Service, state: State, ctx: Ctx): void {
    ctx.cancelTimer("recall");
    if (service.holder !== null) return;
    ctx.cancelTimer("reclaim");
    if (service.queue.length === 0) return;
    if (state.epoch >= EPOCHS || service.grants + 1 >= ENTRIES)
      return ctx.emit({ type: "exhausted", epoch: state.epoch });
    const next = service.queue.shift() as Service["queue"][number];
    service.grants += 1;
    grant({ ...next, token: fence(state.epoch, service.grants) }, service, state, ctx);
  }

  function renewal(node: NodeId, { token, requestId }: Renewal, service: Service, state: State, ctx: Ctx): void {
    // While the holder of an earlier server's grant has a valid lease, no other node has one, so the server does not
    // need to wait for other nodes.
    if (service.awaited.includes(node)) Object.assign(service, { holder: { node, token, requestId }, awaited: [] });
    if (service.holder?.token !== token) return; // The permission has been reclaimed.
    if (isOlder(service.holder.requestId, requestId)) service.holder.requestId = requestId;
    ctx.cancelTimer("recall");
    ctx.setTimer("reclaim", reclaimMs);
    tell(node, { type: "renewed", token, requestId }, state, ctx);
  }

  function release(token: number, service: Service): void {
    if (service.holder?.token === token) service.holder = null;
  }

  function withdraw(node: NodeId, requestId: RequestId, service: Service): void {
    const isOver = (other: { node: NodeId; requestId: RequestId }): boolean =>
      other.node === node && isSameRequest(other.requestId, requestId);
    service.queue = service.queue.filter((waiting) => !isOver(waiting));
    if (service.holder !== null && isOver(service.holder)) service.holder = null;
  }

  /**
   * Asks nodes for earlier grants. Runs only once a node is waiting, so a change of server costs no messages for unused
   * locks.
   */
  function recall(service: Service, { epoch }: State, ctx: Ctx): void {
    service.isRecalling = true;
    ctx.setTimer("recall", renewMs);
    for (const node of service.awaited) ctx.send(node, { type: "recall", epoch });
  }

  return {
    hear(from, request, state, ctx) {
      const { service, epoch } = state;
      if (service === null || request.epoch !== epoch) return; // The message was meant for a different server.
      if (request.type === "renew") return renewal(from, request, service, state, ctx);
      if (request.type === "request") enqueue(from, request.requestId, service, state, ctx);
      else if (request.type === "release") release(request.token, service);
      else if (request.type === "withdraw") withdraw(from, request.requestId, service);
      exclude(service.awaited, from); // Any other message shows that the sender has no earlier grant.
      if (service.awaited.length === 0) serve(service, state, ctx);
      else if (service.queue.length > 0 && !service.isRecalling) recall(service, state, ctx);
    },
    recall(state, ctx) {
      if (state.service !== null) recall(state.service, state, ctx);
    },
    reclaim(state, ctx) {
      const { service } = state;
      if (service === null) return;
      if (service.awaited.length === 0) service.holder = null;
      service.awaited = [];
      serve(service, state, ctx);
    },
    resume({ service, epoch }, { token, servedMs }, ctx) {
      if (service === null) return;
      if (epochOf(token) === epoch) service.grants = Math.max(service.grants, token - fence(epoch, 0));
      if (servedMs < reclaimMs) return ctx.setTimer("reclaim", reclaimMs - servedMs);
      // All grants from earlier servers have expired, so no recall is needed.
      service.awaited = [];
      ctx.cancelTimer("reclaim");
    },
  };
}

const isSameRequest = (a: RequestId, b: RequestId): boolean => a.run === b.run && a.request === b.request;

const isOlder = (a: RequestId, b: RequestId): boolean =>
  a.run < b.run || (a.run === b.run && (a.request < b.request || (a.request === b.request && a.round < b.round)));

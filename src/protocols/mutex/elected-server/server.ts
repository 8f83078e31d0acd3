/** The half of the lock service that serves: grants, renews, takes back, and asks a new server's question first. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import type { LeaseTimer } from "../../leases.ts";
import { exclude } from "../../node-set.ts";
import { ENTRIES, EPOCHS, epochOf, fence, type Section } from "../family/workload.ts";

export type LockService = {
  state: {
    section: Section;
    /** The highest that this node has heard of. */
    epoch: number;
    /** Who serves in it; null while nobody is known to. */
    server: NodeId | null;
    /** The last sending of this node, of a request or a renewal. Its run is journalled. */
    requestId: RequestId;
    /** Whether this run has its number yet. */
    isNumbered: boolean;
    /** Whether it is about to end: it asks for nothing more, and tells each server so without being asked. */
    isDeparting: boolean;
    /** The timers that run: of the last sending, and of the one before. */
    running: LeaseTimer[];
    /** While held: the last round that a server has confirmed. */
    confirmed: number;
    /** Of the last entry in this run; 0 before the first. */
    token: number;
    /** While this node serves. */
    service: Service | null;
  };
  message:
    | { type: "request"; epoch: number; requestId: RequestId }
    | { type: "grant"; epoch: number; token: number; requestId: RequestId }
    | { type: "renew"; epoch: number; token: number; requestId: RequestId }
    | { type: "renewed"; token: number; requestId: RequestId }
    | { type: "release"; epoch: number; token: number }
    /** Takes a request back. */
    | { type: "withdraw"; epoch: number; requestId: RequestId }
    /** Who holds a permission that an earlier server has granted? Answered by a renewal, a request, or `empty`. */
    | { type: "recall"; epoch: number }
    | { type: "empty"; epoch: number };
  timer: /** Asks again, or renews. */
    | "renew"
    /** What has been granted is taken back; what others have granted has run out. */
    | "reclaim"
    | "recall"
    | LeaseTimer;
  command: /** Counts when released. */
    | { type: "enter" }
    /** While waiting it takes the request back. */
    | { type: "exit" }
    | { type: "elected"; leader: NodeId; epoch: number }
    | { type: "deposed"; epoch: number }
    /** A node that waits and is suspected loses its place in the queue. If it is alive, it asks again. */
    | { type: "suspect"; node: NodeId }
    /**
     * Right after `elected`, where this node has served in that epoch for so long already: this lock it had put away, or never had.
     * Whatever it granted then has been given back, and no token of it is above this one.
     */
    | { type: "resume"; token: number; servedMs: number }
    /** This node is about to end, in order: nobody need wait for it. */
    | { type: "depart" };
  event: /** The token grows with every grant, over all servers. */
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** Certain to be the only one inside until the deadline. */
    | { type: "confirmed"; token: number }
    /** Somebody else may be inside from now on. */
    | { type: "lost"; token: number }
    /** The tokens of this epoch are used up: only another can grant more. */
    | { type: "exhausted"; epoch: number };
  record: { type: "run"; run: number };
};

/** Names one sending: the node's runs are counted, in a run its requests, and all that it sends for them. */
export interface RequestId {
  run: number;
  request: number;
  round: number;
}

/** What a server keeps. */
interface Service {
  /** How many permissions it has granted. */
  grants: number;
  /** Who has not said yet what it holds of earlier servers. Ascending; while there is anybody, nothing is granted. */
  awaited: NodeId[];
  /** Whether they have been asked. */
  isRecalling: boolean;
  holder: { node: NodeId; token: number; requestId: RequestId } | null;
  /** Who waits, first come first. */
  queue: { node: NodeId; requestId: RequestId }[];
}

// The half of the lock service that serves: grants, renews, takes back, and asks a new server's question first.

export type State = LockService["state"];
export type Ctx = Context<LockService>;
type Message = LockService["message"];
type Renewal = Extract<Message, { type: "renew" }>;
/** What nodes send to the server. */
type ToServer = Extract<Message, { type: "request" | "renew" | "release" | "withdraw" | "empty" }>;

interface Server {
  hear(from: NodeId, request: ToServer, state: State, ctx: Ctx): void;
  /** Asks those again who have not answered. */
  recall(state: State, ctx: Ctx): void;
  /** Takes back what the holder has not renewed, or what earlier servers have granted: nobody is certain of it any more. */
  reclaim(state: State, ctx: Ctx): void;
  /** Goes on with a lock that was put away, or begins with one, after it has served others for so long. */
  resume(state: State, before: { token: number; servedMs: number }, ctx: Ctx): void;
}

interface ServerOptions {
  renewMs: number;
  reclaimMs: number;
  tell(to: NodeId, message: Message, state: State, ctx: Ctx): void;
}

export function serverHandlers({ renewMs, reclaimMs, tell }: ServerOptions): Server {
  function enqueue(node: NodeId, requestId: RequestId, service: Service, state: State, ctx: Ctx): void {
    const { holder, queue } = service;
    if (holder?.node === node) {
      if (isSameRequest(requestId, holder.requestId)) return repeat(requestId, service, state, ctx);
      if (isOlder(requestId, holder.requestId)) return; // It arrives late.
      service.holder = null; // A node that asks anew has left: its release is late, or lost with its run.
    }
    const waiting = queue.find((other) => other.node === node);
    if (waiting === undefined) queue.push({ node, requestId });
    else if (isOlder(waiting.requestId, requestId)) waiting.requestId = requestId;
  }

  /** The grant may have been lost. */
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
    // While a holder of earlier servers is certain nobody else is: there is nobody else to wait for.
    if (service.awaited.includes(node)) Object.assign(service, { holder: { node, token, requestId }, awaited: [] });
    if (service.holder?.token !== token) return; // It has been taken back.
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

  /** Once somebody waits: a permission that nobody wants costs no message when another comes to serve. */
  function recall(service: Service, { epoch }: State, ctx: Ctx): void {
    service.isRecalling = true;
    ctx.setTimer("recall", renewMs);
    for (const node of service.awaited) ctx.send(node, { type: "recall", epoch });
  }

  return {
    hear(from, request, state, ctx) {
      const { service, epoch } = state;
      if (service === null || request.epoch !== epoch) return; // For an earlier server, or another.
      if (request.type === "renew") return renewal(from, request, service, state, ctx);
      if (request.type === "request") enqueue(from, request.requestId, service, state, ctx);
      else if (request.type === "release") release(request.token, service);
      else if (request.type === "withdraw") withdraw(from, request.requestId, service);
      exclude(service.awaited, from); // Whatever else it says, it holds nothing of earlier servers.
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
      // What earlier servers had granted has run out since: there is nobody to ask.
      service.awaited = [];
      ctx.cancelTimer("reclaim");
    },
  };
}

const isSameRequest = (a: RequestId, b: RequestId): boolean => a.run === b.run && a.request === b.request;

const isOlder = (a: RequestId, b: RequestId): boolean =>
  a.run < b.run || (a.run === b.run && (a.request < b.request || (a.request === b.request && a.round < b.round)));

/** The half of the lock service that serves: grants, renews, takes back, and asks a new server's question first. */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { exclude } from "../../node-set.ts";
import { ENTRIES, EPOCHS, epochOf, fence } from "../family/fencing-tokens.ts";
import type { LockService, RequestId, Service } from "./vocabulary.ts";

type State = LockService["state"];
type Ctx = Context<LockService>;
type Message = LockService["message"];
type Renewal = Extract<Message, { type: "renew" }>;
/** What nodes send to the server. */
type ToServer = Extract<Message, { type: "request" | "renew" | "release" | "withdraw" | "empty" }>;

export interface Server {
  hear(from: NodeId, request: ToServer, state: State, ctx: Ctx): void;
  /** Asks those again who have not answered. */
  recall(state: State, ctx: Ctx): void;
  /** Takes back what the holder has not renewed, or what earlier servers have granted: nobody is certain of it any more. */
  reclaim(state: State, ctx: Ctx): void;
  /** Goes on with a lock that was put away, or begins with one, after it has served others for so long. */
  resume(state: State, before: { token: number; servedMs: number }, ctx: Ctx): void;
}

export interface ServerOptions {
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

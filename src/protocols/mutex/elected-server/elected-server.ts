/**
 * Elected server: a central server that is replaced when it crashes, by an election with epochs. Permissions are leases,
 * and their tokens grow with every grant, over all servers.
 * Coulouris et al. §15.2 for the server; its hardening as in Gray & Cheriton, "Leases: An Efficient Fault-Tolerant
 * Mechanism for Distributed File Cache Consistency", SOSP 1989, and Burrows, "The Chubby Lock Service", OSDI 2006.
 *
 * Assumes   crash-recovery nodes that keep their journal; clocks whose speeds are right to within `drift` and nodes that are
 *           not paused, for ME1; a majority alive and connected in the end, with round trips below `renewMs`, for ME2.
 * Safety    tokens are unique, always: under any delay, loss, duplication, reordering, partition, crash and recovery,
 *           however wrong the clocks; those of one server grow, and those of a later one are all higher. ME1: at most one
 *           node is inside, and entries have growing tokens, while the clocks keep to `drift`. Not ME3: requests are
 *           granted as they reach the server.
 * Liveness  ME2: every request of a node that stays up and connected to the server is granted in the end.
 * Cost      3 messages per entry: request, grant, release; none for the server itself. A request more for each `renewMs`
 *           of waiting, 2 for each `renewMs` inside. For a change of server at most 2(N − 1), when somebody wants in, and
 *           what `epoch-bully` costs.
 *
 * A node is told that its permission is lost before anybody else can get it: see `lock-service.ts`.
 */
import type { Assembly, Wires } from "../../../core/assemble.ts";
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { type EpochBully, epochBully } from "../../election/epoch-bully/epoch-bully.ts";
import type { EpochBullyOptions } from "../../election/epoch-bully/vocabulary.ts";
import { type Heartbeat, heartbeat } from "../../membership/heartbeat.ts";
import { exclude } from "../../node-set.ts";
import type { System } from "../../system.ts";
import {
  ENTRIES,
  EPOCHS,
  epochOf,
  fence,
  type MutexWorkload,
  type MutexWorkloadOptions,
  withMutexWorkload,
} from "../family/workload.ts";
import {
  type Ctx,
  type LockService,
  type LockServiceOptions,
  lockService,
  type RequestId,
  type Service,
  type State,
} from "./lock-service.ts";

// The half of the lock service that serves: grants, renews, takes back, and asks a new server's question first.

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

export type ElectedServer = Assembly<{ workload: MutexWorkload; mutex: LockService; election: EpochBully }>;

export interface ElectedServerOptions {
  workload?: Partial<MutexWorkloadOptions>;
  mutex?: Partial<LockServiceOptions>;
  election?: Partial<EpochBullyOptions>;
}

const wires: Wires<{ mutex: LockService; election: EpochBully; detector: Heartbeat }> = {
  mutex: {
    exhausted(_event, give) {
      give("election", { type: "resign" });
      give("election", { type: "stand" }); // The same node may lead again, in a higher epoch.
    },
  },
  election: {
    elected: ({ leader, epoch }, give) => give("mutex", { type: "elected", leader, epoch }),
    deposed: ({ epoch }, give) => give("mutex", { type: "deposed", epoch }),
  },
  detector: {
    suspected({ node }, give) {
      give("mutex", { type: "suspect", node });
      give("election", { type: "suspect", node });
    },
    restored: ({ node }, give) => give("election", { type: "restore", node }),
  },
};

const system: System = { parts: { mutex: lockService, election: epochBully }, wires, algorithm: "mutex" };

/** As a member of `join()` has it, where one election and one failure detector do for all locks. */
export const monitoredElectedServer: System = { ...system, parts: { ...system.parts, detector: heartbeat } };

export const electedServer: (options?: ElectedServerOptions) => Protocol<ElectedServer> = withMutexWorkload<
  { mutex: LockService; election: EpochBully },
  ElectedServerOptions
>(system);

/**
 * Messages that an algorithm counts on, which links lose if they do not fit their queue, and the fault injector keeps off: they are sent
 * again as the protocol `resending` says, which is run here. It knows messages by number, and asks for what it offers to be tried.
 */
import type { NodeId } from "../../core/protocol.ts";
import {
  isHalfFull,
  type Resending as Protocol,
  resending,
  settledResending,
} from "../../protocols/membership/back-pressure/resending.ts";
import { Host } from "../../runtime/host.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import { UNRECORDED, UNSENT, UNTOLD } from "./unrecorded.ts";

export interface ResendingOptions<M> {
  readonly platform: Platform;
  send(to: NodeId, message: M): SendResult;
  /** About how much it takes to keep one. */
  bytesOf(message: M): number;
  /** Whether what comes later relies on it, so that nothing may overtake it. */
  leads(message: M): boolean;
  /** The oldest was dropped. */
  onOverflow(to: NodeId): void;
}

const BOUNDS = settledResending(undefined);

export class Resending<M> {
  readonly #options: ResendingOptions<M>;
  readonly #host: Host<Protocol>;
  /** The protocol's own, and only read here: messages are many, and each is looked at. */
  #state!: Readonly<Protocol["state"]>;
  readonly #messages = new Map<number, M>();
  #next = 0;
  /** Whether the link has just refused what is offered. */
  #isRefused = false;

  constructor(options: ResendingOptions<M>) {
    this.#options = options;
    const protocol = resending();
    this.#host = new Host<Protocol>({
      platform: options.platform,
      protocol: { ...protocol, init: (...node) => (this.#state = protocol.init(...node)) },
      self: 0,
      peers: [],
      send: () => UNTOLD,
      trace: UNRECORDED,
      onEvent: (event) => (this.#on[event.type] as (event: Protocol["event"]) => void)(event),
      onFatal: (error) => {
        throw error;
      },
    });
    this.#host.start();
  }

  /** Where nothing waits, what the link takes at once leaves the protocol as it was: it is not asked. */
  insist(to: NodeId, message: M): SendResult {
    const isFirst = !Object.hasOwn(this.#state.waiting, to);
    const result = isFirst ? this.#options.send(to, message) : UNTOLD;
    if (isFirst && result.lost === null) return result;
    const id = this.#next++;
    this.#messages.set(id, message);
    this.#isRefused = isFirst;
    this.#host.carryOut({ type: "insist", to, id, bytes: this.#options.bytesOf(message) });
    return result;
  }

  /** Once, if the link takes it and nothing waits that leads: receivers count on the order of a link. */
  attempt(to: NodeId, message: M): SendResult {
    const { leads, send } = this.#options;
    const waiting = this.#state.waiting[to]?.messages ?? [];
    return waiting.some(({ id }) => leads(this.#messages.get(id) as M)) ? UNSENT : send(to, message);
  }

  /** A sender that can wait before it sends more to that member should: what is over the bounds is lost. */
  isFull(to: NodeId): boolean {
    return isHalfFull(this.#state, to, BOUNDS);
  }

  close(): void {
    this.#host.carryOut({ type: "close" });
    this.#host.stop();
    this.#messages.clear();
  }

  readonly #on: { readonly [E in Protocol["event"] as E["type"]]: (event: E) => void } = {
    offer: ({ to, ids }) => {
      let count = 0;
      for (const id of this.#isRefused ? [] : ids) {
        if (this.#options.send(to, this.#messages.get(id) as M).lost !== null) break;
        this.#messages.delete(id);
        count += 1;
      }
      this.#isRefused = false;
      this.#host.carryOut({ type: "taken", to, count });
    },
    dropped: ({ to, id }) => {
      this.#messages.delete(id);
      this.#options.onOverflow(to);
    },
  };
}

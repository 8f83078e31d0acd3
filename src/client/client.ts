/** What a program that is no member has of a cluster: the same calls as a member, without a vote. docs/guide/clients.md says what holds. */

import type { Role } from "../cluster/clients/client-words.ts";
import { socketUrl } from "../cluster/clients/endpoints.ts";
import type { Election, ElectionOptions, Mutex } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import * as may from "../cluster/services/known-options.ts";
import { type Rules, requireOptions } from "../cluster/services/known-options.ts";
import { onAbort } from "../cluster/services/on-abort.ts";
import type { Service } from "../cluster/services/state/service.ts";
import type { StateApi } from "../cluster/services/state/state-api.ts";
import type { NodeId } from "../core/protocol.ts";
import { MAX_WAIT_MS } from "../runtime/longest-wait.ts";
import type { Platform } from "../runtime/platform/platform.ts";
import { followEndpoints } from "./discovery.ts";
import type { Dial } from "./link.ts";
import { NamedCalls } from "./named-calls.ts";
import { RemoteService } from "./remote-service.ts";

export interface ConnectOptions {
  /** Where members take clients, such as `http://10.0.0.1:7300`; any of them, and best all. */
  readonly endpoints: readonly string[];
  /**
   * Whether it goes on at other members as well, which the cluster tells it of, and is told as they come and go. Default: true. Set it to
   * false where members are reached by other addresses than they know, such as through a load balancer.
   */
  readonly discover?: boolean | undefined;
  /** Where the cluster asks for one. */
  readonly token?: string | undefined;
  /** How long the first connection may take. Default 10,000; `Infinity`: as long as it takes. */
  readonly timeoutMs?: number | undefined;
  /** Aborted: the client is closed, or not connected at all. */
  readonly signal?: AbortSignal | undefined;
}

export interface ClientStatus {
  /** By which the log knows this client; its leaderships and grants stand under it. */
  readonly client: NodeId;
  readonly role: Role | null;
  /** The member that it speaks to, and by which endpoint; null while to none. */
  readonly member: NodeId | null;
  readonly endpoint: string | null;
  /** Where it would go on: those that it was given, and those that it was told of. */
  readonly endpoints: readonly string[];
  readonly session: number | null;
  /** How often another connection has taken the place of one. */
  readonly moves: number;
}

/** A program that uses a cluster and is no member of it. */
export interface Client extends Omit<StateApi, "replicated">, AsyncDisposable {
  /** Aborted once the client is closed, or is refused by the cluster. */
  readonly signal: AbortSignal;
  /** The lock of that name on the replicated log, which is the default of members: they wait in the same queue. */
  mutex(name: string): Mutex;
  /** The election of that name on the replicated log, which is the default of members: they are candidates of the same one. */
  election(name: string, options?: Pick<ElectionOptions, "metadata">): Election;
  status(): ClientStatus;
  /** Gives back what is held, and closes. Twice is once. */
  close(): Promise<void>;
}

const rules: Rules<ConnectOptions> = {
  endpoints: may.needed({ wanted: 'a list of URLs such as "http://127.0.0.1:7300"', accepts: areTexts }),
  discover: may.flag,
  token: may.text,
  timeoutMs: may.duration,
  signal: may.signal,
};
const DEFAULT_TIMEOUT_MS = 10_000;

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string");
}

/** @throws UsageError for options that cannot be. */
export function requireConnectOptions(options: unknown, more: Rules<object> = {}): asserts options is ConnectOptions {
  requireOptions<ConnectOptions>("connect", options, { ...rules, ...more });
  for (const endpoint of (options as ConnectOptions).endpoints) socketUrl(endpoint);
}

/**
 * Connects by any way of dialling, on any platform.
 * @throws CoordinationError `no-endpoint`, `forbidden`; the reason of `signal`
 */
export async function connectOn(
  platform: Pick<Platform, "clock" | "timers" | "random">,
  dial: Dial,
  options: ConnectOptions,
): Promise<Client> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options;
  signal?.throwIfAborted();
  const client = new RemoteClient(platform, dial, options);
  await client.open(timeoutMs, signal);
  return client;
}

/** For programs of this package that have words of their own. */
export const serviceOf = (client: Client): Service => (client as RemoteClient).service;

/** The process of this client exits, and runs none of its code any more. What it holds is given back as far as that goes without waiting. */
export function exitOf(client: Client): void {
  const { service } = client as RemoteClient;
  service.departAtOnce(new CoordinationError("client-closed", "lost", "the process of this client exits"));
}

class RemoteClient extends NamedCalls implements Client {
  declare readonly service: RemoteService;
  readonly #endpoints: readonly string[];

  constructor(platform: Pick<Platform, "clock" | "timers" | "random">, dial: Dial, options: ConnectOptions) {
    super(
      new RemoteService({
        platform,
        endpoints: options.endpoints,
        token: options.token ?? null,
        dial,
        onChange: () => this.look(),
        makeRoom: () => this.retireUnused(),
      }),
    );
    this.#endpoints = options.endpoints;
    if (options.discover !== false) followEndpoints(this.service, options.endpoints);
  }

  /** @throws CoordinationError `no-endpoint`, `forbidden`; the reason of `signal` */
  async open(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { link, platform } = this.service;
    const forget = onAbort(signal, () => void this.close());
    onAbort(this.signal, forget);
    await new Promise<void>((resolve) => {
      const late = (): void => {
        const text = `none of ${this.#endpoints.join(", ")} took this client within ${timeoutMs} ms: ${link.why}`;
        this.fail(new CoordinationError("no-endpoint", "never-sent", text));
      };
      const timer = timeoutMs > MAX_WAIT_MS ? null : platform.timers.after(timeoutMs, late); // No timer is as long.
      this.changed = () => {
        if (this.service.closed === null && !link.isUp) return;
        platform.timers.cancel(timer);
        this.changed = () => {};
        resolve();
      };
      link.open();
    });
    signal?.throwIfAborted();
    this.service.use();
  }

  status(): ClientStatus {
    const { link, self, session } = this.service;
    const { role, member, moves, endpoints } = link;
    const endpoint = member === null ? null : link.endpoint;
    return { client: self, role, member, endpoint, endpoints, session, moves };
  }

  close(): Promise<void> {
    return this.depart("this client has been closed");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

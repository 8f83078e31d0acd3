/**
 * The API of a client, which is a process that uses a cluster without being a member. A client has the same elections,
 * locks and shared state as a member, but no vote. For the guarantees, see docs/guide/clients.md.
 */

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

/** Options for `connect()`. */
export interface ConnectOptions {
  /**
   * URLs at which members serve clients, such as `http://10.0.0.1:7300`. A single URL is enough, but list all members
   * so that the client can connect even if some of them are stopped.
   */
  readonly endpoints: readonly string[];
  /**
   * Whether the client learns other members' addresses from the cluster, keeps them up to date, and also connects to
   * them. Default: true. Set it to false if clients reach members at different addresses, for example through a load
   * balancer.
   */
  readonly discover?: boolean | undefined;
  /** The client's token, if the cluster requires one. */
  readonly token?: string | undefined;
  /** The maximum time to wait for the first connection, in milliseconds. `Infinity` means no limit. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Aborting it closes the client. If it is aborted before the connection has been established, `connect()` rejects.
   */
  readonly signal?: AbortSignal | undefined;
}

/** A client's connection and session, as plain data. */
export interface ClientStatus {
  /** The client's id in the log. Its leaderships and grants carry this id. */
  readonly client: NodeId;
  /** The client's role in the cluster. Null before the first connection. */
  readonly role: Role | null;
  /** The member that the client is connected to. Null if it is not connected. */
  readonly member: NodeId | null;
  /** The URL of the connection. Null if the client is not connected. */
  readonly endpoint: string | null;
  /** The endpoints that the client tries: those passed to `connect()` and those that it has learned. */
  readonly endpoints: readonly string[];
  /** The client's session. Null if it currently has none. */
  readonly session: number | null;
  /** The number of times that the client has reconnected. */
  readonly moves: number;
}

/** A connection to a cluster from a process that is not a member. */
export interface Client extends Omit<StateApi, "replicated">, AsyncDisposable {
  /** Aborted once the client has been closed or the cluster has refused it. */
  readonly signal: AbortSignal;
  /**
   * Opens the lock with the given name. Clients and members wait in the same queue.
   *
   * @example
   * await using lock = await client.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
   * @throws UsageError `bad-name`
   */
  mutex(name: string): Mutex;
  /**
   * Opens the election with the given name. Clients and members are candidates in the same election.
   *
   * @example
   * await client.election("nightly-report").lead(async ({ signal, token }) => {
   *   while (!signal.aborted) await writeReport({ token, signal });
   * });
   * @throws UsageError `bad-name`, `bad-option`; `bad-value` or `too-large` for the metadata
   */
  election(name: string, options?: Pick<ElectionOptions, "metadata">): Election;
  /** @returns this client's connection and session, as plain data */
  status(): ClientStatus;
  /** Releases all locks and leaderships, and closes the client. Further calls have no effect. */
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

/** @throws UsageError if an option is invalid */
export function requireConnectOptions(options: unknown, more: Rules<object> = {}): asserts options is ConnectOptions {
  requireOptions<ConnectOptions>("connect", options, { ...rules, ...more });
  for (const endpoint of (options as ConnectOptions).endpoints) socketUrl(endpoint);
}

/**
 * Connects on any platform, using the given function to dial.
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

/** Returns a client's service, for code in this package that needs more than the public calls. */
export const serviceOf = (client: Client): Service => (client as RemoteClient).service;

/** Ends the client's session as far as possible without waiting. Called when its process exits. */
export function exitOf(client: Client): void {
  const { service } = client as RemoteClient;
  service.departAtOnce(new CoordinationError("client-closed", "lost", "this client's process is exiting"));
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
        const text = `none of ${this.#endpoints.join(", ")} accepted this client within ${timeoutMs} ms: ${link.why}`;
        this.fail(new CoordinationError("no-endpoint", "never-sent", text));
      };
      const timer = timeoutMs > MAX_WAIT_MS ? null : platform.timers.after(timeoutMs, late); // No timer lasts longer.
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

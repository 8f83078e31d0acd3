/** A member that uses an external engine. It provides the same calls as a client, on top of the engine's service. */
import { NamedCalls } from "../client/named-calls.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { EngineJoinOptions, EngineMember, ExternalEngine } from "../cluster/services/external-engine.ts";
import * as may from "../cluster/services/known-options.ts";
import { type Rules, requireOptions } from "../cluster/services/known-options.ts";
import { onAbort } from "../cluster/services/on-abort.ts";
import type { NodeId } from "../core/protocol.ts";
import { MAX_WAIT_MS } from "../runtime/longest-wait.ts";
import { optionalPackage } from "../runtime/optional-package.ts";
import type { Platform } from "../runtime/platform/platform.ts";
import { boundedStore, LastFailures, reasonOf } from "./bounded-store.ts";
import { EngineService, type EngineServiceOptions } from "./engine-service.ts";
import type { Store } from "./store.ts";

const SESSION_MS = { default: 10_000, least: 1_000, most: 600_000 } as const;
const DEFAULT_TIMEOUT_MS = 10_000;
/**
 * How many call timeouts fit into a session. This is more than 1, so that a failed call can be repeated before the
 * session expires.
 */
const CALLS_PER_SESSION = 4;

const rules: Rules<EngineJoinOptions> = {
  engine: may.needed(may.fields),
  sessionMs: {
    wanted: `a number of milliseconds from ${SESSION_MS.least} to ${SESSION_MS.most}`,
    accepts: (value) => typeof value === "number" && value >= SESSION_MS.least && value <= SESSION_MS.most,
  },
  timeoutMs: may.duration,
  signal: may.signal,
};

/**
 * Creates the object that functions such as `etcd(options)` return. Loads nothing before `join()`.
 * @throws UsageError if an option is invalid
 */
export function externalEngine<O extends object>(
  name: string,
  options: O,
  rules: Rules<O>,
  open: (options: O, random: Platform["random"]) => Store | Promise<Store>,
): ExternalEngine {
  requireOptions<O>(name, options, rules);
  return {
    name,
    join: (platform, joined: EngineJoinOptions) =>
      joinStore(platform, () => Promise.resolve(open(options, platform.random)), joined),
  };
}

/**
 * Loads an engine's client library when the engine is joined, because these libraries are optional.
 * @throws UsageError `no-library`
 */
export const clientLibrary = <T>(name: string, engine: string): Promise<T> =>
  optionalPackage([name], `the engine ${engine} uses`, () => import(name) as Promise<T>);

/** Opens the store, and joins once the first session has begun. */
export async function joinStore(
  platform: Pick<Platform, "clock" | "timers" | "random">,
  open: () => Promise<Store>,
  options: EngineJoinOptions,
): Promise<EngineMember> {
  requireOptions<EngineJoinOptions>("join", options, rules);
  const { sessionMs = SESSION_MS.default, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options;
  signal?.throwIfAborted();
  const failures = new LastFailures(platform.clock, sessionMs);
  const { timers } = platform;
  const store = boundedStore(await open(), { timers, timeoutMs: sessionMs / CALLS_PER_SESSION, failures });
  const member = new JoinedEngine({ platform, store, failures, ttlMs: sessionMs });
  await member.open(timeoutMs, signal);
  return member;
}

class JoinedEngine extends NamedCalls implements EngineMember {
  declare readonly service: EngineService;
  readonly engine: string;

  constructor(options: Omit<EngineServiceOptions, "onChange">) {
    super(new EngineService({ ...options, onChange: () => this.look() }));
    this.engine = options.store.name;
  }

  get id(): NodeId {
    return this.service.self;
  }

  get hasSession(): boolean {
    return this.service.closed === null && this.service.session !== null;
  }

  /** @throws CoordinationError `no-endpoint` if the engine does not open a session in time; the reason of `signal` */
  async open(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { timers } = this.service.platform;
    const forget = onAbort(signal, () => void this.leave());
    onAbort(this.signal, forget);
    await new Promise<void>((resolve) => {
      const timer = timers.after(Math.min(timeoutMs, MAX_WAIT_MS), () => {
        const cause = this.service.lastFailure;
        const why = cause === null ? "" : `: ${reasonOf(cause, this.engine)}`;
        const text = `${this.engine} did not open a session within ${timeoutMs} ms${why}`;
        this.fail(new CoordinationError("no-endpoint", "never-sent", text, cause === null ? {} : { cause }));
      });
      this.changed = () => {
        if (this.service.closed === null && this.service.session === null) return;
        timers.cancel(timer);
        this.changed = () => {};
        resolve();
      };
      this.service.start();
    });
    signal?.throwIfAborted();
    this.service.use();
  }

  leave(): Promise<void> {
    return this.depart("this member has left");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }
}

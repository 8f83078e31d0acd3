/**
 * Coterie on an external engine, such as PostgreSQL: the options for `join({ engine })`, and its result. See
 * docs/guide/engines.md.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { Election, ElectionOptions, Mutex } from "./api.ts";
import type { StateApi } from "./state/state-api.ts";

/** An engine. The functions exported by `coterie/engines/NAME` return one. */
export interface ExternalEngine {
  /** The name of the engine, such as `postgres`. */
  readonly name: string;
  /** Validates the options and connects. */
  join(platform: Pick<Platform, "clock" | "timers" | "random">, options: EngineJoinOptions): Promise<EngineMember>;
}

/** Options for `join()` with an engine. */
export interface EngineJoinOptions {
  /** The engine, such as `postgres({ url })`. */
  readonly engine: ExternalEngine;
  /**
   * How long a session lasts without a sign of life, in milliseconds. After that, it expires, and other processes can
   * acquire its locks. At least 1,000. Default: 10,000.
   */
  readonly sessionMs?: number | undefined;
  /** The maximum time to wait for the first session, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it makes the member leave. */
  readonly signal?: AbortSignal | undefined;
}

/** A process that coordinates with others through an engine. */
export interface EngineMember extends Omit<StateApi, "replicated" | "barrier" | "queue">, AsyncDisposable {
  /** The number of the member's first session, which no other process has. */
  readonly id: NodeId;
  /** The name of the engine, such as `postgres`. */
  readonly engine: string;
  /**
   * Whether the member has a session with the engine, according to this process's clock. Without a session, it holds
   * nothing and cannot acquire anything.
   */
  readonly hasSession: boolean;
  /** Aborted once the member has left. */
  readonly signal: AbortSignal;
  /**
   * Opens a lock with at most one holder at a time among all processes that use the engine with the same options.
   *
   * @throws UsageError `bad-name`
   */
  mutex(name: string): Mutex;
  /**
   * Opens the election with the given name.
   *
   * @throws UsageError `bad-name`, `bad-option`; `bad-value` or `too-large` for the metadata
   */
  election(name: string, options?: Pick<ElectionOptions, "metadata">): Election;
  /** Releases everything that this process holds, and closes the connection. Further calls have no effect. */
  leave(): Promise<void>;
}

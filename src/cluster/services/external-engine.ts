/** Coterie on an external engine, such as PostgreSQL: the options and result of `join({ engine })`. docs/guide/engines.md */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { Election, ElectionOptions, Mutex } from "./api.ts";
import type { StateApi } from "./state/state-api.ts";

/** An engine, made by a function of `coterie/engines/NAME`. */
export interface ExternalEngine {
  readonly name: string;
  /** Validates the options, and connects. */
  join(platform: Pick<Platform, "clock" | "timers" | "random">, options: EngineJoinOptions): Promise<EngineMember>;
}

/** Options of `join()` with an engine. */
export interface EngineJoinOptions {
  readonly engine: ExternalEngine;
  /**
   * A session without a sign of life for this time expires, and others can acquire its locks. At least 1,000. Default
   * 10,000.
   */
  readonly sessionMs?: number | undefined;
  /** How long opening the first session may take. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it makes the member leave. */
  readonly signal?: AbortSignal | undefined;
}

/** A process that coordinates with others through an engine. */
export interface EngineMember extends Omit<StateApi, "replicated" | "barrier" | "queue">, AsyncDisposable {
  /** The number of its first session, which no other process has. */
  readonly id: NodeId;
  readonly engine: string;
  /** Whether it has a session with the engine, by this process's clock. Without one it holds nothing and acquires nothing. */
  readonly hasSession: boolean;
  /** Aborted once it has left. */
  readonly signal: AbortSignal;
  /**
   * Opens the lock of that name: at most one holder at a time among all processes that use the engine with the same
   * options.
   */
  mutex(name: string): Mutex;
  /** Opens the election of that name. */
  election(name: string, options?: Pick<ElectionOptions, "metadata">): Election;
  /** Releases what this process holds, and closes the connection. Further calls have no effect. */
  leave(): Promise<void>;
}

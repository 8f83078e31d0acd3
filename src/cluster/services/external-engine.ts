/** Coterie over an engine that others run, such as PostgreSQL: what `join({ engine })` takes and gives. docs/guide/engines.md */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { Election, ElectionOptions, Mutex } from "./api.ts";
import type { StateApi } from "./state/state-api.ts";

/** Made by the functions of `coterie/engines/NAME`. */
export interface ExternalEngine {
  readonly name: string;
  /** Checks its options, and connects. */
  join(platform: Pick<Platform, "clock" | "timers" | "random">, options: EngineJoinOptions): Promise<EngineMember>;
}

export interface EngineJoinOptions {
  readonly engine: ExternalEngine;
  /** A session that is not heard of for so long ends, and what it holds is others'; from 1,000 on. Default 10,000. */
  readonly sessionMs?: number | undefined;
  /** How long the engine may take for its first answer. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborted: the member leaves. */
  readonly signal?: AbortSignal | undefined;
}

/** A process that coordinates with others by an engine. */
export interface EngineMember extends Omit<StateApi, "replicated" | "barrier" | "queue">, AsyncDisposable {
  /** Its first session's number: no other process has the same. */
  readonly id: NodeId;
  readonly engine: string;
  /** Whether the engine keeps a session for it, by this process's clock. While not, nothing is held, and nothing granted. */
  readonly hasSession: boolean;
  /** Aborted once it has left. */
  readonly signal: AbortSignal;
  /** The lock of that name: one holder at a time among all processes that use the engine with the same options. */
  mutex(name: string): Mutex;
  /** The election of that name. */
  election(name: string, options?: Pick<ElectionOptions, "metadata">): Election;
  /** Gives back what is held, and closes the connection. Twice is once. */
  leave(): Promise<void>;
}

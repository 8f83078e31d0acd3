/**
 * A Fastify plugin that joins a cluster, with health checks and graceful shutdown. It does not import Fastify.
 *
 * @module coterie/fastify
 */
import { hasEngine } from "../cluster/join.ts";
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";
import { isObject } from "../cluster/services/known-options.ts";
import { Coordination } from "./coordination.ts";

export { Coordination, type Health } from "./coordination.ts";

/** Options of the plugin. */
export interface CoterieFastifyOptions {
  /** The options of `join()`, for a member of a cluster or of an engine. */
  readonly join: JoinOptions | EngineJoinOptions;
  /**
   * The path of the health check. It answers 200 if this process is ready and 503 otherwise, with `{ ready, why }`. Default
   * `/readyz`; null for none.
   */
  readonly readyPath?: string | null | undefined;
}

/** The part of a Fastify instance that is used here. */
export interface FastifyHost {
  decorate(name: string, value: Coordination<Member | EngineMember>): unknown;
  get(path: string, handler: (request: unknown, reply: FastifyAnswer) => unknown): unknown;
  addHook(name: "preClose" | "onClose", hook: () => Promise<void>): unknown;
}
/** The part of a Fastify reply that is used here. */
export interface FastifyAnswer {
  code(status: number): { send(body: unknown): unknown };
}

/**
 * Fastify gives a plugin 10 s, unless `pluginTimeout` is set, and does not report the cause of a timeout. With this limit
 * the engine's reason is reported first.
 */
const ENGINE_TIMEOUT_MS = 8_000;

/**
 * The plugin. Joins when the service starts, and decorates it with `coterie`, a `Coordination`. When the service closes,
 * work under leadership is aborted first, then pending requests are answered, and then this process leaves.
 *
 * @example
 * await app.register(coterie, { join: { id: 1, members, dataDir: "./data" } });
 * @throws the errors of `join()`: the service does not start.
 */
export async function coterie(app: FastifyHost, { join, readyPath = "/readyz" }: CoterieFastifyOptions): Promise<void> {
  const isToldWhen = !hasEngine(join) || join.timeoutMs !== undefined;
  const joining = new Joining(isToldWhen ? join : { ...join, timeoutMs: ENGINE_TIMEOUT_MS });
  app.addHook("preClose", () => Promise.resolve(joining.stop())); // Before it has joined: the service may close meanwhile.
  app.addHook("onClose", () => joining.close());
  const coordination = await joining.joined;
  app.decorate("coterie", coordination);
  if (readyPath === null) return;
  app.get(readyPath, (_request, reply) => {
    const health = coordination.health();
    return reply.code(health.ready ? 200 : 503).send(health);
  });
}

/** A service may shut down before it has joined: then `join()` is aborted, and a member that joins after that leaves. */
class Joining {
  readonly joined: Promise<Coordination<Member | EngineMember>>;
  readonly #aborting = new AbortController();
  #coordination: Coordination<Member | EngineMember> | null = null;

  constructor(options: JoinOptions | EngineJoinOptions) {
    this.joined = Coordination.join(abortedBy(this.#aborting.signal, options)).then((coordination) => {
      this.#coordination = coordination;
      return coordination;
    });
  }

  /** Calls `Coordination.stop()`, once it has joined: a member whose signal is aborted would leave at once. */
  stop(): void {
    if (this.#coordination !== null) this.#coordination.stop();
    else this.#aborting.abort(new CoordinationError("member-left", "never-sent", "this process is shutting down"));
  }

  async close(): Promise<void> {
    this.stop();
    const coordination = await this.joined.catch(() => null);
    await coordination?.close();
  }
}

/** Combines the caller's signal with `aborting`. `join()` rejects invalid options. */
function abortedBy<O extends JoinOptions | EngineJoinOptions>(aborting: AbortSignal, options: O): O {
  if (!isObject(options)) return options;
  const { signal = aborting } = options;
  return { ...options, signal: signal instanceof AbortSignal ? AbortSignal.any([signal, aborting]) : signal };
}

// The decoration applies to the whole service, not to a scope of its own: the effect of the package fastify-plugin.
Object.assign(coterie, { [Symbol.for("skip-override")]: true, [Symbol.for("fastify.display-name")]: "coterie" });

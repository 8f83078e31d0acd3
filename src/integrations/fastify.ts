/**
 * A Fastify plugin that joins a cluster and provides health checks and a graceful shutdown. It does not import Fastify.
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

/** Options for the plugin. */
export interface CoterieFastifyOptions {
  /** The options for `join()`, for a member of a cluster or an engine. */
  readonly join: JoinOptions | EngineJoinOptions;
  /**
   * The path of the health check. It responds with 200 if this process is ready and 503 if not, with the body
   * `{ ready, why }`. Null disables it. Default: `/readyz`.
   */
  readonly readyPath?: string | null | undefined;
}

/** The part of a Fastify instance that is used here. */
export interface FastifyHost {
  /** Adds a property to the Fastify instance. */
  decorate(name: string, value: Coordination<Member | EngineMember>): unknown;
  /** Adds a route for GET requests. */
  get(path: string, handler: (request: unknown, reply: FastifyAnswer) => unknown): unknown;
  /** Adds a hook that runs when the service closes. */
  addHook(name: "preClose" | "onClose", hook: () => Promise<void>): unknown;
}
/** The part of a Fastify reply that is used here. */
export interface FastifyAnswer {
  /** Sets the status code of the response. */
  code(status: number): { send(body: unknown): unknown };
}

/**
 * The time limit for joining an engine. Fastify gives a plugin 10 s to load, unless `pluginTimeout` is set, and does
 * not report the cause of a timeout. With this limit, the engine's reason is reported first.
 */
const ENGINE_TIMEOUT_MS = 8_000;

/**
 * The plugin. It joins when the service starts, and decorates the service with `coterie`, a `Coordination`. When the
 * service closes, work that requires leadership is aborted first, then pending requests are answered, and finally this
 * process leaves.
 *
 * @example
 * await app.register(coterie, { join: { id: 1, members, dataDir: "./data" } });
 * @throws the errors of `join()`. If it throws, the service does not start.
 */
export async function coterie(app: FastifyHost, { join, readyPath = "/readyz" }: CoterieFastifyOptions): Promise<void> {
  const isToldWhen = !hasEngine(join) || join.timeoutMs !== undefined;
  const joining = new Joining(isToldWhen ? join : { ...join, timeoutMs: ENGINE_TIMEOUT_MS });
  // Add the hook before joining, since the service may be closed in the meantime.
  app.addHook("preClose", () => Promise.resolve(joining.stop()));
  app.addHook("onClose", () => joining.close());
  const coordination = await joining.joined;
  app.decorate("coterie", coordination);
  if (readyPath === null) return;
  app.get(readyPath, (_request, reply) => {
    const health = coordination.health();
    return reply.code(health.ready ? 200 : 503).send(health);
  });
}

/**
 * A member that is joining. If the service shuts down before it has joined, `join()` is aborted, and if the member
 * joins anyway, it leaves again.
 */
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

  /**
   * Calls `Coordination.stop()` if the member has already joined. Aborting its signal instead would make it leave
   * immediately.
   */
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

// Applies the decoration to the whole service instead of a separate scope, as the package fastify-plugin does.
Object.assign(coterie, { [Symbol.for("skip-override")]: true, [Symbol.for("fastify.display-name")]: "coterie" });

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

export interface CoterieFastifyOptions {
  /** As `join()` takes them: of a member, or with an engine. */
  readonly join: JoinOptions | EngineJoinOptions;
  /** Answers 200 where this process is ready, and 503 where it is not, with `{ ready, why }`. Default `/readyz`; null: none. */
  readonly readyPath?: string | null | undefined;
}

/** What is used of a Fastify instance. */
export interface FastifyHost {
  decorate(name: string, value: Coordination<Member | EngineMember>): unknown;
  get(path: string, handler: (request: unknown, reply: FastifyAnswer) => unknown): unknown;
  addHook(name: "preClose" | "onClose", hook: () => Promise<void>): unknown;
}
export interface FastifyAnswer {
  code(status: number): { send(body: unknown): unknown };
}

/** Fastify gives a plugin 10 s, unless `pluginTimeout` says otherwise, and does not say what it waited for: an engine's reason comes first. */
const ENGINE_TIMEOUT_MS = 8_000;

/**
 * Joins as the service starts, and decorates it with `coterie`, a `Coordination`. As the service closes, what leads is aborted first,
 * requests under way are answered, and then this process leaves.
 *
 * @example
 * await app.register(coterie, { join: { id: 1, members, dataDir: "./data" } });
 * @throws what `join()` throws: the service does not start.
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

/** A service that may shut down before it has joined: then the join is aborted, and a member that joins after that leaves. */
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

  /** As `Coordination.stop` does, where it has joined: a member whose signal is aborted leaves at once. */
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

/** By its own signal as well. What cannot be is left to `join()` to refuse. */
function abortedBy<O extends JoinOptions | EngineJoinOptions>(aborting: AbortSignal, options: O): O {
  if (!isObject(options)) return options;
  const { signal = aborting } = options;
  return { ...options, signal: signal instanceof AbortSignal ? AbortSignal.any([signal, aborting]) : signal };
}

// What it adds is the whole service's, not of a scope of its own: as the package fastify-plugin says it.
Object.assign(coterie, { [Symbol.for("skip-override")]: true, [Symbol.for("fastify.display-name")]: "coterie" });

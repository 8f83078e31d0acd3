/**
 * A NestJS module that joins a cluster, with health checks and graceful shutdown. It does not import NestJS.
 *
 * @module coterie/nestjs
 */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";
import { Coordination, type Health } from "./coordination.ts";

export { Coordination, type Health } from "./coordination.ts";

/** A dynamic module of NestJS. */
export interface CoterieDynamicModule {
  readonly module: typeof CoterieModule;
  readonly global: true;
  readonly providers: CoterieProvider[];
  readonly exports: (typeof Coordination)[];
}
/** A provider of the module. */
export interface CoterieProvider {
  readonly provide: typeof Coordination | symbol;
  readonly inject: (typeof Coordination | typeof CoterieModule)[];
  readonly useFactory: (
    coordination: Coordination,
    module: CoterieModule,
  ) => Promise<Coordination<Member | EngineMember>> | CoterieLifecycle;
}

/** Options of `CoterieModule.forRoot()`, in addition to the options of `join()`. */
export interface CoterieModuleOptions {
  /**
   * The path of the health check. It answers 200 if this process is ready and 503 otherwise, with `{ ready, why }`. Default
   * `/readyz`; null for none.
   */
  readonly readyPath?: string | null | undefined;
}

/** The part of NestJS's `MiddlewareConsumer` that is used here. */
export interface CoterieRoutes {
  apply(answer: (request: unknown, response: CoterieAnswer) => void): {
    forRoutes(route: { path: string; method: number }): unknown;
  };
}
/** The part of the response of Node's HTTP server that is used here; both Express and Fastify are built on it. */
export interface CoterieAnswer {
  writeHead(status: number, headers: Record<string, string>): { end(body: string): unknown };
}

/** Called by NestJS when the application ends: before connections are closed, and after. */
export interface CoterieLifecycle {
  beforeApplicationShutdown(): void;
  onApplicationShutdown(): Promise<void>;
}

/** The result of a health indicator of `@nestjs/terminus`, release 11 or later. */
export type HealthIndicatorResult = Record<string, { status: "up" } | { status: "down"; message: string }>;

/**
 * A health indicator for `@nestjs/terminus`.
 *
 * @example
 * return this.health.check([healthIndicator(this.coordination)]);
 */
export function healthIndicator(coordination: { health(): Health }, name = "coterie"): () => HealthIndicatorResult {
  return () => {
    const { why } = coordination.health();
    return { [name]: why === null ? { status: "up" } : { status: "down", message: why } };
  };
}

/** The number of GET in NestJS's `RequestMethod`. */
const GET = 0;

/** The module. Import it with `CoterieModule.forRoot()`. */
export class CoterieModule {
  #health: (() => Health) | null = null;
  #readyPath: string | null = null;

  /**
   * Joins before the application starts. `Coordination` can be injected anywhere. When the application ends, work under
   * leadership is aborted first, then connections are closed, and then this process leaves. Call
   * `app.enableShutdownHooks()` to do so on SIGTERM. `GET /readyz` reports whether the process is ready.
   *
   * @example
   * imports: [CoterieModule.forRoot({ id: 1, members, dataDir: "./data" })]
   * @throws the errors of `join()`: the application does not start.
   */
  static forRoot(
    options: JoinOptions | EngineJoinOptions,
    { readyPath = "/readyz" }: CoterieModuleOptions = {},
  ): CoterieDynamicModule {
    const lifecycle = (coordination: Coordination, module: CoterieModule): CoterieLifecycle => {
      module.#health = () => coordination.health();
      module.#readyPath = readyPath;
      return {
        beforeApplicationShutdown: () => coordination.stop(),
        onApplicationShutdown: () => coordination.close(),
      };
    };
    return {
      module: CoterieModule,
      global: true,
      providers: [
        { provide: Coordination, inject: [], useFactory: () => Coordination.join(options) },
        {
          provide: Symbol.for("coterie.lifecycle"),
          inject: [Coordination, CoterieModule],
          useFactory: lifecycle,
        },
      ],
      exports: [Coordination],
    };
  }

  /** Called by NestJS after all injections, before the first request. */
  configure(routes: CoterieRoutes): void {
    const [health, path] = [this.#health, this.#readyPath];
    if (health === null || path === null) return;
    const answer = (_request: unknown, response: CoterieAnswer): void => {
      const { ready, why } = health();
      const headers = { "content-type": "application/json" };
      response.writeHead(ready ? 200 : 503, headers).end(JSON.stringify({ ready, why }));
    };
    routes.apply(answer).forRoutes({ path, method: GET });
  }
}

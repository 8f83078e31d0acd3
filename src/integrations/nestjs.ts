/**
 * A NestJS module that joins a cluster and provides health checks and a graceful shutdown. It does not import NestJS.
 *
 * @module coterie/nestjs
 */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";
import { Coordination, type Health } from "./coordination.ts";

export { Coordination, type Health } from "./coordination.ts";

/** A NestJS dynamic module. */
export interface CoterieDynamicModule {
  /** The class that NestJS instantiates. */
  readonly module: typeof CoterieModule;
  /** Whether its exports can be injected in all of the application's modules. */
  readonly global: true;
  /** The `Coordination`, and the hooks that run when the application shuts down. */
  readonly providers: CoterieProvider[];
  /** The providers that other modules can inject. */
  readonly exports: (typeof Coordination)[];
}
/** A provider of the module. */
export interface CoterieProvider {
  /** The token that identifies the provider in NestJS. */
  readonly provide: typeof Coordination | symbol;
  /** The providers that are passed to `useFactory`. */
  readonly inject: (typeof Coordination | typeof CoterieModule)[];
  /** Creates the provided value. NestJS awaits it before the application starts. */
  readonly useFactory: (
    coordination: Coordination,
    module: CoterieModule,
  ) => Promise<Coordination<Member | EngineMember>> | CoterieLifecycle;
}

/** Options for `CoterieModule.forRoot()`, in addition to the options for `join()`. */
export interface CoterieModuleOptions {
  /**
   * The path of the health check. It responds with 200 if this process is ready and 503 if not, with the body
   * `{ ready, why }`. Null disables it. Default: `/readyz`.
   */
  readonly readyPath?: string | null | undefined;
}

/** The part of NestJS's `MiddlewareConsumer` that is used here. */
export interface CoterieRoutes {
  /** Registers a handler for the routes given in the next call. */
  apply(answer: (request: unknown, response: CoterieAnswer) => void): {
    forRoutes(route: { path: string; method: number }): unknown;
  };
}
/** The part of Node's HTTP response that is used here. Both Express and Fastify are based on it. */
export interface CoterieAnswer {
  /** Sends the status code and the headers. */
  writeHead(status: number, headers: Record<string, string>): { end(body: string): unknown };
}

/** The hooks that NestJS calls when the application shuts down, before and after connections are closed. */
export interface CoterieLifecycle {
  /** Aborts work that requires leadership, while connections are still open. */
  beforeApplicationShutdown(): void;
  /** Leaves the cluster. Resolves once this process has left. */
  onApplicationShutdown(): Promise<void>;
}

/** The result of a health indicator for `@nestjs/terminus` 11 or later. */
export type HealthIndicatorResult = Record<string, { status: "up" } | { status: "down"; message: string }>;

/**
 * Returns a health indicator for `@nestjs/terminus`.
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

/** The value of GET in NestJS's `RequestMethod`. */
const GET = 0;

/** The module. Import it with `CoterieModule.forRoot()`. */
export class CoterieModule {
  #health: (() => Health) | null = null;
  #readyPath: string | null = null;

  /**
   * Joins before the application starts. `Coordination` can be injected anywhere. When the application shuts down, work
   * that requires leadership is aborted first, then connections are closed, and finally this process leaves. Call
   * `app.enableShutdownHooks()` to do this on SIGTERM. `GET /readyz` reports whether the process is ready.
   *
   * @example
   * imports: [CoterieModule.forRoot({ id: 1, members, dataDir: "./data" })]
   * @throws the errors of `join()`. If it throws, the application does not start.
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

  /** Adds the health check. NestJS calls this after all injections, before the first request. */
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

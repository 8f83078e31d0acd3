/**
 * A NestJS module that joins a cluster, with health checks and graceful shutdown. It does not import NestJS.
 *
 * @module coterie/nestjs
 */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";
import { Coordination, type Health } from "./coordination.ts";

export { Coordination, type Health } from "./coordination.ts";

/** A dynamic module, as NestJS takes it. */
export interface CoterieDynamicModule {
  readonly module: typeof CoterieModule;
  readonly global: true;
  readonly providers: CoterieProvider[];
  readonly exports: (typeof Coordination)[];
}
export interface CoterieProvider {
  readonly provide: typeof Coordination | symbol;
  readonly inject: (typeof Coordination | typeof CoterieModule)[];
  readonly useFactory: (
    coordination: Coordination,
    module: CoterieModule,
  ) => Promise<Coordination<Member | EngineMember>> | CoterieLifecycle;
}

export interface CoterieModuleOptions {
  /** Answers 200 where this process is ready, and 503 where it is not, with `{ ready, why }`. Default `/readyz`; null: none. */
  readonly readyPath?: string | null | undefined;
}

/** What is used of NestJS's `MiddlewareConsumer`. */
export interface CoterieRoutes {
  apply(answer: (request: unknown, response: CoterieAnswer) => void): {
    forRoutes(route: { path: string; method: number }): unknown;
  };
}
/** Of Node's HTTP server, which lies below Express and below Fastify. */
export interface CoterieAnswer {
  writeHead(status: number, headers: Record<string, string>): { end(body: string): unknown };
}

/** Called by NestJS as the application ends: before connections are closed, and after. */
export interface CoterieLifecycle {
  beforeApplicationShutdown(): void;
  onApplicationShutdown(): Promise<void>;
}

/** As `@nestjs/terminus` takes it, from its release 11 on. */
export type HealthIndicatorResult = Record<string, { status: "up" } | { status: "down"; message: string }>;

/**
 * For a health check of `@nestjs/terminus`, beside those of what else the application needs.
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

/** Its number in NestJS's `RequestMethod`. */
const GET = 0;

export class CoterieModule {
  #health: (() => Health) | null = null;
  #readyPath: string | null = null;

  /**
   * Joins before the application starts. `Coordination` can be injected anywhere; as the application ends, what leads is aborted first, connections
   * are closed, and then this process leaves. `app.enableShutdownHooks()` has that done on SIGTERM. `GET /readyz` says whether it is ready.
   *
   * @example
   * imports: [CoterieModule.forRoot({ id: 1, members, dataDir: "./data" })]
   * @throws what `join()` throws: the application does not start.
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

  /** Called by NestJS before it serves anything, with everything injected. */
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

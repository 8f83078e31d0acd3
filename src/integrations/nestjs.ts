/** `coterie/nestjs`: a module that makes a NestJS application a member, with shutdown wired in. It imports nothing of NestJS. */
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";
import { Coordination } from "./coordination.ts";

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
  readonly inject: (typeof Coordination)[];
  readonly useFactory: (...injected: Coordination[]) => Promise<Coordination<Member | EngineMember>> | CoterieLifecycle;
}

/** Called by NestJS as the application ends: before connections are closed, and after. */
export interface CoterieLifecycle {
  beforeApplicationShutdown(): void;
  onApplicationShutdown(): Promise<void>;
}

// biome-ignore lint/complexity/noStaticOnlyClass: NestJS names a module by a class.
export class CoterieModule {
  /**
   * Joins before the application starts. `Coordination` can be injected anywhere; as the application ends, what leads is aborted first, connections
   * are closed, and then this process leaves. `app.enableShutdownHooks()` has that done on SIGTERM.
   *
   * @example
   * imports: [CoterieModule.forRoot({ id: 1, members, dataDir: "./data" })]
   * @throws what `join()` throws: the application does not start.
   */
  static forRoot(options: JoinOptions | EngineJoinOptions): CoterieDynamicModule {
    const lifecycle = (coordination: Coordination): CoterieLifecycle => ({
      beforeApplicationShutdown: () => coordination.stop(),
      onApplicationShutdown: () => coordination.close(),
    });
    return {
      module: CoterieModule,
      global: true,
      providers: [
        { provide: Coordination, inject: [], useFactory: () => Coordination.join(options) },
        {
          provide: Symbol.for("coterie.lifecycle"),
          inject: [Coordination],
          useFactory: (coordination) => lifecycle(coordination),
        },
      ],
      exports: [Coordination],
    };
  }
}

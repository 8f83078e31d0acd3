/**
 * The same service as examples/service.ts, with NestJS. Install Coterie (docs/guide/getting-started.md), run
 * `npm install @nestjs/core @nestjs/common @nestjs/platform-express reflect-metadata rxjs`, enable
 * `experimentalDecorators`, and start it three times, with 1, 2 and 3.
 */
import "reflect-metadata";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Body,
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  type OnApplicationBootstrap,
  Param,
  Post,
  Put,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Coordination, CoterieModule } from "coterie/nestjs";

const id = Number(process.argv[2] ?? 1);
const http: Record<number, string> = { 1: "127.0.0.1:7261", 2: "127.0.0.1:7262", 3: "127.0.0.1:7263" };
const port = Number(http[id]?.split(":")[1]);

@Injectable()
class Settings implements OnApplicationBootstrap {
  readonly latest = new Map<string, string>();
  constructor(@Inject(Coordination) private readonly coordination: Coordination) {}

  put(key: string, value: string): Promise<unknown> {
    return this.coordination.member.map<string>("settings").put(key, value, { timeoutMs: 5_000 });
  }

  onApplicationBootstrap(): void {
    const { signal } = this.coordination;
    this.#follow(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const settings = this.coordination.member.map<string>("settings");
    const { entries, revision } = await settings.range({ timeoutMs: Number.POSITIVE_INFINITY });
    for (const { key, value } of entries) this.latest.set(key, value);
    for await (const change of settings.watch({ after: revision, signal })) {
      if (change.type === "put") this.latest.set(change.key, change.value);
      else this.latest.delete(change.key);
    }
  }
}

@Injectable()
class Scheduler implements OnApplicationBootstrap {
  constructor(@Inject(Coordination) private readonly coordination: Coordination) {}

  onApplicationBootstrap(): void {
    void this.coordination.lead("scheduler", async ({ signal, token }) => {
      while (!signal.aborted) {
        console.log(`member ${id} runs the schedule under token ${token}`);
        await sleep(200, undefined, { signal });
      }
    });
  }
}

@Controller()
class Service {
  constructor(
    @Inject(Coordination) private readonly coordination: Coordination,
    @Inject(Settings) private readonly settings: Settings,
  ) {}

  @Get("settings")
  all(): object {
    return Object.fromEntries(this.settings.latest);
  }

  @Put("settings/:key")
  async put(@Param("key") key: string, @Body("value") value: string): Promise<object> {
    await this.settings.put(key, value);
    return { key, value };
  }

  @Post("job")
  job(): Promise<object> {
    return this.coordination.member.mutex("job").use(({ token }) => ({ token }), { timeoutMs: 5_000 });
  }
}

@Module({
  imports: [
    CoterieModule.forRoot({
      id,
      members: { 1: "127.0.0.1:7251", 2: "127.0.0.1:7252", 3: "127.0.0.1:7253" },
      dataDir: "data-{id}",
    }), // This also serves GET /readyz.
  ],
  controllers: [Service],
  providers: [Settings, Scheduler],
})
class App {}

const app = await NestFactory.create(App, { logger: ["error"] });
app.enableShutdownHooks();
await app.listen(port, "127.0.0.1");

/** Checks the integrations: with plain services in virtual time, and with Fastify and NestJS. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import Fastify from "fastify";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { SimulatedEngine } from "../../test/engines/simulated-engine.ts";
import { freePorts } from "../../test/network/free-ports.ts";
import type { EngineJoinOptions, EngineMember } from "../index.ts";
import { simulate } from "../testing/index.ts";
import { Coordination } from "./coordination.ts";
import { type CoterieFastifyOptions, coterie } from "./fastify.ts";
import { CoterieModule, type CoterieModuleOptions, healthIndicator } from "./nestjs.ts";
import "reflect-metadata";

const folder = mkdtempSync(path(tmpdir(), "coterie-integrations-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns options for a group with only one member, which is its own majority. */
async function options(name: string) {
  const [port = 0] = await freePorts(1);
  return { id: 1, members: { 1: `127.0.0.1:${port}` }, dataDir: path(folder, name) };
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });

test("one of three does the work; when its service shuts down, its signal is aborted, and another takes over", async () => {
  const log: string[] = [];
  const services = new Map<number, Coordination>();
  const world = simulate({
    members: 3,
    seed: 1,
    async program(member) {
      const service = new Coordination(member);
      services.set(member.id, service);
      await service.lead("scheduler", async ({ signal }) => {
        log.push(`${member.id} leads`);
        await untilAborted(signal);
        log.push(`${member.id} is told`);
      });
      log.push(`${member.id} is done`);
    },
  });
  await world.run(async () => {
    while (log.length === 0) await world.sleep(50);
    const first = Number(log[0]?.[0]);
    expect(services.get(first)?.health()).toEqual({ ready: true, why: null });
    await services.get(first)?.close();
    expect(services.get(first)?.health().ready).toBe(false);
    while (log.length < 4) await world.sleep(50);
    expect(log).toContain(`${first} is told`);
    expect(log).toContain(`${first} is done`);
    expect(log.filter((line) => line.endsWith("leads"))).toHaveLength(2);
  });
});

test("a member without a majority is not ready, loses its leadership, and leads again", async () => {
  const log: string[] = [];
  const services = new Map<number, Coordination>();
  const world = simulate({
    members: 3,
    seed: 2,
    async program(member) {
      const service = new Coordination(member);
      services.set(member.id, service);
      if (member.id !== 1) return;
      await service.lead("scheduler", async ({ signal }) => {
        log.push("leads");
        await untilAborted(signal);
        log.push("lost");
      });
    },
  });
  await world.run(async () => {
    while (log.length === 0) await world.sleep(50);
    world.partition([1], [2, 3]);
    while (log.length < 2) await world.sleep(50);
    while (services.get(1)?.health().ready === true) await world.sleep(50);
    expect(services.get(1)?.health().why).toMatch(/not a majority/);
    world.heal();
    while (log.length < 3) await world.sleep(50);
    expect(log).toEqual(["leads", "lost", "leads"]);
    await services.get(1)?.close();
  });
});

test("with an engine: ready while it has the session, leads, and another leads as soon as this one closes", async () => {
  const engine = new SimulatedEngine(5);
  await engine.run(async () => {
    const [a, b] = [new Coordination(await engine.join()), new Coordination(await engine.join())];
    const log: string[] = [];
    const lead = (name: string, service: typeof a): void =>
      void service.lead("scheduler", async ({ signal }) => {
        log.push(`${name} leads`);
        await untilAborted(signal);
        log.push(`${name} is told`);
      });
    lead("a", a);
    while (log.length < 1) await engine.sleep(50);
    lead("b", b);
    expect([a.health(), b.health()]).toEqual(Array(2).fill({ ready: true, why: null }));
    engine.isDown = true;
    while (log.length < 2) await engine.sleep(50);
    await engine.sleep(2_000);
    expect(b.health()).toEqual({ ready: false, why: "has no session with simulated" });
    engine.isDown = false;
    while (log.length < 3) await engine.sleep(50);
    const [first, other] = log[2] === "a leads" ? [a, b] : [b, a];
    await first.close();
    expect(first.health().ready).toBe(false);
    while (log.length < 5) await engine.sleep(50);
    expect(log[4]).not.toBe(log[2]);
    await other.close();
  });
});

test("finished work is not repeated, and its errors while it leads are thrown", async () => {
  const thrown: unknown[] = [];
  let done = 0;
  const world = simulate({
    members: 1,
    seed: 3,
    async program(member) {
      const service = new Coordination(member);
      await service.lead("report", () => {
        done += 1;
      });
      await service
        .lead("scheduler", () => Promise.reject(new Error("the schedule is wrong")))
        .catch((error: unknown) => void thrown.push(error));
    },
  });
  await world.run(async () => {
    while (thrown.length === 0) await world.sleep(50);
    expect(done).toBe(1);
    expect(thrown).toMatchObject([{ message: "the schedule is wrong" }]);
  });
});

test("Fastify: ready, leads, and releases on close", async () => {
  const app = Fastify();
  await app.register(coterie, { join: await options("fastify") });
  const coordination = (app as unknown as { coterie: Coordination }).coterie;
  await coordination.member.ready();
  expect((await app.inject("/readyz")).json()).toEqual({ ready: true, why: null });
  const told = new Promise<void>((resolve) => {
    void coordination.lead("scheduler", async ({ signal }) => {
      void app.close();
      await untilAborted(signal);
      resolve();
    });
  });
  await told;
  await app.close();
  expect(coordination.member.status().state).toBe("left");
});

describe("Fastify closes while it joins an engine", () => {
  /** Creates an engine whose answers are controlled by the test. */
  function lateEngine() {
    const member = {
      engine: "late",
      hasSession: true,
      signal: new AbortController().signal,
      leave: () => {
        late.hasLeft = true;
        return Promise.resolve();
      },
    };
    const late = {
      hasLeft: false,
      asked: [] as EngineJoinOptions[],
      answer: (): void => {},
      engine: {
        name: "late",
        join: (_platform: unknown, options: EngineJoinOptions) => {
          late.asked.push(options);
          return new Promise<EngineMember>((resolve) => {
            late.answer = () => resolve(member as unknown as EngineMember);
          });
        },
      },
    };
    return late;
  }

  test("the join is aborted after the plugin timeout, and a member of a late engine leaves", async () => {
    const late = lateEngine();
    const app = Fastify({ pluginTimeout: 20 });
    const own = new AbortController();
    void app.register(coterie, { join: { engine: late.engine, signal: own.signal } });
    await expect(app.ready()).rejects.toMatchObject({ code: "FST_ERR_PLUGIN_TIMEOUT" });
    const closed = app.close();
    await untilAborted(late.asked[0]?.signal as AbortSignal);
    expect(own.signal.aborted).toBe(false);
    late.answer();
    await closed;
    expect(late.hasLeft).toBe(true);
  });

  test("the caller's signal aborts the join as well, and it gives up before Fastify does", async () => {
    const late = lateEngine();
    const app = Fastify();
    const own = new AbortController();
    const ready = app.register(coterie, { join: { engine: late.engine, signal: own.signal } }).ready();
    while (late.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(late.asked[0]?.timeoutMs).toBeLessThan(app.initialConfig.pluginTimeout as number);
    const told = untilAborted(late.asked[0]?.signal as AbortSignal);
    own.abort();
    await told;
    late.answer();
    await ready;
    await app.close();
    const other = lateEngine();
    void Fastify()
      .register(coterie, { join: { engine: other.engine, timeoutMs: 30_000 } })
      .ready();
    while (other.asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(other.asked[0]?.timeoutMs).toBe(30_000);
    other.answer();
  });

  test("invalid options are rejected as by join()", async () => {
    const app = Fastify();
    void app.register(coterie, { join: undefined } as unknown as CoterieFastifyOptions);
    await expect(app.ready()).rejects.toMatchObject({ name: "UsageError" });
    const controller = new AbortController();
    const other = Fastify();
    const join = { ...(await options("signal")), signal: controller as unknown as AbortSignal };
    void other.register(coterie, { join });
    await expect(other.ready()).rejects.toThrow("pass its signal");
  });
});

test("NestJS: injected, leads, and releases on close", async () => {
  class App {}
  Module({ imports: [CoterieModule.forRoot(await options("nestjs"))] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const coordination = app.get<Coordination>(Coordination);
  await coordination.member.ready();
  expect(coordination.health()).toEqual({ ready: true, why: null });
  let wasTold = false;
  await new Promise<void>((resolve) => {
    void coordination.lead("scheduler", async ({ signal }) => {
      resolve();
      await untilAborted(signal);
      wasTold = true;
    });
  });
  await app.close();
  expect(wasTold).toBe(true);
  expect(coordination.member.status().state).toBe("left");
});

describe("NestJS serves", () => {
  async function served(name: string, module?: CoterieModuleOptions) {
    class App {}
    Module({ imports: [CoterieModule.forRoot(await options(name), module)] })(App);
    const app = await NestFactory.create(App, { logger: false });
    const listening = app.setGlobalPrefix("api").listen(0, "127.0.0.1");
    onTestFinished(() => app.close());
    await listening;
    const coordination = app.get<Coordination>(Coordination);
    await coordination.member.ready();
    return { coordination, ask: async (path: string) => fetch(`${await app.getUrl()}/api${path}`) };
  }

  test("at /readyz whether this process is ready, and no longer when it shuts down", async () => {
    const { coordination, ask } = await served("nestjs-ready");
    const [ready, up] = [await ask("/readyz"), healthIndicator(coordination)()];
    expect([ready.status, await ready.json()]).toEqual([200, { ready: true, why: null }]);
    expect(up).toEqual({ coterie: { status: "up" } });
    coordination.stop();
    const why = "this process is shutting down";
    const [late, down] = [await ask("/readyz"), healthIndicator(coordination, "group")()];
    expect([late.status, await late.json()]).toEqual([503, { ready: false, why }]);
    expect(down).toEqual({ group: { status: "down", message: why } });
  });

  test("the same at another path, or not at all", async () => {
    const { ask } = await served("nestjs-other", { readyPath: "/health/ready" });
    expect([(await ask("/health/ready")).status, (await ask("/readyz")).status]).toEqual([200, 404]);
    const none = await served("nestjs-none", { readyPath: null });
    expect((await none.ask("/readyz")).status).toBe(404);
  });
});

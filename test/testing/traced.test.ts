/** Checks the spans around calls of members, in virtual time. */

import { AsyncLocalStorage } from "node:async_hooks";
import { text } from "node:stream/consumers";
import type { Tracer as OpenTelemetryTracer } from "@opentelemetry/api";
import { expect, test } from "vitest";
import { type Span, type Tracer, traced } from "../../src/index.ts";
import { simulate } from "../../src/testing/index.ts";

interface Noted {
  readonly name: string;
  readonly parent: string | null;
  readonly attributes: Record<string, string | number>;
  readonly events: unknown[];
  status: string | null;
  isOver: boolean;
}

/** Records spans. The active span becomes the parent of new spans. */
function recorder(): { tracer: Tracer; spans: Noted[] } {
  const active = new AsyncLocalStorage<Noted>();
  const spans: Noted[] = [];
  const tracer: Tracer = {
    startActiveSpan(name, { attributes }, work) {
      const parent = active.getStore()?.name ?? null;
      const noted: Noted = { name, parent, attributes: { ...attributes }, events: [], status: null, isOver: false };
      spans.push(noted);
      const span: Span = {
        setAttributes: (more) => Object.assign(noted.attributes, more),
        addEvent: (event, more) => noted.events.push([event, more]),
        recordException: ({ name: error }) => noted.events.push(error),
        setStatus: ({ code, message }) => {
          noted.status = `${code} ${message}`;
        },
        end: () => {
          noted.isOver = true;
        },
      };
      return active.run(noted, () => work(span) as ReturnType<typeof work>);
    },
  };
  return { tracer, spans };
}

test("accepts a tracer of OpenTelemetry", () => {
  const asOurs = (tracer: OpenTelemetryTracer): Tracer => tracer;
  expect(asOurs).toBeTypeOf("function");
});

test("a call has a span with the name of its object, and calls within work are its children", async () => {
  const { tracer, spans } = recorder();
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const member = traced(world.member(1), tracer);
    const stock = member.map<number>("stock");
    const token = await member.mutex("invoice").use(async (grant) => {
      await stock.put("apples", 3);
      return grant.token;
    });
    await member.transaction((transaction) => transaction.put(stock, "pears", 5));
    expect(await stock.get("pears")).toBe(5);
    expect(member.status().id).toBe(1);
    expect((await member.cluster.members()).length).toBe(3);
    expect(await text(await member.cluster.snapshot())).toContain("apples");
    const granted = [["granted", { "coterie.token": token }]];
    const plain = { parent: null, attributes: {}, events: [], status: null, isOver: true };
    expect(spans).toEqual([
      { ...plain, name: "coterie.mutex.use", attributes: { "coterie.name": "invoice" }, events: granted },
      { ...plain, name: "coterie.map.put", parent: "coterie.mutex.use", attributes: { "coterie.name": "stock" } },
      { ...plain, name: "coterie.transaction" },
      { ...plain, name: "coterie.map.get", attributes: { "coterie.name": "stock" } },
      { ...plain, name: "coterie.cluster.members" },
      { ...plain, name: "coterie.cluster.snapshot" },
    ]);
  });
});

test("a failed call has its error code in the span and rethrows the error", async () => {
  const { tracer, spans } = recorder();
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const lock = await traced(world.member(1), tracer).mutex("invoice").acquire();
    const waiting = traced(world.member(2), tracer).mutex("invoice").acquire({ timeoutMs: 100 });
    await expect(waiting).rejects.toMatchObject({ code: "acquire-timeout" });
    await lock.release();
  });
  expect(spans.map(({ attributes }) => attributes["error.type"])).toEqual([undefined, "acquire-timeout"]);
  expect(spans[0]?.events).toMatchObject([["granted", {}]]);
  expect(spans[1]).toMatchObject({ events: ["CoordinationError"], isOver: true });
  expect(spans[1]?.status).toMatch(/^2 .*was not acquired within 100 ms/);
});

test("iterators and local functions stay unchanged", async () => {
  const { tracer, spans } = recorder();
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const member = traced(world.member(1), tracer);
    await using room = member.channel<string>("room", { order: "fifo" });
    await room.send("hello");
    for await (const { payload } of room) {
      expect(payload).toBe("hello");
      break;
    }
    const changes = member.map<number>("stock").watch({ after: 0 });
    await member.map<number>("stock").put("apples", 1);
    expect((await changes.next()).value).toMatchObject({ key: "apples", value: 1 });
    expect(member.signal.aborted).toBe(false);
  });
  expect(spans.map(({ name }) => name)).toEqual(["coterie.channel.send", "coterie.map.put"]);
});

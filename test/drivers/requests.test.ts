/**
 * Checks commands with answers, in all drivers and through assemblies, and the errors for an author's mistakes with
 * them.
 */
import { describe, expect, it } from "vitest";
import { counterexample, explore } from "../../src/check/index.ts";
import { assemble, type Context, InvariantViolation, natural, type Protocol } from "../../src/core/index.ts";
import { basicMulticast } from "../../src/protocols/multicast/basic-multicast.ts";
import { over } from "../../src/protocols/multicast/parts/layers.ts";
import { simulation, type TraceEntry } from "../../src/sim/index.ts";
import { replay } from "../../src/trace/replay.ts";
import { type Counter, forwardedCounter } from "./forwarded-counter.ts";
import { hostsInMemory } from "./hosts-in-memory.ts";

const nodes = [0, 1, 2];
const add = (request: number, by: number) => ({ type: "add" as const, request, by });
const model = { nodes, network: "fifo", timers: "never", begin: "idle" } as const;

describe("a counter at another node", () => {
  it("answers in the simulator, once even if every message is duplicated, and the recording replays", () => {
    const entries: TraceEntry<Counter>[] = [];
    const trace = (entry: TraceEntry<Counter>): void => void entries.push(entry);
    const link = { duplicateRate: 1 };
    const sim = simulation({ protocol: forwardedCounter, nodes, seed: 1, delayMs: 1, link, trace });
    for (const node of nodes) sim.wake(node);
    sim.command(1, add(1, 5));
    sim.run();
    sim.command(1, add(2, 1));
    sim.command(0, add(1, 3));
    sim.run();
    const sums = nodes.map((node) => sim.replies(node).map(({ request, reply }) => [request, reply.sum]));
    expect(sums).toEqual([[[1, 13]], [[1, 5], [2, 14]], []]); // biome-ignore format: one list for each node
    expect(sim.verdict()).toEqual([]);
    const replayed = replay(forwardedCounter, nodes, entries);
    expect([replayed.verdict, replayed.doubts]).toEqual(["holds", []]);
    const forged = entries.map(
      (entry): TraceEntry<Counter> =>
        entry.kind === "event" && entry.request === 2 ? { ...entry, event: { type: "sum", sum: 7 } } : entry,
    );
    expect(replay(forwardedCounter, nodes, forged).doubts[0]?.sentence).toContain('reply {"sum":14,"type":"sum"}');
  });

  it("drops a reply to a request from before a crash, in the simulator", () => {
    const stubborn = journalling();
    const sim = simulation({ protocol: stubborn, nodes, seed: 1, delayMs: 1 });
    for (const node of nodes) sim.wake(node);
    sim.command(1, add(1, 5));
    sim.crash(1);
    sim.start(1);
    sim.run();
    expect([sim.world.state(1).waiting, sim.replies(1)]).toEqual([[], []]);
  });

  it("holds in the checker, with duplicates, losses and crashes", () => {
    const asks = (node: number) => (node === 1 ? [add(1, 2), add(2, 3)] : node === 2 ? [add(1, 1)] : []);
    const safety = forwardedCounter.properties.filter(({ when }) => when === "always");
    const calm = explore({ ...model, protocol: forwardedCounter, asks });
    // Two concurrent requests are answered in order, since links are FIFO.
    expect([calm.verdict, calm.property?.name]).toEqual(["holds", undefined]);
    const faults = { duplications: 1, losses: 1, crashes: 1, recoveries: 1 };
    const stormy = explore({ ...model, protocol: forwardedCounter, asks, properties: safety, ...faults, crashes: 0 });
    expect([stormy.verdict, stormy.property?.name]).toEqual(["holds", undefined]);
    const wrong = explore({ ...model, protocol: forwardedCounter, asks, properties: safety, ...faults });
    expect(wrong.property?.name).toBe("sums grow"); // Node 0 crashes and starts again from 0.
    const { entries } = counterexample({ ...model, protocol: forwardedCounter, asks, ...faults }, wrong);
    expect(entries.some((entry) => entry.kind === "event" && entry.request !== undefined)).toBe(true);
    expect(replay(forwardedCounter, nodes, entries as TraceEntry<Counter>[]).doubts).toEqual([]);
  });

  it("drops a reply to a request from before a crash, in the checker", () => {
    const asks = (node: number) => (node === 1 ? [add(1, 2)] : []);
    const found = explore({ ...model, protocol: journalling(), asks, properties: [], crashes: 2, recoveries: 2 });
    expect(found.verdict).toBe("holds");
  });

  it("answers on hosts by a promise, and a stopped node answers no more", async () => {
    const { hosts, deliver } = hostsInMemory(forwardedCounter, nodes);
    const sum = hosts.get(1)?.request({ type: "add", by: 5 });
    deliver();
    expect(await sum).toEqual({ type: "sum", sum: 5 });
    const unheard = hosts.get(2)?.request({ type: "add", by: 5 });
    hosts.get(2)?.stop();
    await expect(unheard).rejects.toMatchObject({ code: "stopped" });
    await expect(hosts.get(1)?.request({ type: "add", by: -5 })).rejects.toMatchObject({
      code: "bad-command",
    });
    // A command from outside may carry any id: the host assigns its own.
    for (const again of [1, 2]) hosts.get(0)?.command(add(1, again));
    deliver();
  });

  it("answers as a part of an assembly, whose properties see it", async () => {
    const whole = assemble("counters", { a: forwardedCounter, b: forwardedCounter }, {}, { face: "a" });
    const asks = (node: number) => (node === 1 ? [{ type: "b" as const, body: add(1, 2) }] : []);
    expect(explore({ ...model, protocol: whole, asks }).verdict).toBe("holds");
    const sim = simulation({ protocol: whole, nodes, seed: 1, delayMs: 1 });
    for (const node of nodes) sim.wake(node);
    sim.command(1, { type: "b", body: add(7, 2) });
    sim.run();
    expect(sim.replies(1)).toEqual([{ request: 7, reply: { type: "b", body: { type: "sum", sum: 2 } } }]);
    const { hosts, deliver } = hostsInMemory(whole, nodes);
    const sum = hosts.get(2)?.request({ type: "b", body: { type: "add", by: 4 } });
    deliver();
    expect(await sum).toEqual({ type: "b", body: { type: "sum", sum: 4 } });
  });
});

it("an order over a multicast answers as it does alone", async () => {
  const layered = over(forwardedCounter, (payload) => basicMulticast({}, payload));
  const sim = simulation({ protocol: layered, nodes, seed: 1, delayMs: 1 });
  for (const node of nodes) sim.wake(node);
  sim.command(1, add(7, 2));
  sim.run();
  expect(sim.replies(1)).toEqual([{ request: 7, reply: { type: "sum", sum: 2 } }]);
  const { hosts, deliver } = hostsInMemory(layered, nodes);
  const sum = hosts.get(2)?.request({ type: "add", by: 4 });
  deliver();
  expect(await sum).toEqual({ type: "sum", sum: 4 });
});

it("is rejected on a host that stops before its journal is durable", async () => {
  const written = { records: [], append() {}, compact() {}, whenDurable() {}, release() {} };
  const protocol = journalling({
    add(_state, { request }, ctx) {
      ctx.persist({ type: "asked", request });
      ctx.reply(request, { type: "sum", sum: 1 });
    },
  });
  const { hosts } = hostsInMemory(protocol, nodes, () => ({ slot: written }));
  const sum = hosts.get(1)?.request({ type: "add", by: 1 });
  hosts.get(1)?.stop();
  await expect(sum).rejects.toMatchObject({ code: "stopped" });
});

/** A counter that journals its requests and answers them after a restart. */
type Remembering = Counter & { record: { type: "asked"; request: number } };
function journalling(asked?: Protocol<Remembering>["command"]) {
  const { command, properties: _none, ...rest } = forwardedCounter;
  const protocol: Protocol<Remembering> = {
    ...(rest as unknown as Protocol<Remembering>),
    properties: [],
    command: asked ?? {
      add(state, given, ctx) {
        ctx.persist({ type: "asked", request: given.request });
        command.add(state, given, ctx);
      },
    },
    replay: { asked: (state, { request }) => void state.waiting.push(request) },
    start(state, ctx) {
      for (const request of state.waiting.splice(0)) ctx.reply(request, { type: "sum", sum: 0 });
    },
    shapes: { ...rest.shapes, record: { asked: { request: natural } } },
  };
  return protocol;
}

type Act = (ctx: Context<Counter>) => void;
const mistakes: [what: string, code: string, act: Act][] = [
  ["answers a request that does not exist", "unknown-request", (ctx) => ctx.reply(2 ** 52, { type: "sum", sum: 1 })],
  ["answers with a value that does not match its shape", "bad-reply", (ctx) => ctx.reply(1, { type: "sum", sum: -1 })],
];

describe.each([...mistakes, ["answers twice", "answered-twice", null] as const])(
  "an algorithm that %s",
  (_what, code, act) => {
    const protocol: Protocol<Counter> = {
      ...forwardedCounter,
      command: {
        add(_state, { request }, ctx) {
          if (act !== null) return act(ctx);
          for (const sum of [1, 2]) ctx.reply(request, { type: "sum", sum });
        },
      },
    };
    const refused = expect.objectContaining({ code });
    const thrownBy = (run: () => unknown): unknown => {
      try {
        run();
      } catch (error) {
        return error;
      }
      return null;
    };

    it("is rejected in the simulator, in the checker and on a host", () => {
      const sim = simulation({ protocol, nodes, seed: 1, delayMs: 1 });
      for (const node of nodes) sim.wake(node);
      const { hosts } = hostsInMemory(protocol, nodes);
      const errors = [
        thrownBy(() => sim.command(0, add(1, 1))),
        explore({ ...model, protocol, asks: () => [add(1, 1)] }).failure?.error,
        thrownBy(() => hosts.get(0)?.command(add(1, 1))),
      ];
      for (const error of errors) {
        expect(error).toEqual(refused);
        expect(error).toBeInstanceOf(InvariantViolation);
      }
    });
  },
);

it("a repeated request id is rejected", () => {
  const sim = simulation({ protocol: forwardedCounter, nodes, seed: 1, delayMs: 1 });
  for (const node of nodes) sim.wake(node);
  sim.command(1, add(1, 1));
  expect(() => sim.command(1, add(1, 1))).toThrow(
    "expected the request id to be one that the node has not received before, got 1",
  );
});

/** Checks that all drivers reject an author's mistakes with the same code, and allow the same actions. */
import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/index.ts";
import { type Context, InvariantViolation, natural, type Protocol, text } from "../../src/core/index.ts";
import { simulation } from "../../src/sim/index.ts";
import { hostsInMemory } from "./hosts-in-memory.ts";

type Toy = {
  state: { heard: number[] };
  message: { type: "number"; number: number; word: string };
  timer: "wait";
  command: { type: "act" };
  record: { type: "noted"; number: number };
};
type Act = (ctx: Context<Toy>, state: Toy["state"]) => void;

const toy = (act: Act, replay = true): Protocol<Toy> => ({
  name: "toy",
  init: () => ({ heard: [] }),
  receive: { number: (state, from, { number }) => void state.heard.push(from, number) },
  timeout: { wait() {} },
  command: { act: (state, _command, ctx) => act(ctx, state) },
  replay: (replay ? { noted() {} } : {}) as Protocol<Toy>["replay"],
  shapes: {
    message: { number: { number: natural, word: text(4) } },
    command: { act: {} },
    record: { noted: { number: natural } },
  },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "toy" }),
});

const send =
  (number: number, word = "", to = 1): Act =>
  (ctx) =>
    ctx.send(to, { type: "number", number, word });
const mistakes: [what: string, code: string, act: Act, replay?: boolean][] = [
  ["sends to a node that does not exist", "unknown-receiver", send(1, "", 9)],
  ["sends something other than a natural number", "bad-message", send(-1)],
  ["sends a number that is none", "bad-message", send(Number.NaN)],
  ["sends a text that is too long", "bad-message", send(1, "fünf!")],
  [
    "broadcasts a message without a field",
    "bad-message",
    (ctx) => ctx.broadcast({ type: "number", number: 1 } as never),
  ],
  ["sends an undeclared message", "bad-message", (ctx) => ctx.broadcast({ type: "word" } as never)],
  ["waits for no duration", "bad-timer", (ctx) => ctx.setTimer("wait", -1)],
  ["waits for a range that is none", "bad-timer", (ctx) => ctx.setTimer("wait", [5, 1])],
  ["chooses among nothing", "no-choice", (ctx) => void ctx.choose("which", [])],
  [
    "journals a record that does not match its shape",
    "bad-record",
    (ctx) => ctx.persist({ type: "noted", number: 0.5 }),
  ],
  ["replaces its journal by nothing", "bad-compaction", (ctx) => ctx.compact([])],
  ["journals, and could not replay it", "no-replay", (ctx) => ctx.persist({ type: "noted", number: 1 }), false],
];

describe.each(mistakes)("an algorithm that %s", (_what, code, act, replay) => {
  const protocol = toy(act, replay);
  const refused = expect.objectContaining({ code });
  const thrownBy = (run: () => unknown): unknown => {
    try {
      run();
    } catch (error) {
      return error;
    }
    return null;
  };

  it("is rejected in the simulator", () => {
    const sim = simulation({ protocol, nodes: [0, 1], seed: 1, delayMs: 1 });
    for (const node of [0, 1]) sim.wake(node);
    const error = thrownBy(() => sim.command(0, { type: "act" }));
    expect(error).toEqual(refused);
    expect(error).toBeInstanceOf(InvariantViolation);
  });

  it("is rejected in the checker", () => {
    const asks = (node: number): Toy["command"][] => (node === 0 ? [{ type: "act" }] : []);
    const model = { protocol, nodes: [0, 1], network: "fifo", timers: "never", begin: "idle", asks } as const;
    const { verdict, failure } = explore({ ...model, crashes: 1, recoveries: 1 });
    expect(verdict).toBe("violated");
    const error = failure?.error;
    expect(error).toEqual(refused);
    expect(error).toBeInstanceOf(InvariantViolation);
  });

  it("is rejected on a host", () => {
    const { hosts } = hostsInMemory(protocol, [0, 1]);
    const error = thrownBy(() => hosts.get(0)?.command({ type: "act" }));
    expect(error).toEqual(refused);
    expect(error).toBeInstanceOf(InvariantViolation);
  });
});

describe("a message to itself arrives in a step of its own", () => {
  let heardMeanwhile: number[] = [];
  const protocol = toy((ctx, state) => {
    const message = { type: "number" as const, number: 5, word: "" };
    ctx.send(ctx.self, message);
    message.number = 6;
    heardMeanwhile = [...state.heard];
  });

  it("in the simulator, and is not counted", () => {
    const sim = simulation({ protocol, nodes: [0, 1], seed: 1, delayMs: 1 });
    for (const node of [0, 1]) sim.wake(node);
    sim.command(0, { type: "act" });
    sim.run();
    expect([heardMeanwhile, sim.world.state(0).heard]).toEqual([[], [0, 5]]);
    expect(sim.messages.total).toBe(0);
  });

  it("in the checker", () => {
    const asks = (node: number): Toy["command"][] => (node === 0 ? [{ type: "act" }] : []);
    const heard = {
      name: "heard",
      claim: "it hears itself",
      when: "eventually" as const,
      holds: ({ state }: { state(node: number): Toy["state"] }) => state(0).heard.join() === "0,5",
    };
    const model = { protocol, nodes: [0, 1], network: "fifo", timers: "never", begin: "idle", asks } as const;
    expect(explore({ ...model, properties: [heard] }).verdict).toBe("holds");
  });

  it("on a host", async () => {
    const { hosts, state, deliver } = hostsInMemory(protocol, [0, 1]);
    hosts.get(0)?.command({ type: "act" });
    deliver();
    await new Promise((done) => setImmediate(done));
    expect([heardMeanwhile, state(0).heard]).toEqual([[], [0, 5]]);
  });
});

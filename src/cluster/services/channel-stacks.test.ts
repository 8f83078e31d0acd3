/**
 * What well-formed messages with invalid values do to a member: nothing. A channel's messages come from other members, or from whoever has
 * their key: whatever numbers they carry, no step may fail, and what is sent has the shape that it is declared to have.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Context, Vocabulary } from "../../core/protocol.ts";
import { problem, type ShapeNode, type Shapes, variants } from "../../core/shape.ts";
import { idealSignatures } from "../../core/signatures.ts";
import { dispatch, type Stimulus } from "../../core/step.ts";
import type { AnyProtocol } from "../../protocols/index.ts";
import { stacks } from "../../protocols/multicast/family/stacks.ts";
import { viewSynchrony } from "../../protocols/multicast/view-synchrony.ts";

const PEERS = [2, 3];

/** Numbers as they are used, and such as nobody comes to. */
const naturals = fc.oneof(
  { weight: 3, arbitrary: fc.nat(5) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(300, 2 ** 31, 2 ** 52, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER),
  },
);
const texts = fc.constantFrom("", "a", "1 1 [1]", "1 1 [", "x".repeat(50));

/** Any value of the shape. */
function valuesOf(shape: ShapeNode): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case "natural":
      return naturals;
    case "real":
      return fc.constantFrom(0, -1, 1e9);
    case "boolean":
      return fc.boolean();
    case "text":
      return texts;
    case "oneOf":
      return fc.constantFrom(...shape.values);
    case "nullable":
      return fc.option(valuesOf(shape.value));
    case "list":
      return fc.array(valuesOf(shape.items), { maxLength: Math.min(shape.maxItems, 4) });
    case "perNode":
      return fc.dictionary(fc.nat(4).map(String), valuesOf(shape.value), { maxKeys: shape.maxNodes });
    case "struct":
      return fc.record(mapped(shape.fields));
    case "variants":
    case "evolving":
      return fc.oneof(
        ...Object.entries(shape.variants).map(([type, fields]) =>
          valuesOf(fields).map((value) => ({ type, ...(value as object) })),
        ),
      );
  }
}

const mapped = (fields: Readonly<Record<string, ShapeNode>>): Record<string, fc.Arbitrary<unknown>> =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, valuesOf(field)]));

/** Node 1 of three, with nobody but the test to talk to. */
function alone(protocol: AnyProtocol) {
  const shape = variants((protocol.shapes.message ?? {}) as Shapes<never>);
  const state = protocol.init(1, PEERS);
  const timers = new Set<string>();
  const check = (message: unknown): void => expect(problem(shape, message, "message")).toBe(null);
  const ctx: Context<Vocabulary> = {
    self: 1,
    peers: PEERS,
    send: (_to, message) => check(message),
    broadcast: check,
    setTimer(timer, duration) {
      const [least, most] = typeof duration === "number" ? [duration, duration] : duration;
      expect(least >= 0 && least <= most && most < Number.POSITIVE_INFINITY).toBe(true);
      timers.add(timer);
    },
    cancelTimer: (timer) => void timers.delete(timer),
    persist() {},
    compact() {},
    emit() {},
    reply() {},
    signatures: idealSignatures(1),
    choose: (_label, options) => options[0] as (typeof options)[number],
  };
  const step = (stimulus: Stimulus<Vocabulary>): void => dispatch(protocol as never, state as never, stimulus, ctx);
  return { shape, timers, step, term: () => protocol.view(state, 1).term };
}

const SEND = { kind: "command", command: { type: "send", payload: "1 1 [1]" } } as never;

test.each(stacks)("$algorithm: no message is the end of a member", ({ make }) => {
  const messages = valuesOf(alone(make()).shape);
  const act = fc.oneof(
    { weight: 6, arbitrary: fc.record({ from: fc.constantFrom(...PEERS), message: messages }) },
    { weight: 1, arbitrary: fc.record({ timer: fc.nat() }) },
    { weight: 1, arbitrary: fc.constant("send") },
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60, size: "max" }), (acts) => {
      const { timers, step } = alone(make());
      step({ kind: "start" });
      for (const each of acts as ({ from: number; message: never } | { timer: number } | "send")[]) {
        if (each === "send") step(SEND);
        else if ("message" in each) step({ kind: "receive", ...each });
        else if (timers.size > 0) {
          const timer = [...timers][each.timer % timers.size] as string;
          timers.delete(timer);
          step({ kind: "timeout", timer: timer as never });
        }
      }
    }),
    { numRuns: 150 },
  );
});

describe("a view that nobody who follows the protocol decides", () => {
  const member = { node: 1, incarnation: 1 };
  const views = (body: object) => ({ kind: "receive", from: 2, message: { type: "views", body } }) as never;
  const decided = (number: number, members: object[], cut: number[]) =>
    views({ type: "decided", view: { number, members, cut } });

  /** In view 1, and silent for the next one. */
  function blocked() {
    const node = alone(viewSynchrony() as never);
    node.step({ kind: "start" });
    node.step(decided(1, [member], []));
    const same = { number: 1, members: [member], cut: [] };
    node.step(views({ type: "prepare", view: same, round: 7 }));
    return node;
  }

  test.each([
    ["by a cut that this member does not hold", 2, [member], [5]],
    ["by the cut of another group", 2, [member], []],
    ["with strangers", 2, [member, { node: 9, incarnation: 1 }], [0]],
    ["with one twice", 2, [member, member], [0]],
    ["that it goes to without the one before", 3, [member], [0]],
    ["beyond all numbers", Number.MAX_SAFE_INTEGER, [{ node: 2, incarnation: 1 }], [0]],
  ])("%s is dropped", (_what, number, members, cut) => {
    const node = blocked();
    node.step(decided(number, members, cut));
    expect(node.term()).toBe(1);
    node.step(decided(2, [member], [0]));
    expect(node.term()).toBe(2);
  });

  test("for which it has not fallen silent is dropped", () => {
    const node = alone(viewSynchrony() as never);
    node.step({ kind: "start" });
    node.step(decided(1, [member], []));
    node.step(decided(2, [member], [0]));
    expect(node.term()).toBe(1);
  });
});

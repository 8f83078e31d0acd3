import { describe, expect, test } from "vitest";
import { realPlatform } from "../../runtime/platform/real.ts";
import { type ProcessTools, simulate, type World } from "../../testing/index.ts";
import type { Member } from "./api.ts";
import { ChannelReader } from "./channel-reader.ts";
import { ChannelState, partsOf } from "./channel-state.ts";

type Told = { type: string; parts?: string[] };

function played(partBytes = 60_000) {
  const told: Told[] = [];
  const kept = new ChannelState({
    what: 'the channel "stock"',
    partBytes: () => partBytes,
    command: (command) => void told.push(command),
  });
  const reader: ChannelReader = new ChannelReader({
    platform: realPlatform,
    what: 'the channel "stock"',
    patienceMs: 1_000,
    onPressure() {},
    onEnd: () => kept.ended(reader),
  });
  const open = (state: () => unknown) => kept.open(() => reader, state).claim(undefined, () => {});
  return { told, kept, reader, open };
}

const settled = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve));
const delivery = (id: string, value: unknown) => ({ from: 2, view: 1, id, count: 1, json: JSON.stringify([value]) });

describe("the state of a channel's reader", () => {
  test("is sent once all messages before its position have been applied, and none after it", async () => {
    const { told, kept, reader, open } = played();
    const line: unknown[] = [];
    open(() => line);
    kept.onEvent({ type: "founded" });
    reader.take(delivery("1", "a"));
    kept.onEvent({ type: "wanted", view: 1, place: 2 });
    reader.take(delivery("2", "b"));
    const apply = async (): Promise<void> => {
      line.push(((await reader.next()).value as { payload: unknown }).payload);
      await settled();
    };
    await apply();
    expect(told.map(({ type }) => type)).toEqual(["seek"]);
    await apply();
    expect(told[1]).toMatchObject({ type: "snapshot", place: 2, parts: ['{"state":["a"]}'] });
  });

  test("precedes all waiting messages, and earlier ones are dropped", async () => {
    const { kept, reader, open } = played();
    open(() => 0);
    reader.take(delivery("1", "before"));
    const first = reader.next();
    kept.onEvent({ type: "placed" });
    reader.take(delivery("2", "after"));
    kept.onEvent({ type: "state", parts: partsOf(JSON.stringify({ state: { n: 1 } }), 3) });
    expect((await first).value).toEqual({ state: { n: 1 } });
    expect((await reader.next()).value).toMatchObject({ payload: "after" });
  });

  test("is founded with all waiting messages if the expected state does not arrive", async () => {
    const { kept, reader, open } = played();
    open(() => 0);
    reader.take(delivery("1", "before"));
    kept.onEvent({ type: "placed" });
    reader.take(delivery("2", "after"));
    kept.onEvent({ type: "founded" });
    for (const payload of ["before", "after"]) expect((await reader.next()).value).toMatchObject({ payload });
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("no stock here");
      },
      "no stock here",
    ],
    ["is not JSON", () => new Map(), "expected the result of state() to be a plain object, got an instance of Map"],
    ["is too large", () => "x".repeat(16 * 1024 * 1024), "at most 16777216 bytes of JSON, got 16777"],
  ] as const)("that %s is refused to the joining member, and its owner continues", async (_what, state, why) => {
    const giver = played();
    giver.open(state);
    giver.kept.onEvent({ type: "founded" });
    giver.kept.onEvent({ type: "wanted", view: 1, place: 1 });
    const next = giver.reader.next();
    await settled();
    const { parts = [] } = giver.told[1] as Told;
    const comer = played();
    comer.open(() => 0);
    comer.kept.onEvent({ type: "placed" });
    comer.kept.onEvent({ type: "state", parts });
    await expect(comer.reader.next()).rejects.toThrow(why);
    await expect(comer.reader.next()).resolves.toEqual({ done: true, value: undefined });
    await settled();
    expect(comer.told.map(({ type }) => type)).toEqual(["seek", "lack"]);
    giver.reader.take(delivery("1", "goes on"));
    expect((await next).value).toMatchObject({ payload: "goes on" });
  });

  test("is refused if the message is malformed", async () => {
    for (const text of ["{", "null", "3", "{}", '{"refusal":3}']) {
      const { kept, reader, open } = played();
      open(() => 0);
      kept.onEvent({ type: "state", parts: [text] });
      await expect(reader.next()).rejects.toMatchObject({ code: "state-refused" });
    }
  });

  test("is split between characters", () => {
    const text = JSON.stringify({ state: "añ€😀".repeat(100) });
    const parts = partsOf(text, 7);
    expect(parts.join("")).toBe(text);
    for (const part of parts) expect(Buffer.byteLength(part)).toBeLessThanOrEqual(7);
  });
});

describe("a stateful reader", () => {
  const alone = (work: (member: Member, world: World, tools?: ProcessTools) => Promise<void> | void): Promise<void> => {
    const world = simulate({ members: 3, seed: 1 });
    return world.run(async () => work(world.member(1), world));
  };

  test.each([
    [{ order: "fifo" }, "never share one state"],
    [{ order: "causal" }, "never share one state"],
  ] as const)("with %j is rejected, with the reason", (options, why) =>
    alone((member) => {
      const channel = member.channel("stock", options);
      expect(() => channel.read({ state: () => 0 })).toThrow(why);
    }),
  );

  test("is unique in a process, until it ends", () =>
    alone(async (member) => {
      const channel = member.channel("stock", { order: "total" });
      const first = channel.read({ state: () => 0 });
      expect(() => channel.read({ state: () => 0 })).toThrow("expected at most one stateful reader of");
      await first.return?.();
      expect(() => channel.read({ state: () => 0 })).not.toThrow();
    }));

  test("has types for its items", () =>
    alone(async (member) => {
      const channel = member.channel<{ sold: number }>("stock", { order: "total" });
      let stock = 40;
      const reader = channel.read({ state: () => stock });
      await channel.send({ sold: 3 });
      const { value } = await reader.next();
      if (value !== undefined) stock = "state" in value ? value.state : stock - value.payload.sold;
      expect(stock).toBe(37);
    }));
});

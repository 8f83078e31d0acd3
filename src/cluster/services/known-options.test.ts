/** Checks that every call with a `signal` option rejects an invalid signal before it takes effect. */
import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import { join } from "../join.ts";
import type { Member } from "./api.ts";

const closing = closedAfterEach();

const alone = async (): Promise<Member> => (await startAll(closing(await cluster(1))))[0] as Member;

describe("a controller in place of its signal", () => {
  const signal = new AbortController() as never;
  const refused = { code: "bad-option" };

  test("is rejected by a channel, which continues to work", async () => {
    const room = (await alone()).channel<string>("room", { order: "fifo" });
    const timers = vi.spyOn(globalThis, "setTimeout");
    await expect(room.send("never", { timeoutMs: 50, signal })).rejects.toMatchObject(refused);
    expect(timers).not.toHaveBeenCalled();
    timers.mockRestore();
    expect(room.status).toMatchObject({ waiting: 0, inFlight: 0 });
    expect(() => room.read({ signal })).toThrow(expect.objectContaining(refused));
    expect(() => room.views({ signal })).toThrow(expect.objectContaining(refused));
    await room.send("heard");
    const reader = room.read(); // It is still the first reader: the rejected call did not consume the backlog.
    expect((await reader.next()).value).toMatchObject({ payload: "heard" });
  });

  test("is rejected by a lock, an election and a member, and leaves nothing behind", async () => {
    const member = await alone();
    const lock = member.mutex("invoice");
    const election = member.election("report");
    await expect(lock.acquire({ timeoutMs: 50, signal })).rejects.toMatchObject(refused);
    await expect(election.lead(() => {}, { signal })).rejects.toMatchObject(refused);
    expect(() => election.watch({ signal })).toThrow(expect.objectContaining(refused));
    expect(() => member.events({ signal })).toThrow(expect.objectContaining(refused));
    expect(member.status().instances).toMatchObject([{ kind: "election", waiting: 0 }]);
    await (await lock.acquire({ timeoutMs: 60_000 })).release();
    await election.lead(() => {});
  });

  test("is rejected by join(), which opens nothing", async () => {
    await expect(join({ id: 1, members: { 1: "127.0.0.1:1" }, dataDir: "unused", signal })).rejects.toMatchObject(
      refused,
    );
  });
});

test("join() with the id as a string names the conversion", async () => {
  const options = { id: "1" as unknown as number, members: { 1: "127.0.0.1:1" }, dataDir: "unused" };
  await expect(join(options)).rejects.toThrow(
    'expected id of join() to be a whole number of 0 or more, one of the members, got "the string 1: convert it with Number()"',
  );
});

describe("a call with a signal", () => {
  test("removes its listener when it ends by itself", async () => {
    const member = await alone();
    const room = member.channel("room", { order: "fifo" });
    const { signal } = new AbortController();
    const listeners = (): number => getEventListeners(signal, "abort").length;
    for await (const _view of room.views({ signal })) break;
    expect(listeners()).toBe(0);
    const views = room.views({ signal });
    const reader = room.read({ signal });
    expect(listeners()).toBe(1);
    await room.close();
    expect(listeners()).toBe(0);
    await reader.next();
    expect(await views.next()).toMatchObject({ done: false }); // The state at the time when it was closed.
    expect(await views.next()).toMatchObject({ done: true });
  });

  test("adds no listener on a channel that is closed already", async () => {
    const member = await alone();
    const room = member.channel("room", { order: "fifo" });
    await member.leave();
    const { signal } = new AbortController();
    for (let times = 0; times < 10; times++) {
      for await (const _message of room.read({ signal })) expect.unreachable();
      for await (const { state } of room.views({ signal })) expect(state).toBe("left");
    }
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

import { describe, expect, test } from "vitest";
import type { MemberEvent } from "./api.ts";
import { latestEvents } from "./member-events.ts";
import { feed } from "./reading.ts";

const latest = () => feed<number>((_waiting, item) => [item]);
const all = () => feed<number>((waiting, item) => [...waiting, item]);

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe("a feed", () => {
  test("gives each reader later values, and ends when it is closed", async () => {
    const numbers = all();
    numbers.publish(0);
    const one = collected(numbers.read(undefined));
    numbers.publish(1);
    const other = collected(numbers.read(undefined, 9));
    numbers.publish(2);
    numbers.close(null);
    expect(await one).toEqual([1, 2]);
    expect(await other).toEqual([9, 2]);
    expect(await collected(numbers.read(undefined, 3))).toEqual([3]);
  });

  test("may keep only the latest for a slow reader", async () => {
    const numbers = latest();
    const reader = numbers.read(undefined);
    for (const number of [1, 2, 3]) numbers.publish(number);
    expect(await reader.next()).toEqual({ done: false, value: 3 });
  });

  test("ends for a reader whose signal is aborted, and for one that stops", async () => {
    const numbers = all();
    const abort = new AbortController();
    const reading = collected(numbers.read(abort.signal));
    abort.abort();
    expect(await reading).toEqual([]);
    expect(await collected(numbers.read(abort.signal))).toEqual([]);
    const reader = numbers.read(undefined);
    await reader.return?.();
    numbers.publish(1);
    expect(await reader.next()).toEqual({ done: true, value: undefined });
  });
});

describe("events of a member", () => {
  test("are bounded: the oldest are lost, and their number is reported", () => {
    let waiting: MemberEvent[] = [];
    for (let node = 0; node < 1_500; node++) waiting = latestEvents(waiting, { type: "peer-suspected", node });
    expect(waiting).toHaveLength(1_000);
    expect(waiting[0]).toEqual({ type: "dropped", events: 501 });
    expect(waiting[1]).toEqual({ type: "peer-suspected", node: 501 });
    expect(waiting.at(-1)).toEqual({ type: "peer-suspected", node: 1_499 });
  });
});

import { describe, expect, test, vi } from "vitest";
import { PATIENCE } from "../../../test/patience.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { ChannelReader, type Delivery, type Read } from "./channel-reader.ts";

const delivery = (id: string, values: readonly unknown[]): Delivery => ({
  from: 2,
  view: 1,
  id,
  count: values.length,
  json: JSON.stringify(values),
});
/** Returns a delivery of one megabyte. */
const large = (id: string): Delivery => delivery(id, ["x".repeat(1024 * 1024)]);

interface Played {
  readonly reader: ChannelReader;
  /** For each change: whether senders must now wait. */
  readonly pressure: boolean[];
}

function played(patienceMs = 60_000): Played {
  const pressure: boolean[] = [];
  const onPressure = (): void => void pressure.push(reader.isFull);
  const reader: ChannelReader = new ChannelReader({
    platform: realPlatform,
    what: 'the channel "room"',
    patienceMs,
    onPressure,
    onEnd() {},
  });
  return { reader, pressure };
}

async function all(reader: AsyncIterable<Read>): Promise<string[]> {
  const ids: string[] = [];
  for await (const read of reader) if ("id" in read) ids.push(read.id);
  return ids;
}

describe("a reader", () => {
  test("keeps the covered deliveries until the state arrives, unless some are missing already", () => {
    const { reader, pressure } = played();
    reader.claim(undefined, () => {});
    for (let n = 0; n < 5; n++) reader.take(large(String(n)));
    reader.place();
    expect([reader.unread, pressure]).toEqual([5, [true]]);
    for (let n = 5; n < 20; n++) reader.take(large(String(n)));
    reader.place();
    expect([reader.unread, pressure]).toEqual([0, [true, false]]);
  });

  test("gets each message of a delivery, with its index", async () => {
    const { reader } = played();
    reader.claim(undefined, () => {});
    const first = reader.next();
    reader.take(delivery("1.2.7", ["a", { b: 1 }]));
    expect((await first).value).toEqual({ from: 2, view: 1, id: "1.2.7.0", payload: "a" });
    expect((await reader.next()).value).toEqual({ from: 2, view: 1, id: "1.2.7.1", payload: { b: 1 } });
  });

  test("ignores a malformed batch", async () => {
    const { reader } = played();
    reader.claim(undefined, () => {});
    reader.take({ ...delivery("a", []), count: 2 });
    const first = reader.next();
    reader.take({ ...delivery("b", [1]), json: "{" });
    reader.take(delivery("c", [1]));
    reader.take({ ...delivery("d", [1]), count: 2 });
    reader.end();
    expect((await first).value).toMatchObject({ id: "c.0" });
    expect(await all(reader)).toEqual([]);
  });

  test("serves concurrent calls in order", async () => {
    const { reader } = played();
    reader.claim(undefined, () => {});
    const waits = [reader.next(), reader.next(), reader.next()];
    reader.take(delivery("a", [1, 2]));
    reader.take(delivery("b", [3]));
    expect((await Promise.all(waits)).map(({ value }) => value.payload)).toEqual([1, 2, 3]);
  });

  test("gets messages from before it began, and waiting ones after it has ended", async () => {
    const { reader } = played();
    reader.take(delivery("a", [1]));
    reader.claim(undefined, () => {});
    reader.take(delivery("b", [2]));
    reader.end();
    expect(await all(reader)).toEqual(["a.0", "b.0"]);
  });

  test("gets nothing more after it returns, or its signal is aborted", async () => {
    const { reader } = played();
    const abort = new AbortController();
    reader.claim(abort.signal, () => {});
    reader.take(delivery("a", [1, 2]));
    await reader.next();
    const none = { done: true, value: undefined };
    abort.abort();
    expect(await reader.next()).toEqual(none);
    const waiting = played();
    const end = waiting.reader.claim(undefined, () => {}).next();
    await waiting.reader.return();
    expect(await end).toEqual(none);
  });

  test("with 4 MiB unread makes senders wait, until only 1 MiB is left", async () => {
    const { reader, pressure } = played();
    reader.claim(undefined, () => {});
    for (const id of ["a", "b", "c"]) reader.take(large(id));
    expect(pressure).toEqual([]);
    reader.take(large("d"));
    expect(pressure).toEqual([true]);
    await reader.next();
    await reader.next();
    expect(pressure).toEqual([true]);
    await reader.next();
    await reader.next();
    expect(pressure).toEqual([true, false]);
  });

  test("that takes nothing stops blocking senders, and learns how many messages it has missed", async () => {
    const { reader, pressure } = played(5);
    reader.claim(undefined, () => {});
    for (let number = 0; number < 20; number++) reader.take(large(`${number}`));
    await vi.waitFor(() => expect(pressure).toEqual([true, false]), PATIENCE);
    reader.take(delivery("late", [1, 2, 3]));
    const read = all(reader);
    await expect(read).rejects.toMatchObject({
      code: "reader-too-slow",
      phase: "missed",
      message: 'the reader of the channel "room" was too slow: it missed 8 messages',
    });
    expect(await reader.next()).toEqual({ done: true, value: undefined });
  });

  test("that has caught up in time blocks senders again when it falls behind", async () => {
    const { reader, pressure } = played(5);
    reader.claim(undefined, () => {});
    for (const id of ["a", "b", "c", "d"]) reader.take(large(id));
    await vi.waitFor(() => expect(pressure).toEqual([true, false]), PATIENCE);
    for (let taken = 0; taken < 4; taken++) await reader.next();
    for (const id of ["e", "f", "g", "h"]) reader.take(large(id));
    expect(pressure).toEqual([true, false, true]);
  });

  test("that has not begun keeps 1 MiB, and does not block senders", async () => {
    const { reader, pressure } = played();
    for (let number = 0; number < 3_000; number++) reader.take(delivery(`${number}`, ["x".repeat(1_000)]));
    expect(pressure).toEqual([]);
    reader.claim(undefined, () => {});
    const ids: string[] = [];
    await expect(
      (async () => {
        for await (const read of reader) if ("id" in read) ids.push(read.id);
      })(),
    ).rejects.toMatchObject({ code: "reader-too-slow" });
    expect(ids.at(-1)).toBe("869.0");
  });
});

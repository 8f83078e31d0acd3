import { expect, test } from "vitest";
import type { ClusterPicture, FeedEvent } from "./feed.ts";
import { RecentTrace } from "./local/recent-trace.ts";
import { type FeedSource, studioFeed } from "./studio-feed.ts";

class Source implements FeedSource {
  readonly trace = new RecentTrace({ ms: 60_000, lines: 10, length: 1_000_000 });
  revision = 0;
  readonly networks = [];
  picturesTaken = 0;
  readonly listeners = new Set<() => void>();

  get picture(): ClusterPicture {
    this.picturesTaken += 1;
    return { name: `revision ${this.revision}` } as ClusterPicture;
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  add(...lines: number[]): void {
    for (const line of lines) this.trace.add(String(line));
    this.#ring();
  }

  change(): void {
    this.revision += 1;
    this.#ring();
  }

  #ring(): void {
    for (const listener of this.listeners) listener();
  }
}

async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<FeedEvent[]> {
  const { value } = await reader.read();
  const events = new TextDecoder()
    .decode(value)
    .split("\n\n")
    .filter((event) => event !== "");
  return events.map((event) => JSON.parse(event.replace(/^data: /, "")) as FeedEvent);
}

test("a page gets a snapshot first, and then new entries", async () => {
  const source = new Source();
  source.add(1, 2);
  const reader = studioFeed(source, () => {}).getReader();
  expect(await next(reader)).toEqual([
    { type: "snapshot", cluster: { name: "revision 0" }, networks: [], entries: [1, 2] },
  ]);
  source.add(3);
  source.change();
  expect(await next(reader)).toEqual([
    { type: "trace", entries: [3] },
    { type: "cluster", cluster: { name: "revision 1" } },
  ]);
  source.change();
  expect(await next(reader)).toEqual([{ type: "cluster", cluster: { name: "revision 2" } }]);
});

test("composes nothing for a page that does not read, which starts over when it has missed entries", async () => {
  const source = new Source();
  const reader = studioFeed(source, () => {}).getReader();
  await next(reader);
  source.picturesTaken = 0;
  for (let i = 0; i < 25; i += 1) {
    source.add(i);
    source.change();
  }
  expect(source.picturesTaken).toBe(0);
  const entries = [15, 16, 17, 18, 19, 20, 21, 22, 23, 24];
  expect(await next(reader)).toEqual([{ type: "snapshot", cluster: { name: "revision 25" }, networks: [], entries }]);
});

test("a page that disconnects leaves nothing behind", async () => {
  const source = new Source();
  let closed = 0;
  const reader = studioFeed(source, () => {
    closed += 1;
  }).getReader();
  await next(reader);
  const waiting = reader.read();
  await reader.cancel();
  expect((await waiting).done).toBe(true);
  expect(source.listeners.size).toBe(0);
  expect(closed).toBe(1);
});

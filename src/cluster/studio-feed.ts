/**
 * What one studio page hears: server-sent events, made only when its connection takes them. A page keeps its place in
 * the trace and nothing else, so a slow one costs no memory; if it falls behind further than the trace reaches back, it
 * starts over with a snapshot.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LocalCluster } from "./local-cluster.ts";

const BATCH_EVERY_MS = 50;
const MAX_BATCH = 5_000;
/** A sign of life in quiet times, so that both ends notice a dead connection. */
const KEEP_ALIVE_MS = 15_000;

/** What a page is told about. */
export type FeedSource = Pick<LocalCluster, "trace" | "revision" | "picture" | "networks" | "onChange">;

/** An endless body for one page. @param onClose is called once, when the page has gone. */
export function studioFeed(cluster: FeedSource, onClose: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const change = new Bell();
  const ignore = cluster.onChange(() => change.ring());
  const page = new Page(cluster);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        await change.rung(KEEP_ALIVE_MS);
        await sleep(BATCH_EVERY_MS);
        controller.enqueue(encoder.encode(page.next()));
      },
      cancel() {
        ignore();
        change.ring();
        onClose();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Remembers whether it rang since somebody last waited for it. Rings once by itself, for the first event. */
class Bell {
  #isRinging = true;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#isRinging = true;
    this.#wake?.();
  }

  async rung(withinMs: number): Promise<void> {
    if (!this.#isRinging)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    this.#wake = null;
    this.#isRinging = false;
  }
}

/** How far one page has got. */
class Page {
  readonly #cluster: FeedSource;
  #place: number | null = null;
  #revision = -1;

  constructor(cluster: FeedSource) {
    this.#cluster = cluster;
  }

  /** Everything that is news to the page, as the text of one or more events. */
  next(): string {
    const { trace } = this.#cluster;
    const lines = this.#place === null ? null : trace.since(this.#place, MAX_BATCH);
    if (this.#place === null || lines === null) return this.#snapshot();
    const picture =
      this.#revision === this.#cluster.revision ? "" : event(`{"type":"cluster",${this.#clusterField()}}`);
    this.#place += lines.length;
    const news = lines.length === 0 ? "" : event(`{"type":"trace","entries":[${lines.join(",")}]}`);
    return news + picture || ": nothing new\n\n";
  }

  #snapshot(): string {
    const { trace } = this.#cluster;
    this.#place = trace.end;
    const networks = `"networks":${JSON.stringify(this.#cluster.networks)}`;
    return event(`{"type":"snapshot",${this.#clusterField()},${networks},"entries":[${trace.lines.join(",")}]}`);
  }

  #clusterField(): string {
    this.#revision = this.#cluster.revision;
    return `"cluster":${JSON.stringify(this.#cluster.picture)}`;
  }
}

function event(json: string): string {
  return `data: ${json}\n\n`;
}

/**
 * A studio page's feed, as server-sent events. Events are composed only when the connection accepts them. The server
 * stores only the page's position in the trace, so a slow page costs no memory. A page that falls behind the retained
 * trace starts over with a snapshot.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { LocalCluster } from "./local-cluster.ts";

const BATCH_EVERY_MS = 50;
const MAX_BATCH = 5_000;
/** The interval between comments on an idle connection, so that both ends detect a broken one. */
const KEEP_ALIVE_MS = 15_000;

/** The source of a page's events. */
export type FeedSource = Pick<LocalCluster, "trace" | "revision" | "picture" | "networks" | "onChange">;

/**
 * Returns an endless body for one page.
 * @param onClose called once, when the page has disconnected
 */
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

/** A signal that remembers whether it has rung since the last wait. It rings once at the start, for the first event. */
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

/** A page's position in the feed. */
class Page {
  readonly #cluster: FeedSource;
  #place: number | null = null;
  #revision = -1;

  constructor(cluster: FeedSource) {
    this.#cluster = cluster;
  }

  /** Returns the changes that the page has not received yet, as the text of one or more events. */
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

/** The page's two connections to the server: the event feed, and requests. */
import type { Act, FeedEvent } from "../../../src/cluster/feed.ts";

export type Connection = "connecting" | "live" | "lost";

export interface Listener {
  heard(event: FeedEvent): void;
  connected(connection: Connection): void;
}

/** The delay before reconnecting if the browser has given up. */
const RETRY_MS = 2_000;

/** Listens to the feed until the returned function is called. */
export function listen(listener: Listener): () => void {
  let source: EventSource;
  let retry: ReturnType<typeof setTimeout> | undefined;

  function open(): void {
    source = new EventSource("/api/feed");
    source.onmessage = ({ data }) => {
      const event = JSON.parse(data) as FeedEvent;
      listener.heard(event);
      if (event.type === "snapshot") listener.connected("live");
    };
    source.onerror = () => {
      listener.connected("lost");
      // The browser reconnects by itself, except after a response that is not an event stream.
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    };
  }

  open();
  return () => {
    clearTimeout(retry);
    source.close();
  };
}

/** Sends a request. Resolves to null if it was accepted, or to a sentence that explains why it was rejected. */
export async function request(act: Act): Promise<string | null> {
  try {
    const response = await fetch("/api/act", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(act),
    });
    if (response.ok) return null;
    const { error } = (await response.json().catch(() => ({}))) as { error?: string };
    return error ?? `The server answered ${response.status}.`;
  } catch {
    return "The server cannot be reached.";
  }
}

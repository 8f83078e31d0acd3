import { expect, test } from "vitest";
import { RecentTrace } from "./local/recent-trace.ts";
import type { LocalCluster } from "./local-cluster.ts";
import { studioPages } from "./studio-server.ts";

test("HEAD /api/feed opens no page, no matter how often it is requested", async () => {
  let listeners = 0;
  const source = {
    trace: new RecentTrace(),
    revision: 0,
    picture: {},
    onChange() {
      listeners += 1;
      return () => {
        listeners -= 1;
      };
    },
  };
  const pages = studioPages({ cluster: source as unknown as LocalCluster, port: 7400, studio: true });
  const ask = async (method: string): Promise<Response> =>
    pages.request("/api/feed", { method, headers: { host: "127.0.0.1:7400" } });
  for (let i = 0; i < 100; i += 1) {
    const { status, headers } = await ask("HEAD");
    expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  }
  expect(listeners).toBe(0);

  const { status, body } = await ask("GET");
  expect([status, listeners]).toEqual([200, 1]);
  await body?.cancel();
  expect(listeners).toBe(0);
});

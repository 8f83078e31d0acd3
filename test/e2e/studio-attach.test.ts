/** Checks `coterie studio --attach`: the page and the recording of members that a different program has joined. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import type { FeedEvent } from "../../src/cluster/feed.ts";
import { freePorts } from "../network/free-ports.ts";
import { cluster } from "../network/joined.ts";
import { Coterie, endAll, until } from "./cluster-under-test.ts";

afterEach(endAll);
const folder = mkdtempSync(join(tmpdir(), "coterie-attach-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Ready {
  readonly event: "ready";
  readonly studio: string;
  readonly nodes: readonly { readonly id: number }[];
}

test("two members are shown and recorded until Ctrl-C, and continue", async () => {
  const group = await cluster(2, { cluster: "reports" });
  const ports = await freePorts(2);
  const members = await Promise.all(ports.map((port, i) => group.start(i + 1, { admin: `127.0.0.1:${port}` })));
  const file = join(folder, "run.jsonl");
  const attach = members.flatMap(({ admin }) => ["--attach", String(admin)]);
  const studio = new Coterie("studio", ...attach, "--port", "0", "--json", "--record", file);
  const ready: Ready = await until(
    "the studio listens",
    () => (studio.stdout.includes("\n") ? JSON.parse(studio.stdout) : null),
    studio,
  );
  expect(ready).toMatchObject({
    event: "ready",
    cluster: "reports",
    protocol: "services",
    nodes: [{ id: 1 }, { id: 2 }],
  });
  expect(await (await fetch(ready.studio)).text()).toContain("<title>");
  expect(await firstEvent(`${ready.studio}/api/feed`)).toMatchObject({
    type: "snapshot",
    cluster: { isAttached: true, takesFaults: false, nodes: [{ id: 1, process: "running" }, { id: 2 }] },
  });
  await until("the service is recorded", () => readFileSync(file, "utf8").includes('"service"'), studio);
  studio.signal("SIGINT");
  expect(await studio.finished).toMatchObject({ code: 0 });
  expect(studio.stderr).toMatch(/recorded [\d,]+ entries/);
  expect(readFileSync(file, "utf8")).toMatch(/^\{"kind":"trace".*\n(?:.*\n)*.*"service"/);
  expect(members.every((member) => member.status().state === "joined")).toBe(true);
  await group.close();
});

async function firstEvent(url: string): Promise<FeedEvent> {
  const reader = ((await fetch(url)).body as ReadableStream<Uint8Array>).getReader();
  let text = "";
  while (!text.includes("\n\n")) text += new TextDecoder().decode((await reader.read()).value);
  await reader.cancel();
  return JSON.parse(text.slice("data: ".length, text.indexOf("\n\n"))) as FeedEvent;
}

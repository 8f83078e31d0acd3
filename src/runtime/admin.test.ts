import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../test/network/closing.ts";
import { PATIENCE } from "../../test/patience.ts";
import { UsageError } from "../core/errors.ts";
import type { Tagged } from "../core/protocol.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { type AdminServer, serveAdmin } from "./admin.ts";
import type { NodeStatus } from "./admin-pages.ts";
import { type Broadcast, broadcast } from "./broadcast.ts";
import { type FaultInjector, faultInjector, noFaults } from "./fault-injector.ts";
import { networkMetrics, traceListeners } from "./metric-table.ts";
import { type Counts, newCounts } from "./metrics.ts";
import { metricsPage } from "./metrics-page.ts";
import { realPlatform } from "./platform/real.ts";

const closing = closedAfterEach();

let admin: AdminServer;
let trace: Broadcast<TraceEntry>;
let counts: Counts;
let injector: FaultInjector;
let commands: unknown[];
let missing: string | null;

const status = { id: 1, role: "leader" } as unknown as NodeStatus;
const snapshot = (): TraceEntry => ({ at: 1, node: 1, kind: "view", view: { role: "leader" }, state: {} });

function options() {
  return {
    address: { host: "127.0.0.1", port: 0 },
    status: () => status,
    missing: () => missing,
    metrics: metricsPage([
      ...networkMetrics(counts, { queuedBytes: () => 7, openLinks: () => 2 }),
      traceListeners(() => trace.listeners),
    ]),
    trace,
    snapshot,
    command(command: unknown) {
      if (command === "unknown") throw new UsageError("bad-command", "expected a command");
      if (command === "broken") throw new TypeError("x is not a function");
      commands.push(command);
    },
    request: (command: Tagged) => Promise.resolve({ type: "answered", body: command }),
    injector,
    counts,
  };
}

beforeEach(async () => {
  trace = broadcast<TraceEntry>(20_000);
  counts = newCounts();
  injector = faultInjector(realPlatform.random);
  commands = [];
  missing = null;
  admin = closing(await serveAdmin(options()));
});

interface Asked {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  at?: string;
}

/** Sends a request, and resolves as soon as the response headers have arrived. */
function answering(path: string, { method = "GET", headers = {}, body, at = admin.url }: Asked = {}) {
  const asked: RequestOptions = { method, headers, agent: false };
  return new Promise<IncomingMessage>((resolve, reject) => {
    const call = request(`${at}${path}`, asked, resolve);
    call.on("error", reject);
    call.end(body);
  });
}

async function ask(path: string, asked: Asked = {}): Promise<{ code: number; text: string }> {
  const answer = await answering(path, asked);
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += chunk;
  return { code: answer.statusCode ?? 0, text };
}

const json = { "content-type": "application/json" };
const put = (body: unknown) => ask("/faults", { method: "PUT", headers: json, body: JSON.stringify(body) });
const command = (body: string, headers: Record<string, string> = json) =>
  ask("/command", { method: "POST", headers, body });
const inquire = (body: string) => ask("/request", { method: "POST", headers: json, body });

describe("the admin pages", () => {
  test("report the status", async () => {
    expect(await ask("/status")).toEqual({ code: 200, text: JSON.stringify(status) });
  });

  test("serve Prometheus metrics: the process once, and the member as it is now", async () => {
    counts.refused.malformed = 3;
    counts.messagesSent["election.call"] = 2;
    const { text } = await ask("/metrics");
    expect(text).toContain('coterie_refused_total{reason="malformed"} 3\n');
    expect(text).toContain('coterie_messages_sent_total{type="election.call"} 2\n');
    expect(text).toContain("coterie_queued_bytes 7\n");
    expect(text.match(/^# HELP process_cpu_user_seconds_total/gm)).toHaveLength(1);
    counts.refused.malformed = 4;
    expect((await ask("/metrics")).text).toContain('coterie_refused_total{reason="malformed"} 4\n');
  });

  test("take commands", async () => {
    expect(await command('{"type":"election"}')).toEqual({ code: 200, text: "{}" });
    expect(commands).toEqual([{ type: "election" }]);
  });

  test("take commands sent in chunks", async () => {
    expect(await command('"piecemeal"', { ...json, "transfer-encoding": "chunked" })).toEqual({
      code: 200,
      text: "{}",
    });
    expect(commands).toEqual(["piecemeal"]);
  });

  test("answer a request with its reply", async () => {
    expect(await inquire('{"type":"client"}')).toEqual({
      code: 200,
      text: '{"type":"answered","body":{"type":"client"}}',
    });
  });

  test("set and report the faults", async () => {
    const faults = { cutTo: [2], dropRate: 0.5, delayMs: { min: 1, max: 2 } };
    expect((await ask("/faults")).text).toBe(JSON.stringify(noFaults));
    expect(await put(faults)).toEqual({ code: 200, text: "{}" });
    expect(injector.faults).toEqual(faults);
    expect((await ask("/faults")).text).toBe(JSON.stringify(faults));
    expect(await put({ cutTo: [3] })).toEqual({ code: 200, text: "{}" });
    expect(injector.faults).toEqual({ ...noFaults, cutTo: [3] });
  });
});

describe("requests that the admin pages reject", () => {
  test.each<[string, () => Promise<{ code: number; text: string }>, number, string]>([
    ["an unknown page", () => ask("/"), 404, "no such page"],
    ["an unknown method", () => ask("/status", { method: "DELETE" }), 404, "no such page"],
    ["an unknown method on a page that has others", () => ask("/faults", { method: "POST" }), 404, "no such page"],
    ["a request that is not a command", () => inquire("[]"), 400, "expected command to be an object with a type"],
    ["a command without a body", () => command(""), 400, "expected the body to be valid JSON"],
    ["a command that the protocol does not know", () => command('"unknown"'), 400, "expected a command"],
    ["a command that is not JSON", () => command("{"), 400, "expected the body to be valid JSON"],
    [
      "a command of another content type",
      () => command("{}", { "content-type": "text/plain" }),
      400,
      "the content type",
    ],
    ["a command without a content type", () => command("{}", {}), 400, "the content type"],
    ["faults of a wrong shape", () => put({ cutTo: 2 }), 400, "expected faults.cutTo to be"],
    ["faults out of range", () => put({ ...noFaults, dropRate: 2 }), 400, "from 0 to 1"],
    ["faults of another content type", () => ask("/faults", { method: "PUT", body: "{}" }), 400, "the content type"],
  ])("%s", async (_what, asking, code, text) => {
    const answer = await asking();
    expect(answer.code).toBe(code);
    expect((JSON.parse(answer.text) as { error: string }).error).toContain(text);
    expect(injector.faults).toBe(noFaults);
    expect(commands).toEqual([]);
    expect(counts.refused).toEqual(code === 400 ? { "bad-command": 1 } : {});
  });

  test("a body over the limit, announced or in chunks", async () => {
    const body = JSON.stringify("x".repeat(64 * 1024));
    const length: Record<string, string> = { "content-length": String(body.length) };
    for (const more of [length, { "transfer-encoding": "chunked" }]) {
      const { code } = await command(body, { ...json, ...more });
      expect(code).toBe(413);
    }
    expect(commands).toEqual([]);
  });

  test.each<[string, Record<string, string>]>([
    ["a page of another site", { origin: "http://example.org" }],
    ["an image in a page of another site", { "sec-fetch-site": "cross-site" }],
    ["a site that gave itself our address", { host: "example.org:80" }],
    ["a site whose name begins like an address", { host: "127.0.0.1.example.org" }],
  ])("%s", async (_who, headers) => {
    for (const path of ["/status", "/trace"]) expect((await ask(path, { headers })).code).toBe(403);
    expect((await command('{"type":"election"}', { ...json, ...headers })).code).toBe(403);
    expect(commands).toEqual([]);
  });

  test.each(["localhost", "localhost:1", "127.0.0.1", "[::1]:5"])("allow the host name %s", async (host) => {
    expect((await ask("/status", { headers: { host } })).code).toBe(200);
  });

  test("allow the name that it was given", async () => {
    const named = closing(await serveAdmin({ ...options(), address: { host: "localhost", port: 0 } }));
    expect((await ask("/status", { at: named.url })).code).toBe(200);
  });

  test("report an internal error, and continue to serve", async () => {
    expect(await command('"broken"')).toEqual({ code: 500, text: '{"error":"x is not a function"}' });
    expect((await ask("/status")).code).toBe(200);
  });

  test("faults when the injector is off", async () => {
    const off = closing(await serveAdmin({ ...options(), injector: null }));
    expect((await ask("/faults", { at: off.url })).code).toBe(403);
    expect((await ask("/faults", { at: off.url, method: "PUT", headers: json, body: "{}" })).code).toBe(403);
  });

  test("a port in use", async () => {
    const port = Number(new URL(admin.url).port);
    const second = serveAdmin({ ...options(), address: { host: "127.0.0.1", port } });
    await expect(second).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port} for the admin pages: the address is in use`,
    );
  });
});

const event = (n: number, words = ""): TraceEntry => ({
  at: n,
  node: 1,
  kind: "event",
  event: { type: `${n}${words}` },
});
const heardBy = (listeners: number) => vi.waitFor(() => expect(trace.listeners).toBe(listeners), PATIENCE);

/** Creates a trace listener that reads only on request. */
async function listener() {
  const answer = await answering("/trace");
  const entries: TraceEntry[] = [];
  let rest = "";
  const read = (): void =>
    void answer
      .setEncoding("utf8")
      .on("data", (chunk: string) => {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) entries.push(JSON.parse(line) as TraceEntry);
      })
      .on("error", () => {}); // The server disconnects the listener when it closes.
  const ended = new Promise<void>((resolve) => answer.once("close", () => resolve()));
  return closing({ answer, entries, read, ended, close: () => answer.destroy() });
}

describe("the trace", () => {
  test("begins with a snapshot and continues with events", async () => {
    const { entries, read } = await listener();
    read();
    await heardBy(1);
    trace.publish(event(1));
    trace.publish(event(2));
    await vi.waitFor(() => expect(entries).toEqual([snapshot(), event(1), event(2)]), PATIENCE);
  });

  test("begins with the opening for the first caller, which makes a snapshot unnecessary", async () => {
    trace.publish(event(1));
    const [first, second] = [await listener(), await listener()];
    first.read();
    second.read();
    await heardBy(2);
    trace.publish(event(2));
    await vi.waitFor(() => expect(first.entries).toEqual([event(1), event(2)]), PATIENCE);
    await vi.waitFor(() => expect(second.entries).toEqual([snapshot(), event(2)]), PATIENCE);
  });

  test("releases the listener when it leaves, whether it was reading, slow, or left at once", async () => {
    const [swift, slow] = [await listener(), await listener()];
    swift.read();
    await heardBy(2);
    for (let n = 0; n < 50; n++) trace.publish(event(n, "x".repeat(100_000)));
    await nextTurn();
    swift.close();
    slow.close();
    for (let i = 0; i < 50; i++) {
      const socket = connect(Number(new URL(admin.url).port), "127.0.0.1");
      socket.write("GET /trace HTTP/1.1\r\nhost: localhost\r\n\r\n", () => socket.resetAndDestroy());
    }
    await heardBy(0);
    expect((await ask("/trace", { method: "HEAD" })).code).toBe(200);
    await heardBy(0);
  });

  test("has a limited number of listeners", async () => {
    const listeners = await Promise.all(Array.from({ length: 32 }, () => listener()));
    expect(await ask("/trace")).toMatchObject({ code: 503 });
    listeners[0]?.close();
    await heardBy(31);
    await vi.waitFor(async () => expect((await listener()).answer.statusCode).toBe(200), PATIENCE);
  });

  test("does not wait for a slow listener, which gets a gap, the number of lost entries and a snapshot", async () => {
    const { entries, read } = await listener();
    await heardBy(1);
    const published = 30_000;
    for (let n = 1; n <= published; n++) {
      trace.publish(event(n, "x".repeat(1_000)));
      if (n % 500 === 0) await nextTurn();
    }
    read();
    const count = (): number =>
      entries.reduce((sum, entry) => sum + (entry.kind === "event" ? 1 : entry.kind === "gap" ? entry.dropped : 0), 0);
    await vi.waitFor(() => {
      expect(count()).toBe(published);
      expect(entries.at(-1)?.kind).not.toBe("gap"); // A snapshot follows, and may arrive later.
    }, PATIENCE);
    const gaps = [...entries.keys()].filter((i) => entries[i]?.kind === "gap");
    expect(gaps.length).toBeGreaterThan(0);
    for (const at of gaps) expect(entries[at + 1]).toEqual(snapshot());
    const told = entries.flatMap((entry) => (entry.kind === "event" ? entry.at : []));
    expect(told).toEqual([...told].sort((a, b) => a - b));
    expect(told.length).toBeLessThan(published);
  });

  test("ends when the member closes", async () => {
    const listeners = [await listener(), await listener()];
    listeners[0]?.read();
    await admin.close();
    await Promise.all(listeners.map(({ ended }) => ended));
    expect(trace.listeners).toBe(0);
  });

  test("releases the listener even if the snapshot fails", async () => {
    const silent = vi.spyOn(console, "error").mockImplementation(() => {});
    const fail = (): never => {
      throw new TypeError("no picture");
    };
    const broken = closing(await serveAdmin({ ...options(), snapshot: fail }));
    await ask("/trace", { at: broken.url });
    await heardBy(0);
    silent.mockRestore();
  });
});

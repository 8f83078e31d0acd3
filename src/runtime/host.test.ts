import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../test/network/closing.ts";
import { PATIENCE } from "../../test/patience.ts";
import { InvariantViolation, UsageError } from "../core/errors.ts";
import type { Duration, Protocol } from "../core/protocol.ts";
import { natural, real, text } from "../core/shape.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { Host } from "./host.ts";
import { realPlatform } from "./platform/real.ts";

type Diary = {
  state: { pages: string[]; drafts: string[] };
  message: { type: "note"; text: string };
  timer: "evening";
  command:
    | { type: "write"; text: string }
    | { type: "tell"; to: number; text: string }
    | { type: "wait"; ms: number }
    | { type: "break" };
  event: { type: "written"; pages: number };
};

/** A protocol that records everything it receives. */
function diary(evening: Duration | null = null): Protocol<Diary> {
  return {
    name: "diary",
    init: () => ({ pages: [], drafts: [] }),
    start: (state) => void state.pages.push("start"),
    receive: {
      note(state, from, { text }) {
        if (text === "impossible") throw new InvariantViolation("diary", "a note says the impossible");
        state.pages.push(`note ${text} from ${from}`);
      },
    },
    timeout: { evening: (state) => void state.pages.push("evening") },
    command: {
      write(state, { text }, ctx) {
        ctx.emit({ type: "written", pages: state.pages.length + 1 });
        state.pages.push(text);
      },
      tell: (_state, { to, text }, ctx) => ctx.send(to, { type: "note", text }),
      wait: (_state, { ms }, ctx) => ctx.setTimer("evening", evening ?? ms),
      break: () => {
        throw new TypeError("x is not a function");
      },
    },
    shapes: {
      message: { note: { text: text(100) } },
      command: { write: { text: text(100) }, tell: { to: natural, text: text(100) }, wait: { ms: real }, break: {} },
    },
    source: "none",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ pages }) => ({ role: `${pages.length} pages` }),
  };
}

function hosting(protocol: Protocol<Diary> = diary(), onEvent?: (host: Host<Diary>, pages: number) => void) {
  const sent: { to: number; text: string }[] = [];
  const entries: TraceEntry<Diary>[] = [];
  const fatal: Error[] = [];
  const trace = { wanted: false, record: (entry: TraceEntry<Diary>) => void entries.push(entry) };
  const id = vi.fn(() => "a name");
  const host: Host<Diary> = new Host<Diary>({
    platform: realPlatform,
    protocol,
    self: 1,
    peers: [3, 2],
    send(to, message) {
      sent.push({ to, text: message.text });
      return { id, lost: to === 3 ? "cut" : null };
    },
    trace,
    onEvent: ({ pages }) => onEvent?.(host, pages),
    onFatal: (error) => fatal.push(error),
  });
  const pages = (): string[] => (host.snapshot() as { state: Diary["state"] } & TraceEntry<Diary>).state.pages;
  const note = (words: string): void => host.receive(2, { type: "note", text: words }, id);
  return { host, pages, note, sent, entries, fatal, trace, id };
}

describe("a host", () => {
  test("runs the handler of every stimulus", () => {
    const { host, pages, note, sent } = hosting();
    host.start();
    note("hello");
    host.command({ type: "write", text: "dear diary" });
    host.command({ type: "tell", to: 2, text: "hi" });
    expect(pages()).toEqual(["start", "note hello from 2", "dear diary"]);
    expect(sent).toEqual([{ to: 2, text: "hi" }]);
    expect(host.view).toEqual({ role: "3 pages" });
    host.stop();
  });

  test.each<[unknown, string]>([
    [{ type: "burn" }, 'expected command.type to be one of write, tell, wait, break, got "burn"'],
    [{ type: "write" }, "expected command.text to be text of at most 100 bytes"],
    [{ type: "write", text: "a", page: 3 }, "expected command.page to be absent, got 3"],
    ["write", 'expected command to be an object with a type, got "write"'],
    [{ type: "toString" }, "expected command.type to be one of"],
  ])("rejects the command %j", (command, problem) => {
    const { host, pages } = hosting();
    host.start();
    expect(() => host.command(command)).toThrow(problem);
    expect(pages()).toEqual(["start"]);
  });

  test("rejects commands before it starts and after it stops instead of dropping them", () => {
    const { host } = hosting();
    const command = { type: "write", text: "a" };
    expect(() => host.command(command)).toThrow(UsageError);
    host.start();
    host.command(command);
    host.stop();
    expect(() => host.command(command)).toThrow("expected a running node");
  });

  test("passes events to the application after the step, so that a resulting command is a separate step", () => {
    const heard: number[] = [];
    const { host, pages } = hosting(diary(), (told, count) => {
      heard.push(count);
      if (count < 4) told.command({ type: "write", text: `answer to ${count}` });
    });
    host.start();
    host.command({ type: "write", text: "first" });
    expect(pages()).toEqual(["start", "first", "answer to 2", "answer to 3"]);
    expect(heard).toEqual([2, 3, 4]);
  });

  test("refuses to run a protocol that persists without a journal", () => {
    const kept = { ...diary(), replay: { page: () => {} } } as unknown as Protocol<Diary>;
    expect(() => hosting(kept)).toThrow("expected a journal for diary, which keeps one, got none");
  });
});

describe("a protocol that violates its own invariants", () => {
  test.each<[string, (under: ReturnType<typeof hosting>) => void, string]>([
    ["on a message", ({ note }) => note("impossible"), "a note says the impossible"],
    ["on a command", ({ host }) => host.command({ type: "break" }), "x is not a function"],
  ])("%s is reported, and then nothing reaches the protocol", (_when, violate, message) => {
    vi.useFakeTimers();
    const under = hosting();
    const { host, pages, note, fatal } = under;
    host.start();
    host.command({ type: "wait", ms: 10 });
    violate(under);
    expect(fatal.map((error) => error.message)).toEqual([message]);
    note("late");
    vi.advanceTimersByTime(100);
    expect(() => host.command({ type: "write", text: "late" })).toThrow(UsageError);
    expect(pages()).toEqual(["start"]);
    expect(fatal).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test.each<[Duration, string]>([
    [Number.NaN, "NaN"],
    [-1, "-1"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [[10, 1], '"10 to 1"'],
    [[-1, 1], '"-1 to 1"'],
    [[0, Number.POSITIVE_INFINITY], '"0 to Infinity"'],
  ])("such as a timer of %j ms", (duration, got) => {
    const { host, fatal } = hosting(diary(duration));
    host.start();
    host.command({ type: "wait", ms: 1 });
    expect(fatal).toEqual([expect.any(InvariantViolation)]);
    const expected = "a finite number of milliseconds, at least 0, or a range of two such numbers, smallest first";
    expect(fatal[0]?.message).toBe(`expected the duration of evening to be ${expected}, got ${got}`);
  });
});

describe("the trace", () => {
  test("costs nothing without listeners", () => {
    const { host, note, entries, id } = hosting();
    host.start();
    note("hello");
    host.command({ type: "write", text: "a" });
    host.command({ type: "tell", to: 3, text: "hi" });
    expect(entries).toEqual([]);
    expect(id).not.toHaveBeenCalled();
    host.stop();
  });

  test("contains actions in order, and the view when it has changed", () => {
    const { host, note, entries, trace } = hosting();
    trace.wanted = true;
    host.start();
    note("hello");
    host.command({ type: "tell", to: 3, text: "hi" });
    host.command({ type: "write", text: "a" });
    expect(entries.map(({ at: _at, ...entry }) => entry)).toEqual([
      { node: 1, kind: "start" },
      { node: 1, kind: "view", view: { role: "1 pages" }, state: { pages: ["start"], drafts: [] } },
      { node: 1, kind: "receive", id: "a name", from: 2, message: { type: "note", text: "hello" } },
      {
        node: 1,
        kind: "view",
        view: { role: "2 pages" },
        state: { pages: ["start", "note hello from 2"], drafts: [] },
      },
      { node: 1, kind: "command", command: { type: "tell", to: 3, text: "hi" } },
      { node: 1, kind: "send", id: "a name", to: 3, message: { type: "note", text: "hi" } },
      { node: 1, kind: "lost", id: "a name", to: 3, why: "cut" },
      { node: 1, kind: "command", command: { type: "write", text: "a" } },
      { node: 1, kind: "event", event: { type: "written", pages: 3 } },
      expect.objectContaining({ kind: "view", view: { role: "3 pages" } }),
    ]);
    expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).sort((a, b) => a - b));
    host.stop();
  });

  test("marks a message after the end as lost, as at a crashed node", () => {
    const { host, note, entries, trace } = hosting();
    host.start();
    host.stop();
    trace.wanted = true;
    note("late");
    expect(entries).toEqual([expect.objectContaining({ kind: "lost", id: "a name", to: 1, why: "crashed" })]);
  });
});

test("contains the chosen option of each choice", () => {
  const written = ["red", "blue"];
  const base = diary();
  const protocol: Protocol<Diary> = {
    ...base,
    start: (state, ctx) => void state.pages.push(ctx.choose("colour", written)),
  };
  const { host, pages, entries, trace } = hosting(protocol);
  trace.wanted = true;
  host.start();
  expect(written).toContain(pages()[0]);
  expect(entries[1]).toMatchObject({ node: 1, kind: "choice", label: "colour", option: pages()[0] });
  host.stop();
});

test("messages before the start wait for it", () => {
  const { host, note, entries, trace } = hosting();
  trace.wanted = true;
  note("early");
  expect(entries).toEqual([]);
  host.start();
  expect(entries.map(({ kind }) => kind)).toEqual(["start", "view", "receive", "view"]);
  host.stop();
});

test("holds at most 4 MiB of messages before the start", () => {
  const { host, note, pages } = hosting();
  for (let number = 0; number < 100; number++) note("x".repeat(60_000));
  host.start();
  expect(pages()).toHaveLength(1 + 69);
  host.stop();
});

describe("timers", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("fire once, after their time; setting one again restarts it", () => {
    const { host, pages } = hosting();
    host.start();
    host.command({ type: "wait", ms: 10 });
    vi.advanceTimersByTime(9);
    host.command({ type: "wait", ms: 10 });
    vi.advanceTimersByTime(9);
    expect(pages()).toEqual(["start"]);
    vi.advanceTimersByTime(1);
    expect(pages()).toEqual(["start", "evening"]);
    vi.advanceTimersByTime(1_000);
    expect(pages()).toHaveLength(2);
  });

  test("report when they will fire", () => {
    const { host } = hosting();
    host.start();
    expect(host.dueAt("evening")).toBeNull();
    host.command({ type: "wait", ms: 10 });
    expect(host.dueAt("evening")).toBe(performance.now() + 10);
    vi.advanceTimersByTime(10);
    expect(host.dueAt("evening")).toBeNull();
  });

  test("fire earlier by the time the machine slept, when they were stopped", () => {
    const { host } = hosting();
    host.start();
    host.command({ type: "wait", ms: 1_000 });
    const due = performance.now() + 1_000;
    vi.setSystemTime(Date.now() + 5_000);
    expect(host.dueAt("evening")).toBe(due - 5_000);
    vi.setSystemTime(Date.now() - 9_000); // If the clock is set back, the monotonic clock is used.
    expect(host.dueAt("evening")).toBe(due);
  });

  test("can be longer than Node's own", () => {
    const { host, pages } = hosting();
    host.start();
    host.command({ type: "wait", ms: 2 ** 31 + 500 });
    vi.advanceTimersByTime(2 ** 31);
    expect(pages()).toEqual(["start"]);
    vi.advanceTimersByTime(500);
    expect(pages()).toEqual(["start", "evening"]);
  });

  test("do not fire after the host has stopped", () => {
    const { host, pages } = hosting();
    host.start();
    host.command({ type: "wait", ms: 10 });
    host.stop();
    vi.advanceTimersByTime(100);
    expect(pages()).toEqual(["start"]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("after a pause of the process", () => {
  const closing = closedAfterEach();

  test("messages that arrived meanwhile are handled before timers", async () => {
    const { host, pages, note } = hosting();
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const sender = connect(port, "127.0.0.1");
    const [receiver] = (await once(server, "connection")) as [Socket];
    closing({ close: () => [sender.destroy(), receiver.destroy(), server.close()] });
    receiver.on("data", () => note("heard"));
    host.start();
    await nextTurn();
    host.command({ type: "wait", ms: 5 });
    sender.write("x");
    for (const stoodUntil = performance.now() + 60; performance.now() < stoodUntil; );
    await vi.waitFor(() => expect(pages()).toHaveLength(3), PATIENCE);
    expect(pages()).toEqual(["start", "note heard from 2", "evening"]);
    host.stop();
  });
});

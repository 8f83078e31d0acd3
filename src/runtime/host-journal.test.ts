/** Checks a host with a journal: when effects take place, and which state is restored after a crash. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { InvariantViolation } from "../core/errors.ts";
import type { Protocol } from "../core/protocol.ts";
import { list, natural, text } from "../core/shape.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { Host } from "./host.ts";
import type { Slot } from "./journal/journal.ts";
import { realPlatform } from "./platform/real.ts";

type Filing = {
  state: { files: string[]; started: number };
  message: { type: "files"; names: string[] };
  timer: "noon";
  command:
    | { type: "say"; what: string }
    | { type: "file"; name: string }
    | { type: "shred" }
    | { type: "between"; first: string; last: string }
    | { type: "wait"; ms: number };
  event: { type: "filed"; names: string[] };
  record: { type: "file"; name: string } | { type: "nothing" };
};

/**
 * Journals each word it receives, then sends it to node 2 and emits it. The message is part of the protocol's state,
 * which changes later.
 */
const filing: Protocol<Filing> = {
  name: "filing",
  init: () => ({ files: [], started: 0 }),
  start: (state, ctx) => {
    state.started += 1;
    ctx.send(2, { type: "files", names: state.files });
  },
  receive: { files: () => {} },
  timeout: { noon: (state, ctx) => ctx.send(2, { type: "files", names: ["noon", ...state.files] }) },
  command: {
    say: (_state, { what }, ctx) => ctx.send(2, { type: "files", names: [what] }),
    file(state, { name }, ctx) {
      state.files.push(name);
      ctx.persist({ type: "file", name });
      ctx.send(2, { type: "files", names: state.files });
      ctx.emit({ type: "filed", names: state.files });
    },
    shred(state, _command, ctx) {
      state.files = [];
      ctx.compact([{ type: "nothing" }]);
    },
    between(_state, { first, last }, ctx) {
      ctx.send(2, { type: "files", names: [first] });
      ctx.persist({ type: "file", name: first });
      ctx.send(2, { type: "files", names: [last] });
    },
    wait: (_state, { ms }, ctx) => ctx.setTimer("noon", ms),
  },
  replay: {
    file: (state, { name }) => void state.files.push(name),
    nothing(state) {
      state.files = [];
    },
  },
  shapes: {
    message: { files: { names: list(text(100), 100) } },
    command: {
      say: { what: text(100) },
      file: { name: text(100) },
      shred: {},
      between: { first: text(100), last: text(100) },
      wait: { ms: natural },
    },
    record: { file: { name: text(100) }, nothing: {} },
  },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: ({ files }) => ({ role: `${files.length} files` }),
};

/** Creates a slot whose disk writes complete when the test calls `sync`. */
function slotOf(records: Filing["record"][] = []) {
  const waiting: (() => void)[] = [];
  const written: string[] = [];
  const slot: Slot<Filing["record"]> = {
    records,
    append: (record) => void written.push(JSON.stringify(record)),
    compact: (left) => void written.push(`only ${left.map((record) => JSON.stringify(record)).join()}`),
    whenDurable: (then) => void waiting.push(then),
    release: () => {},
  };
  /** Makes the first `count` waiting writes durable. */
  const sync = (count = waiting.length): void => {
    for (const then of waiting.splice(0, count)) then();
  };
  return { slot, sync, written, waiting };
}

function hosting(records: Filing["record"][] = [], protocol = filing) {
  const disk = slotOf(records);
  const sent: string[] = [];
  const told: string[] = [];
  const fatal: Error[] = [];
  const entries: TraceEntry<Filing>[] = [];
  const trace = { wanted: false, record: (entry: TraceEntry<Filing>) => void entries.push(entry) };
  const host: Host<Filing> = new Host<Filing>({
    platform: realPlatform,
    protocol,
    slot: disk.slot,
    self: 1,
    peers: [2],
    send(_to, { names }) {
      sent.push(names.join(" "));
      return { id: () => `message ${sent.length}`, lost: null };
    },
    trace,
    onEvent: ({ names }) => {
      told.push(names.join(" "));
      if (names.at(-1) === "answer me") host.command({ type: "file", name: "answer" });
    },
    onFatal: (error) => fatal.push(error),
  });
  return { host, sent, told, fatal, entries, trace, ...disk };
}

test("a node restores its journal before it starts", () => {
  const { host, sent } = hosting([{ type: "file", name: "a" }, { type: "nothing" }, { type: "file", name: "b" }]);
  host.start();
  expect(sent).toEqual(["b"]);
  expect(host.snapshot()).toMatchObject({ state: { files: ["b"], started: 1 } });
});

describe("effects after a write", () => {
  test("leave once it is durable, to peers and to the application", () => {
    const { host, sent, told, sync, written } = hosting();
    host.start();
    host.command({ type: "file", name: "a" });
    expect(written).toEqual(['{"type":"file","name":"a"}']);
    expect([sent, told]).toEqual([[""], []]);
    expect(host.view).toEqual({ role: "1 files" });
    sync();
    expect([sent, told]).toEqual([["", "a"], ["a"]]);
  });

  test("have the content of their own time, regardless of later changes", () => {
    const { host, sent, told, sync } = hosting();
    host.start();
    for (const name of ["a", "b", "c"]) host.command({ type: "file", name });
    sync();
    expect(sent).toEqual(["", "a", "a b", "a b c"]);
    expect(told).toEqual(["a", "a b", "a b c"]);
  });

  test("keep their order relative to earlier and later effects", () => {
    const { host, sent, sync } = hosting();
    host.start();
    host.command({ type: "between", first: "1 before", last: "2 after" });
    host.command({ type: "say", what: "3 later" });
    host.command({ type: "between", first: "4 before", last: "5 after" });
    expect(sent).toEqual(["", "1 before"]);
    sync(1);
    expect(sent).toEqual(["", "1 before", "2 after", "3 later", "4 before"]);
    sync();
    expect(sent.at(-1)).toBe("5 after");
    host.command({ type: "say", what: "at once" });
    expect(sent.at(-1)).toBe("at once");
  });

  test("also wait for a compaction of the journal", () => {
    const { host, sent, sync, written } = hosting();
    host.start();
    host.command({ type: "shred" });
    host.command({ type: "say", what: "shredded" });
    expect(written).toEqual(['only {"type":"nothing"}']);
    expect(sent).toEqual([""]);
    sync();
    expect(sent).toEqual(["", "shredded"]);
  });

  test("may trigger further commands of the application", () => {
    const { host, told, sync, sent } = hosting();
    host.start();
    host.command({ type: "file", name: "answer me" });
    host.command({ type: "say", what: "later" });
    sync(1);
    expect(sent).toEqual(["", "answer me", "later"]);
    expect(told).toEqual(["answer me"]);
    sync();
    expect(sent.at(-1)).toBe("answer me answer");
    expect(told).toEqual(["answer me", "answer me answer"]);
  });

  test("never leave after the host has stopped, as after a crash", () => {
    const { host, sent, told, sync } = hosting();
    host.start();
    host.command({ type: "file", name: "a" });
    host.stop();
    sync();
    expect([sent, told]).toEqual([[""], []]);
  });
});

describe("while the disk is at work", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("timers continue, and their effects wait in order", () => {
    const { host, sent, sync } = hosting();
    host.start();
    host.command({ type: "file", name: "a" });
    host.command({ type: "wait", ms: 10 });
    vi.advanceTimersByTime(10);
    expect(host.dueAt("noon")).toBeNull();
    expect(sent).toEqual([""]);
    sync();
    expect(sent).toEqual(["", "a", "noon a"]);
  });
});

test("the trace is in the order of steps, written when effects leave, with the times of the steps", () => {
  const { host, entries, trace, sync } = hosting([{ type: "file", name: "old" }]);
  trace.wanted = true;
  host.start();
  expect(entries[0]).toMatchObject({ kind: "start", journal: [{ type: "file", name: "old" }] });
  entries.length = 0;
  host.command({ type: "file", name: "a" });
  host.command({ type: "say", what: "b" });
  expect(entries.map(({ kind }) => kind)).toEqual(["command"]);
  sync();
  expect(entries.map(({ kind }) => kind)).toEqual(["command", "send", "event", "view", "command", "send"]);
  expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).sort((a, b) => a - b));
});

test("a protocol that persists a record without a replay handler is wrong", () => {
  const { replay: _replay, ...forgetful } = filing;
  const fatal: Error[] = [];
  const host = new Host<Filing>({
    platform: realPlatform,
    protocol: forgetful as Protocol<Filing>,
    self: 1,
    peers: [2],
    send: () => ({ id: () => "", lost: null }),
    trace: { wanted: false, record: () => {} },
    onFatal: (error) => fatal.push(error),
  });
  host.start();
  host.command({ type: "file", name: "a" });
  expect(fatal).toEqual([expect.any(InvariantViolation)]);
  expect(fatal[0]?.message).toBe("filing journals “file” but has no handler that replays it");
});

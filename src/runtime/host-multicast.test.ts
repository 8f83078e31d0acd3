import { describe, expect, test } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { natural, text } from "../core/shape.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { Host } from "./host.ts";
import type { Slot } from "./journal/journal.ts";
import { realPlatform } from "./platform/real.ts";

type Crier = {
  state: { cries: string[] };
  message: { type: "cry"; words: string };
  command:
    | { type: "cry"; words: string }
    | { type: "whisper"; to: number; words: string }
    | { type: "vow"; words: string };
  record: { type: "vowed"; words: string };
};

/** Sends messages on command. A `vow` is journaled before it is sent. */
const crier: Protocol<Crier> = {
  name: "crier",
  init: () => ({ cries: [] }),
  receive: { cry: (state, _from, { words }) => void state.cries.push(words) },
  command: {
    cry: (_state, { words }, ctx) => ctx.broadcast({ type: "cry", words }),
    whisper: (_state, { to, words }, ctx) => ctx.send(to, { type: "cry", words }),
    vow(_state, { words }, ctx) {
      ctx.persist({ type: "vowed", words });
      ctx.broadcast({ type: "cry", words });
    },
  },
  replay: { vowed: (state, { words }) => void state.cries.push(words) },
  shapes: {
    message: { cry: { words: text(100) } },
    command: { cry: { words: text(100) }, whisper: { to: natural, words: text(100) }, vow: { words: text(100) } },
    record: { vowed: { words: text(100) } },
  },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "crier" }),
};

function hosting() {
  const said: string[] = [];
  const entries: TraceEntry<Crier>[] = [];
  const trace = { wanted: true, record: (entry: TraceEntry<Crier>) => void entries.push(entry) };
  const waiting: (() => void)[] = [];
  const slot: Slot<Crier["record"]> = {
    records: [],
    append: () => undefined,
    compact: () => undefined,
    whenDurable: (then) => void waiting.push(then),
    release: () => undefined,
  };
  const host = new Host<Crier>({
    platform: realPlatform,
    protocol: crier,
    self: 0,
    peers: [2, 1],
    slot,
    trace,
    send(to, { words }) {
      said.push(`${words} to ${to}`);
      return { id: () => `${words}-${to}`, lost: null };
    },
    multicast({ words }) {
      said.push(`${words} to all`);
      return (to) => ({ id: () => `${words}-${to}`, lost: to === 2 ? "overflow" : null });
    },
    onFatal(error) {
      throw error;
    },
  });
  host.start();
  entries.length = 0;
  const told = (): string[] =>
    entries.flatMap((entry) =>
      entry.kind === "send" || entry.kind === "lost" ? [`${entry.kind} ${entry.id} to ${entry.to}`] : [],
    );
  const sync = (): void => {
    for (const then of waiting.splice(0)) then();
  };
  return { host, said, told, sync, trace };
}

describe("a host whose transport multicasts", () => {
  test("passes on a broadcast once, and single messages as before", () => {
    const { host, said } = hosting();
    host.command({ type: "cry", words: "a" });
    host.command({ type: "whisper", to: 1, words: "b" });
    expect(said).toEqual(["a to all", "b to 1"]);
  });

  test("traces each receiver separately, in ascending order, with losses", () => {
    const { host, told } = hosting();
    host.command({ type: "cry", words: "a" });
    expect(told()).toEqual(["send a-1 to 1", "send a-2 to 2", "lost a-2 to 2"]);
  });

  test("requests no ids without trace listeners", () => {
    const { host, trace, told, said } = hosting();
    trace.wanted = false;
    host.command({ type: "cry", words: "a" });
    expect([said, told()]).toEqual([["a to all"], []]);
  });

  test("holds a broadcast until earlier journal records are durable", () => {
    const { host, said, told, sync } = hosting();
    host.command({ type: "vow", words: "a" });
    host.command({ type: "cry", words: "b" });
    expect([said, told()]).toEqual([[], []]);
    sync();
    expect(said).toEqual(["a to all", "b to all"]);
    expect(told().slice(0, 3)).toEqual(["send a-1 to 1", "send a-2 to 2", "lost a-2 to 2"]);
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { everyKind, headerFor, receive, send, traceOf } from "../../test/trace/small-traces.ts";
import { UsageError } from "../core/errors.ts";
import type { TraceEntry } from "./entry.ts";
import { readTrace, traceLines, writeTrace } from "./file.ts";
import { vectorClocks } from "./steps.ts";

const header = headerFor([0, 1, 2]);
const written = (...lines: unknown[]): string =>
  `${[header, ...lines].map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n")}\n`;

function refusal(text: string, limits?: Parameters<typeof readTrace>[1]): string {
  try {
    readTrace(text, limits);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as Error).message;
  }
  throw new Error("expected the text to be refused");
}

describe("a trace file", () => {
  it("reads every kind of entry with its clock, as it was written", () => {
    const text = writeTrace(everyKind.header, everyKind.entries);
    expect(readTrace(text)).toEqual({ ...everyKind, torn: false });
    expect(text.split("\n")[1]).toBe('{"at":0,"node":0,"kind":"start","clock":{"0":1}}');
  });

  it("is the same when written line by line", () => {
    const lines = traceLines(everyKind.header);
    const text = lines.header + everyKind.entries.map((entry) => lines.entry(entry)).join("");
    expect(text).toBe(writeTrace(everyKind.header, everyKind.entries));
  });

  it("computes all clocks on reading if a line has none", () => {
    const live = [send(1, 0, 1, "a"), receive(2, 1, 0, "a")];
    expect(readTrace(written(...live)).clocks).toEqual([{ 0: 1 }, { 0: 1, 1: 1 }]);
  });

  it("keeps the clocks of an excerpt, which count from the beginning of the whole trace", () => {
    const part = [receive(2, 1, 0, "a")];
    const { clocks } = readTrace(writeTrace(header, part, [{ 0: 7, 1: 3 }]));
    expect(clocks).toEqual([{ 0: 7, 1: 3 }]);
  });

  it("may end in the middle of a line, and reports it", () => {
    const whole = writeTrace(everyKind.header, everyKind.entries);
    const { entries, torn } = readTrace(whole.slice(0, -9));
    expect({ count: entries.length, torn }).toEqual({ count: everyKind.entries.length - 1, torn: true });
    expect(readTrace(whole.slice(0, -1))).toMatchObject({ torn: false, entries: everyKind.entries });
  });
});

describe("a damaged trace file", () => {
  it.each([
    ["", "line 1: expected the header of a trace, got an empty file"],
    ["hello", 'line 1: expected the header of a trace to be an object with kind "trace", got "hello"'],
    [JSON.stringify({ ...header, version: 2 }), "line 1: expected version to be 1, got 2"],
    [
      JSON.stringify({ ...header, nodes: [0, 0] }),
      "line 1: expected nodes to be a list of different natural numbers, got [0,0]",
    ],
    [
      JSON.stringify({ ...header, violation: { property: "P" } }),
      "line 1: expected violation.claim to be text, got undefined",
    ],
    [written("{not json}", "more"), 'line 2: expected the entry to be an object, got "{not json}"'],
    [written({ at: "x", node: 0, kind: "start" }), 'line 2: expected at to be a finite number, got "x"'],
    [written("", { at: 0, node: 9, kind: "start" }), "line 3: expected node to be one of 0, 1, 2, got 9"],
    [written({ at: 0, node: 0, kind: "sned" }), /^line 2: expected kind to be one of start, crash, .*, got "sned"$/],
    [written({ ...send(0, 0, 1, "a"), message: {} }), "line 2: expected message to be an object with a type, got {}"],
    [
      written({ at: 0, node: 0, kind: "lost", id: "a", to: 1, why: "gone" }),
      'line 2: expected why to be one of cut, dropped, overflow, crashed, down, got "gone"',
    ],
    [
      written({ at: 0, node: 0, kind: "view", view: {}, state: {} }),
      "line 2: expected view.role to be text, got undefined",
    ],
    [
      written({ at: 0, node: 0, kind: "view", view: { role: "member", held: "0.1" }, state: {} }),
      'line 2: expected view.held to be a list of strings, or absent, got "0.1"',
    ],
    [
      written({ at: 0, node: 0, kind: "view", view: { role: "member", certificates: [{ of: "x", needed: 2 }] } }),
      /^line 2: expected view.certificates to be a list of objects .*, got \[\{"of":"x","needed":2\}\]$/,
    ],
    [
      written({ at: 0, node: 0, kind: "crash", journal: 5 }),
      "line 2: expected journal to be a list of records, or absent, got 5",
    ],
    [
      written({ at: 0, node: 0, kind: "start", clock: { 0: -1 } }),
      'line 2: expected clock to be counts by node, got {"0":-1}',
    ],
  ])("is rejected by line and field: %#", (text, sentence) => {
    expect(refusal(text)).toMatch(sentence);
  });

  it("is bounded in the number of entries and the length of a line", () => {
    const text = written(send(0, 0, 1, "a"), send(0, 0, 1, "b"));
    expect(refusal(text, { maxEntries: 1 })).toBe("line 3: expected at most 1 entries, got more");
    expect(refusal(text, { maxLineLength: 20 })).toMatch(/^line 1: expected at most 20 characters, got \d+$/);
  });
});

describe("nested values", () => {
  const within = (depth: number): string =>
    `{"at":0,"node":0,"kind":"command","command":{"type":"put","value":${"[".repeat(depth)}${"]".repeat(depth)}}}`;
  const tooDeep = "expected lists and objects nested at most 500 deep, got deeper ones";

  it("are read up to a depth of 500 and rejected beyond", () => {
    expect(readTrace(written(within(498))).entries).toHaveLength(1); // The entry and the command add two levels.
    expect(refusal(written(within(499)))).toBe(`line 2: ${tooDeep}`);
  });

  it("are rejected at any depth that a line can have, even in the header", () => {
    const [depth, options] = [20_000, `"options":${"[".repeat(20_000)}${"]".repeat(20_000)}`];
    expect(refusal(written(within(depth)))).toBe(`line 2: ${tooDeep}`);
    expect(refusal(JSON.stringify(header).replace('"options":{}', options))).toBe(`line 1: ${tooDeep}`);
  });
});

/** Generates runs of three nodes that end with some messages in flight. */
const runs = fc
  .array(fc.record({ node: fc.nat(2), to: fc.nat(2), wait: fc.nat(5), arrives: fc.boolean() }), { maxLength: 30 })
  .map((plans) => {
    const entries: TraceEntry[] = [];
    const due: TraceEntry[] = [];
    for (const [at, { node, to, wait, arrives }] of plans.entries()) {
      entries.push(...due.splice(0, wait).map((entry) => ({ ...entry, at })));
      entries.push(send(at, node, to, `m${at}`));
      if (arrives) due.push(receive(at, to, node, `m${at}`));
    }
    return traceOf([0, 1, 2], entries);
  });

describe("lines in a different order", () => {
  it("keep each node's order, put sendings before receipts, and keep times ascending where possible", () => {
    fc.assert(
      fc.property(runs, fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 3, maxLength: 3 }), (trace, skews) => {
        // Clocks that differ, and a recorder that writes the nodes one after another.
        const skewed = trace.entries.map((entry) => ({ ...entry, at: entry.at + (skews[entry.node] ?? 0) }));
        const byNode = skewed.toSorted((a, b) => a.node - b.node);
        const { entries, clocks } = readTrace(
          `${[trace.header, ...byNode].map((line) => JSON.stringify(line)).join("\n")}\n`,
        );
        expect(entries).toHaveLength(skewed.length);
        for (const node of [0, 1, 2])
          expect(entries.filter((entry) => entry.node === node)).toEqual(skewed.filter((entry) => entry.node === node));
        const sent = new Set<string>();
        for (const [index, entry] of entries.entries()) {
          if (entry.kind === "send") sent.add(entry.id);
          if (entry.kind === "receive") expect(sent).toContain(entry.id);
          const before = entries[index - 1];
          if (before === undefined || before.at <= entry.at || before.node === entry.node) continue;
          expect([before, entry]).toMatchObject([
            { kind: "send" },
            { kind: "receive", id: (before as { id?: string }).id },
          ]);
        }
        expect(clocks).toEqual(vectorClocks(entries));
      }),
    );
  });

  it("stay as they are if they are already in order", () => {
    fc.assert(
      fc.property(runs, (trace) => {
        expect(readTrace(writeTrace(trace.header, trace.entries)).entries).toEqual(trace.entries);
      }),
    );
  });

  it("are all read if messages wait for each other in a cycle", () => {
    const circle = [receive(0, 0, 1, "b"), send(1, 0, 1, "a"), receive(0, 1, 0, "a"), send(1, 1, 0, "b")];
    expect(readTrace(written(...circle)).entries).toHaveLength(4);
  });
});

it("a fault that was written late is sorted by its time, between the steps of its node", () => {
  const entries: TraceEntry[] = [
    send(1, 0, 1, "a"),
    receive(4, 1, 0, "a"),
    { at: 4, node: 1, kind: "event", event: { type: "heard" } },
    receive(9, 1, 0, "b"),
    { at: 4, node: 1, kind: "fault", what: "link to 0 cut" },
    send(8, 0, 1, "b"),
  ];
  const text = written(...entries);
  expect(readTrace(text).entries.map(({ at, kind }) => `${at} ${kind}`)).toEqual([
    "1 send",
    "4 receive",
    "4 event",
    "4 fault",
    "8 send",
    "9 receive",
  ]);
});

import { describe, expect, it } from "vitest";
import { checkLinearizability, type Violated } from "./check.ts";
import type { History, Operation, Value } from "./history.ts";
import { counter, modelNamed, register, show } from "./model.ts";

/**
 * Parses a history with one operation per line: `process f input → output @call-return on key`. Without a number after
 * the dash, the operation never returned. Values are JSON, and words are strings.
 */
function story(text: string): History {
  const lines = text.split("\n").map((line) => line.trim());
  return { operations: lines.filter((line) => line !== "").map(operation), remarks: [] };
}

function operation(text: string, index: number): Operation {
  const match = /^(\S+) (\w+)(?: ([^→@]+?))?(?: → (.+?))? @([\d.]+)-([\d.]*)(?: on (\S+))?$/.exec(text);
  if (match === null) throw new Error(`not an operation: ${text}`);
  const [, process = "", f = "", input, output, call, end, key] = match;
  const isPending = end === "";
  return {
    process,
    f,
    key,
    input: value(input),
    output: isPending ? undefined : value(output),
    call: Number(call),
    return: isPending ? null : Number(end),
    line: index + 1,
  };
}

function value(text: string | undefined): Value {
  if (text === undefined) return null;
  return /^[[{"\d-]|^(?:true|false|null)$/.test(text) ? (JSON.parse(text) as Value) : text;
}

/** The name, the model and the operations. */
type Story = readonly [string, string, string];

const linearizable: readonly Story[] = [
  ["nothing happened", "register", ""],
  ["a read of the initial value", "register", "a read → null @0-1"],
  ["one after another", "register", "a write 1 @0-1 \n b read → 1 @2-3 \n a write 2 @4-5 \n b read → 2 @6-7"],
  ["a read during a write sees the old value", "register", "a write 1 @0-9 \n b read → null @1-2"],
  ["a read during a write sees the new value", "register", "a write 1 @0-9 \n b read → 1 @1-2"],
  ["reads during a write see old, then new", "register", "a write 1 @0-9 \n b read → null @1-2 \n b read → 1 @3-4"],
  ["two writes at once, in the other order", "register", "a write 1 @0-5 \n b write 2 @1-3 \n c read → 2 @6-7"],
  [
    "reads that pin down the order of three writes",
    "register",
    "a write 1 @0-20 \n b write 2 @0-20 \n c write 3 @0-20 \n d read → 3 @1-4 \n d read → 1 @5-8 \n d read → 2 @9-12",
  ],
  ["a pending write that a read observed", "register", "a write 1 @0- \n b read → 1 @5-6"],
  ["a pending write that no read observed", "register", "a write 1 @0- \n b read → null @5-6"],
  ["a pending write that is observed late", "register", "a write 1 @0- \n b read → null @5-6 \n b read → 1 @7-8"],
  ["nothing returned", "register", "a write 1 @0- \n b read @1- \n c cas [1,2] @2-"],
  ["the same clock time orders nothing", "register", "a write 1 @0-5 \n b read → null @5-6"],
  ["nor does it within one process", "register", "a write 1 @0-5 \n a read → null @5-6"],
  [
    "everything at the same moment",
    "register",
    "a read → 2 @3-3 \n b write 1 @3-3 \n c read → 1 @3-3 \n d write 2 @3-3",
  ],
  ["cas that succeeds", "register", "a write 1 @0-1 \n b cas [1,2] → true @2-3 \n a read → 2 @4-5"],
  ["cas that fails leaves the value", "register", "a write 1 @0-1 \n b cas [7,2] → false @2-3 \n a read → 1 @4-5"],
  ["a chain of pending cas", "register", "a cas [null,1] @0- \n b cas [1,2] @0- \n c cas [2,3] @0- \n d read → 3 @5-6"],
  [
    "equal pending writes, each noticed",
    "register",
    "a write 1 @0- \n b write 1 @0- \n c read → 1 @1-2 \n c write 2 @3-4 \n c read → 1 @5-6",
  ],
  ["values that are data", "register", 'a write {"x":[1]} @0-1 \n b read → {"x":[1]} @2-3'],
  [
    "keys do not order each other",
    "register",
    "a write 1 @0-1 on x \n b read → null @2-3 on y \n b read → 1 @4-5 on x",
  ],
  [
    "a map",
    "map",
    "a put 1 @0-1 on x \n a put 2 @2-3 on y \n b get → 1 @4-5 on x \n b delete → true @6-7 on x \n b get → null @8-9 on x",
  ],
  ["nothing to delete", "map", "a delete → false @0-1 on x \n b get → null @2-3 on x"],
  [
    "a queue gives back in order",
    "queue",
    "a enqueue 1 @0-1 \n a enqueue 2 @2-3 \n b dequeue → 1 @4-5 \n b dequeue → 2 @6-7",
  ],
  [
    "enqueues at once, either order",
    "queue",
    "a enqueue 1 @0-5 \n b enqueue 2 @1-3 \n c dequeue → 2 @6-7 \n c dequeue → 1 @8-9",
  ],
  [
    "duplicates come out as often as they went in",
    "queue",
    "a enqueue 1 @0-1 \n b enqueue 1 @0-1 \n c dequeue → 1 @2-3 \n d dequeue → 1 @2-3 \n c dequeue → null @4-5",
  ],
  ["empty before the enqueue takes effect", "queue", "a enqueue 1 @0-9 \n b dequeue → null @1-2 \n b dequeue → 1 @3-4"],
  ["a pending dequeue took the value", "queue", "a enqueue 1 @0-1 \n b dequeue @2- \n c dequeue → null @3-4"],
  ["a lock passed to the next holder", "lock", "a acquire @0-1 \n a release @2-3 \n b acquire @1-5 \n b release @6-7"],
  ["an unanswered release is noticed", "lock", "a acquire @0-1 \n a release @2- \n b acquire @3-4"],
  ["tokens increase, gaps allowed", "lock", "a acquire → 3 @0-1 \n a release 3 @2-3 \n b acquire → 7 @4-5"],
  [
    "an unanswered grant took a token",
    "lock",
    "a acquire → 1 @0-1 \n a release @2-3 \n b acquire @4- \n b release @5- \n c acquire → 3 @6-7",
  ],
  ["a refusal while it is held", "lock", "a acquire @0-1 \n b acquire → false @2-3 \n a release @4-5"],
  ["locks of two names", "lock", "a acquire @0-1 on m \n b acquire @2-3 on n"],
  ["a counter", "counter", "a add 2 @0-9 \n b read → 0 @1-2 \n b read → 2 @3-4 \n b add 3 → 5 @5-6"],
];

const violated: readonly (readonly [...Story, culprit: string])[] = [
  ["a value that was never written", "register", "a read → 7 @0-1", "read → 7"],
  ["a stale read", "register", "a write 1 @0-1 \n a write 2 @2-3 \n b read → 1 @4-5", "read → 1"],
  ["new, then old again", "register", "a write 1 @0-9 \n b read → 1 @1-2 \n c read → null @3-4", "read → nil"],
  ["a write from the future", "register", "a read → 1 @0-1 \n b write 1 @2-3", "read → 1"],
  ["a time just too early", "register", "a write 1 @0-5 \n b read → null @5.001-6", "read → nil"],
  [
    "two readers see two orders",
    "register",
    "a write 1 @0-9 \n b write 2 @0-9 \n c read → 1 @10-11 \n d read → 2 @12-13",
    "read → 2",
  ],
  ["a lost write", "register", "a write 1 @0-1 \n b cas [1,2] → true @2-3 \n c read → 1 @4-5", "read → 1"],
  [
    "two cas win from the same value",
    "register",
    "a write 0 @0-1 \n b cas [0,1] → true @2-9 \n c cas [0,2] → true @2-8",
    "cas 0 1",
  ],
  ["cas fails without a reason", "register", "a write 1 @0-1 \n b cas [1,2] → false @2-3", "cas 1 2 → false"],
  [
    "a pending write is noticed, then not",
    "register",
    "a write 1 @0- \n b read → 1 @1-2 \n b read → null @3-4",
    "read → nil",
  ],
  [
    "a pending write works only once",
    "register",
    "a write 1 @0- \n b read → 1 @1-2 \n b write 2 @3-4 \n b read → 2 @5-6 \n b read → 1 @7-8",
    "read → 1",
  ],
  ["a pending cas too few", "register", "a cas [null,1] @0- \n c cas [2,3] @0- \n d read → 3 @5-6", "read → 3"],
  [
    "one key of two is wrong",
    "register",
    "a write 1 @0-1 on x \n b read → 1 @2-3 on x \n b read → 1 @4-5 on y",
    "read → 1",
  ],
  ["a deleted entry comes back", "map", "a put 1 @0-1 on x \n a delete @2-3 on x \n b get → 1 @4-5 on x", "get → 1"],
  [
    "an entry is deleted twice",
    "map",
    "a put 1 @0-1 on x \n a delete → true @2-3 on x \n b delete → true @2-4 on x",
    "delete → true",
  ],
  ["a queue out of order", "queue", "a enqueue 1 @0-1 \n a enqueue 2 @2-3 \n b dequeue → 2 @4-5", "dequeue → 2"],
  ["one value out twice", "queue", "a enqueue 1 @0-1 \n b dequeue → 1 @2-5 \n c dequeue → 1 @3-6", "dequeue → 1"],
  [
    "three out of two duplicates",
    "queue",
    "a enqueue 1 @0-1 \n a enqueue 1 @2-3 \n b dequeue → 1 @4-5 \n b dequeue → 1 @6-7 \n b dequeue → 1 @8-9",
    "dequeue → 1",
  ],
  [
    "empty though something is in",
    "queue",
    "a enqueue 1 @0-1 \n b dequeue → null @2-3 \n b dequeue → 1 @4-5",
    "dequeue → nil",
  ],
  ["a lock granted twice", "lock", "a acquire @0-1 \n b acquire @2-3 \n a release @4-5", "acquire → nil"],
  ["a lock released by another", "lock", "a acquire @0-1 \n b release → true @2-3", "release → true"],
  ["the same token twice", "lock", "a acquire → 4 @0-1 \n a release @2-3 \n b acquire → 4 @4-5", "acquire → 4"],
  [
    "no room for the unanswered grant's token",
    "lock",
    "a acquire → 1 @0-1 \n a release @2-3 \n b acquire @4- \n c acquire → false @5-6 \n b release @7- \n c acquire → 2 @8-9",
    "acquire → 2",
  ],
  ["refused though it is free", "lock", "a acquire → false @0-1", "acquire → false"],
  ["an addition is lost", "counter", "a add 1 @0-1 \n b add 1 @0-1 \n c read → 1 @2-3", "read → 1"],
];

describe("handmade histories", () => {
  it.each(linearizable)("linearizable: %s (%s)", (_name, model, text) => {
    expect(checkLinearizability(story(text), modelNamed(model)).verdict).toBe("holds");
  });

  it.each(violated)("not linearizable: %s (%s)", (_name, model, text, culprit) => {
    const { verdict, findings } = checkLinearizability(story(text), modelNamed(model));
    expect(verdict).toBe("violated");
    const found = findings.filter((finding) => finding.verdict === "violated");
    expect(found.map((finding) => show(finding.culprit))).toEqual([culprit]);
  });

  it("a different initial value", () => {
    expect(checkLinearizability(story("a read → 7 @0-1"), register(7)).verdict).toBe("holds");
    expect(checkLinearizability(story("a read → 7 @0-1"), counter(7)).verdict).toBe("holds");
  });
});

describe("evidence", () => {
  it("a linearization, with the state after each operation", () => {
    const { findings } = checkLinearizability(
      story("a write 1 @0-9 \n b read → null @1-2 \n c write 2 @3- \n b read → 1 @3-4"),
      register(),
    );
    expect(findings).toMatchObject([
      {
        verdict: "holds",
        linearization: [
          { operation: { line: 2 }, state: "nil" },
          { operation: { line: 1 }, state: "1" },
          { operation: { line: 4 }, state: "1" },
        ],
      },
    ]);
  });

  it("the culprit, the longest partial linearizations, and the window to look at", () => {
    const text =
      "a write 1 @0-1 \n a write 2 @2-3 \n b write 3 @2-4 \n b read → 1 @6-9 \n c write 4 @7- \n a read → 2 @5-8 \n c read → 1 @20-21";
    const [finding] = checkLinearizability(story(text), register()).findings as [Violated];
    const lines = (operations: readonly Operation[]) => operations.map(({ line }) => line);
    expect(finding.culprit.line).toBe(4);
    expect(finding.longest.map((way) => way.at(-1)?.state)).toEqual(["2", "4"]);
    expect(lines(finding.longest[0]?.map(({ operation }) => operation) ?? [])).toEqual([1, 3, 2, 6]);
    expect(lines(finding.unplaced)).toEqual([4, 5]);
    expect(finding.window).toMatchObject({ from: 2, to: 9 });
    expect(lines(finding.window.operations)).toEqual([2, 4, 5, 6]);
  });

  it("objects are listed by key, each with its own verdict", () => {
    const { verdict, findings } = checkLinearizability(
      story("a read → null @0-1 on 10 \n b read → null @0-1 on 9 \n b read → 7 @2-3 on 10"),
      register(),
    );
    expect(verdict).toBe("violated");
    expect(findings.map(({ key, verdict }) => [key, verdict])).toEqual([
      ["9", "holds"],
      ["10", "violated"],
    ]);
  });
});

describe("limits", () => {
  /**
   * Creates many concurrent writes and a read of a value that none of them wrote, so the search must try every order.
   */
  const hard = (writes: number, key?: string): Operation[] => [
    ...Array.from({ length: writes }, (_, at) => operation(`p${at} write ${at} @0-9${key ? ` on ${key}` : ""}`, at)),
    operation(`r read → none @0-8${key ? ` on ${key}` : ""}`, writes),
  ];

  it.each([
    ["steps", { maxSteps: 20_000 }],
    ["memory", { maxConfigurations: 5_000 }],
  ] as const)("too few %s are never a pass", (why, limits) => {
    const report = checkLinearizability({ operations: hard(40), remarks: [] }, register(), limits);
    expect(report).toMatchObject({ verdict: "unknown", findings: [{ verdict: "unknown", why, returned: 41 }] });
    expect(report.steps).toBeLessThanOrEqual(30_000);
    expect(report.configurations).toBeLessThanOrEqual(20_000);
    const [finding] = report.findings;
    expect(finding?.verdict === "unknown" && finding.placed).toBe(40);
  });

  it("calls the callback regularly", () => {
    let asked = 0;
    const mayGoOn = () => ++asked < 5;
    const report = checkLinearizability({ operations: hard(40), remarks: [] }, register(), { mayGoOn });
    expect(report).toMatchObject({ verdict: "unknown", findings: [{ why: "stopped" }] });
    expect(asked).toBe(5);
    expect(report.steps).toBeLessThan(20_000);
  });

  it("a hard object does not hide the violation of an easy one", () => {
    const operations = [...hard(40, "a"), ...story("x read → 7 @0-1 on b").operations];
    const report = checkLinearizability({ operations, remarks: [] }, register());
    expect(report.verdict).toBe("violated");
    expect(report.findings).toMatchObject([{ verdict: "unknown", why: "settled" }, { verdict: "violated" }]);
  });

  it("decides a dozen concurrent writes", () => {
    expect(checkLinearizability({ operations: hard(12), remarks: [] }, register()).verdict).toBe("violated");
  });

  it("more than 32 concurrent operations", () => {
    const operations = hard(70).map((one) => (one.f === "read" ? { ...one, output: 33 } : one));
    expect(checkLinearizability({ operations, remarks: [] }, register()).verdict).toBe("holds");
  });

  it.each([[{ maxSteps: 0 }], [{ maxConfigurations: Number.NaN }]])("rejects %o", (limits) => {
    expect(() => checkLinearizability(story(""), register(), limits)).toThrow(/expected max\w+ to be a number > 0/);
  });
});

describe("operations that a model rejects", () => {
  it.each([
    [
      "register",
      "a append 1 @0-1",
      'line 1: expected f to be an operation of the model register (read, write, cas), got "append"',
    ],
    ["register", "a cas 3 @0-1", "line 1: expected the value of the call to be a pair [old, new], got 3"],
    [
      "register",
      "a cas [1,2] → maybe @0-1",
      'expected the value returned to be true, false or the pair itself, got "maybe"',
    ],
    ["map", "a get @0-1", "line 1: expected a key, since the model map has many objects, got none"],
    ["map", "a delete → 3 @0-1 on x", "expected the value returned to be true, false or null, got 3"],
    ["queue", "a enqueue @0-1", "expected the value of the call to be what to enqueue, got null"],
    [
      "lock",
      "a acquire → -1 @0-1",
      "expected the value returned to be a token (a whole number ≥ 0), true, false or null, got -1",
    ],
    ["lock", "a release → x @0-1", "expected the value returned to be true, false or null"],
    ["counter", "a add 1 → x @0-1", "expected the value returned to be the sum, true or null"],
  ])("%s: %s", (model, text, message) => {
    expect(() => checkLinearizability(story(text), modelNamed(model))).toThrow(message);
  });

  it("an unknown model", () => {
    expect(() => modelNamed("stack")).toThrow('expected model to be register, map, queue, lock, counter, got "stack"');
    expect(() => modelNamed("constructor")).toThrow("expected model");
  });
});

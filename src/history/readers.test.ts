import { describe, expect, it, test } from "vitest";
import { checkLinearizability } from "./check.ts";
import type { History } from "./history.ts";
import { register, show, showValue } from "./model.ts";
import { readHistory, readJepsenHistory, readJsonLinesHistory } from "./readers.ts";

/** Formats operations as `0–2 write 1` and so on. */
const summary = ({ operations }: History): string[] =>
  operations.map(
    (one) => `${one.key === undefined ? "" : `${showValue(one.key)}: `}${one.call}–${one.return ?? ""} ${show(one)}`,
  );

const jepsen = `
; as jepsen.store writes it
{:process 0, :type :invoke, :f :write, :value 3, :time 10, :index 0}
{:process 1, :type :invoke, :f :read, :value nil, :time 20, :index 1}
{:process :nemesis, :type :info, :f :start-partition, :value :majority, :time 25, :index 2}
{:process 0, :type :ok, :f :write, :value 3, :time 30, :index 3}
{:process 1, :type :ok, :f :read, :value 3, :time 40, :index 4}
{:process 2, :type :invoke, :f :cas, :value [3 4], :time 50, :index 5}
{:process 2, :type :fail, :f :cas, :value [3 4], :time 60, :index 6, :error :precondition}
{:process 3, :type :invoke, :f :write, :value 5, :time 70, :index 7}
{:process 3, :type :info, :f :write, :value 5, :time 80, :index 8, :error [:timeout "no answer"]}
`;

describe("Jepsen's histories", () => {
  const expected = ["10–30 write 3", "20–40 read → 3", "70– write 5 → ?"];

  it("one map after another", () => {
    const history = readJepsenHistory(jepsen);
    expect(summary(history)).toEqual(expected);
    expect(history.remarks).toEqual([{ at: 25, text: "start-partition majority" }]);
    expect(history.operations.map(({ line }) => line)).toEqual([3, 4, 10]);
    expect(checkLinearizability(history, register()).verdict).toBe("holds");
  });

  it("a vector of maps, tagged as records", () => {
    const records = jepsen.replaceAll("{:process", "#jepsen.history.Op{:process");
    expect(summary(readJepsenHistory(`[${records}]`))).toEqual(expected);
  });

  it("with an unknown operation: the error names the line of its call", () => {
    const text = "{:process 0, :type :invoke, :f :raed}\n{:process 0, :type :ok, :f :read}";
    expect(() => readJepsenHistory(text, { calls: ["read", "write"] })).toThrow(
      'line 1, column 1: expected f to be one of read, write, got "raed"',
    );
  });

  it("independent keys", () => {
    const text = `
      {:process 0, :type :invoke, :f :write, :value [:x 3]}
      {:process 1, :type :invoke, :f :cas, :value [7 [1 2]]}
      {:process 0, :type :ok, :f :write, :value [:x 3]}
      {:process 1, :type :info, :f :cas, :value :timed-out}`;
    expect(summary(readJepsenHistory(text, { keyed: true }))).toEqual(["x: 0–2 write 3", "7: 1– cas 1 2 → ?"]);
  });

  it.each([
    [
      "{:process 0, :type :maybe, :f :read}",
      'line 1, column 1: expected type to be invoke, ok, fail, info, got "maybe"',
    ],
    ["{:process 0, :type :invoke, :f 3}", "line 1, column 1: expected f to be the name of an operation, got 3"],
    [
      "\n{:process 0, :type :ok, :f :read}",
      'line 2: expected type to be invoke, got "ok": of process 0 it has nothing open',
    ],
  ])("rejects %s", (text, message) => {
    expect(() => readJepsenHistory(text)).toThrow(message);
  });

  it("rejects a value without its key", () => {
    const text = "{:process 0, :type :invoke, :f :write, :value 3}";
    expect(() => readJepsenHistory(text, { keyed: true })).toThrow(
      "line 1, column 1: expected value to be a tuple [key value], got 3",
    );
  });
});

describe("JSON lines", () => {
  const lines = [
    { process: "a", type: "invoke", f: "write", value: 1, key: "x", time: 5 },
    { process: "b", type: "invoke", f: "read", key: "x", time: 1 },
    { process: "a", type: "ok", f: "write", time: 6 },
    { process: "b", type: "ok", f: "read", value: 1, time: 8 },
    { process: "nemesis", type: "info", f: "kill", value: "n1", time: 7 },
  ];
  const text = (events: readonly object[]) => events.map((event) => JSON.stringify(event)).join("\n");

  it("by time, which merged logs require", () => {
    const history = readJsonLinesHistory(`\n${text(lines)}\r\n\n`);
    expect(summary(history)).toEqual(["x: 1–8 read → 1", "x: 5–6 write 1"]);
    expect(history.remarks).toEqual([{ at: 7, text: "kill n1" }]);
  });

  it("by position if times are missing, or on request", () => {
    const { time: _, ...untimed } = lines[0] as (typeof lines)[number];
    const byPosition = ["x: 0–2 write 1", "x: 1–3 read → 1"];
    expect(summary(readJsonLinesHistory(text([untimed, ...lines.slice(1)])))).toEqual(byPosition);
    expect(summary(readJsonLinesHistory(text(lines), { order: "position" }))).toEqual(byPosition);
  });

  it("by index", () => {
    const indexed = lines.map(({ time, ...rest }) => ({ ...rest, index: time }));
    expect(summary(readJsonLinesHistory(text(indexed)))).toEqual(["x: 1–8 read → 1", "x: 5–6 write 1"]);
  });

  it.each([
    ['{"process":0', /^line 1: expected a JSON object, got invalid JSON \(.+\)$/],
    ['\n[{"process":0}]', 'line 2: expected the line to be a JSON object, got [{"process":0}]'],
    [
      '{"process":0.5,"type":"invoke","f":"read"}',
      "line 1: expected process to be a whole number or a string, got 0.5",
    ],
    ['{"process":0,"type":"invoke","f":""}', 'line 1: expected f to be the name of an operation, got ""'],
    [
      '{"process":0,"type":"invoke","f":"read","time":"noon"}',
      'line 1: expected time to be a finite number, got "noon"',
    ],
    [
      `{"process":0,"value":${"[".repeat(80)}${"]".repeat(80)}}`,
      "line 1: expected values nested at most 64 deep, got deeper ones",
    ],
    [`{"process":"${"a".repeat(2 ** 20)}"}`, "line 1: expected at most 1048576 characters, got 1048590"],
  ])("rejected: %#", (content, message) => {
    expect(() => readJsonLinesHistory(content)).toThrow(message);
  });

  it("rejects a missing time if times are requested", () => {
    expect(() => readJsonLinesHistory('{"process":0,"type":"invoke","f":"read"}', { order: "time" })).toThrow(
      "line 1: expected time to be a finite number, got none",
    );
  });
});

const edn = "{:process 0, :type :invoke, :f :write, :value 3}\n{:process 0, :type :ok, :f :write, :value 3}\n";
const json = '{"process":0,"type":"invoke","f":"write","value":3}\n{"process":0,"type":"ok","f":"write","value":3}\n';
const options = { calls: ["read", "write"] };

test.each([
  ["EDN", edn],
  ["EDN in a vector", `[${edn}]`],
  ["JSON lines", json],
])("recognizes %s by its beginning", (_name, content) => {
  expect(readHistory(content, "auto", options).operations).toHaveLength(1);
});

test("does not guess if the format is given", () => {
  expect(() => readHistory(edn, "json", options)).toThrow("line 1");
  expect(readHistory(edn, "edn", options).operations).toHaveLength(1);
});

test("rejects a history without operations", () => {
  const failed = json.replace('"ok"', '"fail"');
  for (const content of ["", failed])
    expect(() => readHistory(content, "auto", options)).toThrow("at least one operation that did not fail");
});

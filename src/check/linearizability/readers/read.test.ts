import { expect, test } from "vitest";
import { readHistory } from "./read.ts";

const edn = "{:process 0, :type :invoke, :f :write, :value 3}\n{:process 0, :type :ok, :f :write, :value 3}\n";
const json = '{"process":0,"type":"invoke","f":"write","value":3}\n{"process":0,"type":"ok","f":"write","value":3}\n';
const options = { calls: ["read", "write"] };

test.each([
  ["EDN", edn],
  ["EDN in a vector", `[${edn}]`],
  ["EDN after a comment", `; what a client saw\n${edn}`],
  ["JSON lines", json],
  ["JSON lines after empty ones", `\n\n${json}`],
])("%s is told by how it begins", (_name, content) => {
  expect(readHistory(content, "auto", options).operations).toHaveLength(1);
});

test("a format that was named is not guessed", () => {
  expect(() => readHistory(edn, "json", options)).toThrow("line 1");
  expect(readHistory(edn, "edn", options).operations).toHaveLength(1);
});

test("a history of nothing shows nothing", () => {
  const failed = json.replace('"ok"', '"fail"');
  for (const content of ["", failed])
    expect(() => readHistory(content, "auto", options)).toThrow("at least one operation that did not fail");
});

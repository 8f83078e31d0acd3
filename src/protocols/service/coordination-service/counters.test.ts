import { describe, expect, it } from "vitest";
import { oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import { problem } from "../../../core/shape.ts";
import { applyRequest } from "../keyspace/commands.ts";
import { deleteOf, putOf } from "../keyspace/new-requests.ts";
import { NO_LEASE, putKey } from "../keyspace/store.ts";
import { answerShape } from "./operations.ts";

function withSession() {
  const replica = oneReplica();
  replica.open(0);
  return replica;
}

it("answers with all changes of one revision, however many", () => {
  const { data, ask } = withSession();
  for (let at = 0; at < 105_000; at++) putKey(data.keyspace, at + 2, `map/m/${at}`, "1", NO_LEASE);
  data.keyspace.revision = 105_001;
  applyRequest(data.keyspace, deleteOf("map/m/", "map/m0"), 0);
  const answer = ask({ type: "changes", map: "m", after: 105_001 });
  expect(answer.type === "changes" && answer.changes.length).toBe(105_000);
  expect(problem(answerShape, answer, "the answer")).toBeNull();
});

describe("counters", () => {
  it("add up integers, and refuse results beyond the safe integers", () => {
    const { apply, ask } = withSession();
    const add = (by: number) => apply(0, { type: "add", name: "c", by });
    expect([add(3), add(-5)]).toEqual([
      { type: "counted", value: 3 },
      { type: "counted", value: -2 },
    ]);
    expect(add(0.5)).toMatchObject({ code: "bad-operation" });
    expect(apply(0, { type: "set", name: "c", to: Number.MAX_SAFE_INTEGER })).toMatchObject({ type: "counted" });
    expect(add(1)).toMatchObject({ code: "overflow" });
    expect(ask({ type: "count", name: "c" })).toEqual({ type: "counted", value: Number.MAX_SAFE_INTEGER });
    expect(ask({ type: "count", name: "none" })).toEqual({ type: "counted", value: 0 });
  });

  it("refuse operations on a value that is not a whole number", () => {
    const { apply, ask } = withSession();
    const written = (value: string) =>
      apply(0, { type: "keys", caller: "", command: putOf("counter/c", value) }) && ask({ type: "count", name: "c" });
    expect(written("12")).toEqual({ type: "counted", value: 12 });
    expect(apply(0, { type: "add", name: "c", by: 1 })).toEqual({ type: "counted", value: 13 });
    for (const value of ["", "x", "1.5", "9007199254740992"])
      expect(written(value)).toMatchObject({ code: "bad-operation" });
    expect(apply(0, { type: "add", name: "c", by: 1 })).toMatchObject({ code: "bad-operation" });
    expect(apply(0, { type: "set", name: "c", to: 5 })).toEqual({ type: "counted", value: 5 });
  });
});

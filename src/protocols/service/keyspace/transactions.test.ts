import { describe, expect, it } from "vitest";
import { codeOf, keyspace } from "../../../../test/protocols/service/one-keyspace.ts";
import { deleteOf, putOf, rangeOf, txnOf } from "./new-requests.ts";
import { emptyKeyspace, putKey } from "./store.ts";
import type { Compare, RangeRequest, RequestOp } from "./vocabulary.ts";

describe("a transaction", () => {
  const where = { key: "a", end: "", result: "equal" } as const;
  const isOne: Compare = { ...where, type: "value", value: "1" };

  it("performs one of its branches, all at one revision", () => {
    const { does } = keyspace();
    does(putOf("a", "1"));
    const txn = txnOf([isOne], [putOf("a", "2"), putOf("b", "2"), rangeOf("a", "z")], [rangeOf("a")]);
    expect(does(txn)).toMatchObject({
      type: "txn",
      revision: 3,
      succeeded: true,
      responses: [{ revision: 3 }, { revision: 3 }, { kvs: [{ value: "2", mod: 3 }, { mod: 3 }] }],
    });
    expect(does(txn)).toMatchObject({ revision: 3, succeeded: false, responses: [{ type: "range", count: 1 }] });
  });

  it.each<[string, Compare, boolean]>([
    ["a version", { ...where, type: "version", number: 2 }, true],
    ["a revision of creation", { ...where, type: "create", result: "less", number: 2 }, false],
    ["a revision of a change", { ...where, type: "mod", result: "greater", number: 2 }, true],
    ["a value", { ...where, type: "value", result: "notEqual", value: "1" }, true],
    ["a lease", { ...where, type: "lease", lease: "0" }, true],
    ["the value of a key that is absent", { ...where, key: "x", type: "value", value: "" }, false],
    ["the version of a key that is absent", { ...where, key: "x", type: "version", number: 0 }, true],
    ["each key of a range", { ...where, end: "z", type: "version", result: "greater", number: 1 }, false],
  ])("compares %s", (_what, compare, succeeded) => {
    const { does } = keyspace();
    does(putOf("a", "1"));
    does(putOf("a", "2"));
    does(putOf("b", "1"));
    expect(does(txnOf([compare], [], []))).toMatchObject({ succeeded, revision: 4 });
  });

  it("performs nested transactions, whose branches are chosen by the state before", () => {
    const { does, values } = keyspace();
    const inner = txnOf([isOne], [putOf("b", "yes")], [putOf("b", "no")]);
    expect(does(txnOf([], [putOf("a", "1"), inner], []))).toMatchObject({
      responses: [{ type: "put" }, { type: "txn", succeeded: false, responses: [{ type: "put" }] }],
    });
    expect(values(rangeOf("b"))).toEqual(["b=no"]);
  });

  it("changes no key twice", () => {
    const { space, does } = keyspace();
    const inner = (key: string) => txnOf([], [putOf(key, "1")], [putOf(key, "2")]);
    const refusedOnes = [
      [putOf("a", "1"), putOf("a", "2")],
      [putOf("b", "1"), deleteOf("a", "c")],
      [putOf("a", "1"), inner("a")],
      [inner("a"), inner("a")],
      [deleteOf("a", "\0"), inner("b")],
      [inner("a"), txnOf([], [], [deleteOf("a", "c")])],
      [txnOf([], [deleteOf("a", "c")], []), inner("a")],
    ];
    for (const branch of refusedOnes) expect(codeOf(does(txnOf([], branch, [])))).toBe("duplicateKey");
    for (const branch of refusedOnes) expect(codeOf(does(txnOf([], [], branch)))).toBe("duplicateKey");
    const oneOrOther = txnOf([], [putOf("e", "1")], [deleteOf("e")]);
    expect(codeOf(does(txnOf([], [deleteOf("a"), deleteOf("a", "c"), inner("d"), oneOrOther], [])))).toBe("txn");
    expect(space.revision).toBe(2);
  });

  it("does nothing if a part of the branch fails", () => {
    const { space, does } = keyspace();
    const branches = [
      [putOf("a", "1"), putOf("b", "1", { lease: "7" })],
      [putOf("a", "1"), rangeOf("a", "", { revision: 9 })],
      [putOf("a", "1"), txnOf([], [putOf("b", "", { ignoreValue: true })], [])],
    ];
    expect(branches.map((branch) => codeOf(does(txnOf([], branch, []))))).toEqual([
      "leaseNotFound",
      "futureRevision",
      "keyNotFound",
    ]);
    expect(space).toEqual(emptyKeyspace());
  });

  it("answers with at most 16 MiB, and does nothing if the answer would exceed that", () => {
    const { space, does } = keyspace();
    for (let at = 0; at < 20; at++) does(putOf(`k${at}`, "v".repeat(50_000)));
    const { revision } = space;
    const reads = (count: number): RequestOp[] => Array.from({ length: count }, () => rangeOf("k", "l"));
    expect(codeOf(does(txnOf([], [putOf("a", "1"), ...reads(10)], [])))).toBe("txn");
    expect(codeOf(does(txnOf([], [putOf("a", "2"), ...reads(17)], [])))).toBe("answerTooLarge");
    expect(codeOf(does(txnOf([], [txnOf([], reads(9), []), txnOf([], reads(9), [])], [])))).toBe("answerTooLarge");
    expect(space.revision).toBe(revision + 1);
  });

  it("counts only values that it returns", () => {
    const { does } = keyspace();
    for (let at = 0; at < 20; at++) does(putOf(`k${at}`, "v".repeat(50_000)));
    const times = (request: RequestOp): RequestOp[] => Array.from({ length: 60 }, () => request);
    const large = putOf("a", "v".repeat(300_000));
    for (const request of [
      rangeOf("missing"),
      rangeOf("k", "l", { countOnly: true }),
      rangeOf("k", "l", { keysOnly: true }),
      rangeOf("k", "l", { limit: 1 }),
    ])
      expect([request, codeOf(does(txnOf([], [large, ...times(request)], [])))]).toEqual([request, "txn"]);
    expect(codeOf(does(txnOf([], [large, ...times(rangeOf("a"))], [])))).toBe("answerTooLarge");
    expect(codeOf(does(txnOf([], [...times(rangeOf("a")), large], [])))).toBe("answerTooLarge"); // The previous value.
  });

  it("counts a key once that several deletes cover, so it cannot exceed the space limit", () => {
    const { space, does } = keyspace();
    does(putOf("w/0", "1".repeat(1_000)));
    const deletes = [deleteOf("w/0"), deleteOf("w/", "w0"), deleteOf("w", "\0"), deleteOf("w/0")];
    const before = space.bytes;
    expect(codeOf(does(txnOf([], [...deletes, putOf("a", "1".repeat(1_003))], []), 0))).toBe("noSpace");
    expect(codeOf(does(txnOf([], [txnOf([], deletes, []), putOf("a", "1".repeat(1_002))], []), 0))).toBe("txn");
    expect(space.bytes).toBe(before);
  });

  it("visits only changes to the keys that it reads, and is refused if its ranges have too many", () => {
    const { space, applies } = keyspace();
    for (let at = 0; at < 40_000; at++) putKey(space, at + 2, `k${at}`, "", "0");
    space.revision = 40_001;
    const reads = (request: RangeRequest): RequestOp[] => Array.from({ length: 128 }, () => request);
    const old = applies(txnOf([], reads(rangeOf("k7", "", { revision: 10 })), [])).response;
    expect(old.type === "txn" && old.responses[127]).toMatchObject({ kvs: [{ key: "k7", mod: 9 }] });
    expect(codeOf(applies(txnOf([], reads(rangeOf("k", "l", { countOnly: true })), [])).response)).toBe(
      "answerTooLarge",
    );
  });

  it("has at most 128 operations, including nested ones", () => {
    const { does } = keyspace();
    const puts = (count: number) => Array.from({ length: count }, (_, at) => putOf(`k${at}`, ""));
    expect(codeOf(does(txnOf([], puts(128), [])))).toBe("txn");
    expect(codeOf(does(txnOf([], [txnOf([], puts(127), [])], [])))).toBe("txn");
    expect(codeOf(does(txnOf([], [txnOf([], puts(128), [])], [])))).toBe("tooManyOperations");
    expect(codeOf(does(txnOf([], puts(129), [])))).toBe("tooManyOperations");
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boolean, list, natural, nullable, oneOf, problem, real, struct, text, variants } from "./shape.ts";

type Message =
  | { type: "vote"; term: number; granted: boolean; note: string | null }
  | { type: "entries"; items: { key: string; weight: number }[]; mode: "fast" | "safe" };

const shape = variants<Message>({
  vote: { term: natural, granted: boolean, note: nullable(text(5)) },
  entries: {
    items: list(struct<{ key: string; weight: number }>({ key: text(8), weight: real }), 2),
    mode: oneOf("fast", "safe"),
  },
});

const vote = { type: "vote", term: 1, granted: true, note: null };
const entries = { type: "entries", items: [{ key: "a", weight: 0.5 }], mode: "fast" };

describe("shapes", () => {
  it.each([vote, { ...vote, note: "hélo" }, entries])("accepts a value that has the shape: %j", (message) => {
    expect(problem(shape, message, "message")).toBeNull();
  });

  it.each<[unknown, string]>([
    [null, "expected message to be an object with a type, got null"],
    ["vote", 'expected message to be an object with a type, got "vote"'],
    [{ type: "veto" }, 'expected message.type to be one of vote, entries, got "veto"'],
    [{ type: "constructor" }, 'expected message.type to be one of vote, entries, got "constructor"'],
    [{ ...vote, term: -1 }, "expected message.term to be a natural number, got -1"],
    [{ ...vote, term: 2 ** 53 }, "expected message.term to be a natural number, got 9007199254740992"],
    [{ ...vote, term: "1" }, 'expected message.term to be a natural number, got "1"'],
    [{ ...vote, granted: 1 }, "expected message.granted to be true or false, got 1"],
    [{ ...vote, note: "ééé" }, 'expected message.note to be text of at most 5 bytes, got "ééé"'],
    [{ ...vote, note: undefined }, "expected message.note to be text of at most 5 bytes, got undefined"],
    [{ ...vote, more: 1 }, "expected message.more to be absent, got 1"],
    [{ ...entries, items: [{}] }, "expected message.items[0].key to be text of at most 8 bytes, got undefined"],
    [{ ...entries, items: [1, 2, 3] }, "expected message.items to be a list of at most 2 items, got [1,2,3]"],
    [
      { ...entries, items: [{ key: "a", weight: Number.NaN }] },
      "expected message.items[0].weight to be a finite number",
    ],
    [{ ...entries, mode: "slow" }, 'expected message.mode to be one of fast, safe, got "slow"'],
  ])("reject %j and name the field", (message, sentence) => {
    expect(problem(shape, message, "message")).toContain(sentence);
  });

  it("never throws, for any value", () => {
    fc.assert(fc.property(fc.anything(), (value) => void problem(shape, value, "message")));
  });

  it("counts bytes of UTF-8 as an encoder does", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (value) => {
        const bytes = Buffer.byteLength(value);
        expect(problem(text(bytes), value, "text")).toBeNull();
        if (bytes > 0) expect(problem(text(bytes - 1), value, "text")).not.toBeNull();
      }),
    );
  });
});

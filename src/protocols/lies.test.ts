import fc from "fast-check";
import { expect, it } from "vitest";
import type { Tagged } from "../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, problem, real, struct, text, variants } from "../core/shape.ts";
import { idealSignatures, isGenuine, type Signed, signed } from "../core/signatures.ts";
import { liesAbout } from "./lies.ts";

type Said =
  | { type: "said"; number: number; word: string; flags: boolean[]; maybe: number | null; vote: Signed<number> }
  | { type: "kind"; kind: "a" | "b" | "c"; at: { x: number } };
const vote = signed("vote", natural);
const shape = variants<Said>({
  said: { number: natural, word: text(9), flags: list(boolean, 2), maybe: nullable(natural), vote },
  kind: { kind: oneOf("a", "b", "c"), at: struct({ x: real }) },
});
const ctx = { self: 1, signatures: idealSignatures(1) };
const signature = idealSignatures(2).sign('["vote",2,7]');
const ofAnother: Said = {
  type: "said",
  number: 3,
  word: "yes",
  flags: [true],
  maybe: null,
  vote: { by: 2, value: 7, signature },
};
const messages = fc.oneof(
  fc.record({
    type: fc.constant("said" as const),
    number: fc.nat(),
    word: fc.string({ maxLength: 3 }),
    flags: fc.array(fc.boolean(), { maxLength: 2 }),
    maybe: fc.option(fc.nat()),
    vote: fc.constant(ofAnother.vote),
  }),
  fc.record({
    type: fc.constant("kind" as const),
    kind: fc.constantFrom("a" as const, "b", "c"),
    at: fc.record({ x: fc.integer() }),
  }),
) as fc.Arbitrary<Said>;

it("every lie is a message of the protocol, none is the truth, none stands twice, and they are bounded", () => {
  fc.assert(
    fc.property(messages, fc.array(messages, { maxLength: 4 }), (message, seen) => {
      const lies = liesAbout(message, shape, seen, ctx);
      for (const lie of lies) expect(problem(shape, lie, "lie")).toBe(null);
      const texts = [message, ...lies].map((each) => JSON.stringify(each));
      expect(new Set(texts).size).toBe(texts.length);
      expect(lies.length).toBeLessThanOrEqual(64);
    }),
    { numRuns: 100 },
  );
});

it("a value is changed by one, to what was seen, or to another of few", () => {
  const said = liesAbout({ type: "kind", kind: "a", at: { x: 1 } } as Tagged, shape, [], ctx);
  expect(said).toEqual([
    { type: "kind", kind: "b", at: { x: 1 } },
    { type: "kind", kind: "c", at: { x: 1 } },
    { type: "kind", kind: "a", at: { x: 2 } },
    { type: "kind", kind: "a", at: { x: 0 } },
  ]);
  const numbers = liesAbout(ofAnother, shape, [{ ...ofAnother, number: 40, word: "no" } as Tagged], ctx) as (Said & {
    type: "said";
  })[];
  expect(new Set(numbers.map(({ number }) => number))).toEqual(new Set([40, 3, 7, 4, 2]));
  expect(new Set(numbers.map(({ word }) => word))).toEqual(new Set(["yes", "no"]));
});

it("of another it has the signatures that it has seen, of itself any", () => {
  const lies = liesAbout(ofAnother, shape, [], ctx) as (Said & { type: "said" })[];
  const votes = lies.map(({ vote: given }) => given);
  expect(votes.every((given) => isGenuine(ctx, vote, given))).toBe(true);
  expect(new Set(votes.filter(({ by }) => by === 2).map(({ value }) => value))).toEqual(new Set([7]));
  expect(votes.some(({ by, value }) => by === 1 && value === 8)).toBe(true);
});

it("lists are padded with what stands in them and with what was seen in such a place; they stay within their bounds", () => {
  type Votes = { type: "votes"; votes: Signed<number>[]; best: Signed<number> | null };
  const votes = variants<Votes>({ votes: { votes: list(vote, 3), best: nullable(vote) } });
  const own = { by: 1, value: 7, signature: idealSignatures(1).sign('["vote",1,7]') };
  const lies = liesAbout(
    { type: "votes", votes: [ofAnother.vote], best: null } as Tagged,
    votes,
    [{ type: "votes", votes: [own], best: null } as Tagged],
    ctx,
  ) as Votes[];
  const lists = lies.map(({ votes: given }) => given.map(({ by }) => by).join());
  expect(lists).toContain("2,2"); // One vote twice, as if there were two.
  expect(lists).toContain("2,1");
  // What is null may be what was signed, and is not signed anew in another's name.
  expect(new Set(lies.flatMap(({ best }) => best ?? []))).toEqual(new Set([own, ofAnother.vote]));
  const full = { type: "votes", votes: [own, own, own], best: null };
  for (const lie of liesAbout(full, votes, [], ctx) as Votes[]) expect(lie.votes.length).toBeLessThanOrEqual(3);
});

it("of a long message only as many lies are made as are kept", () => {
  type Many = { type: "many"; words: string[] };
  const many = variants<Many>({ many: { words: list(text(9), 100_000) } });
  const words = Array.from({ length: 20_000 }, (_, number) => `${number}`);
  expect(liesAbout({ type: "many", words } as Tagged, many, [], ctx)).toHaveLength(64);
});

import { expect, it } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { list, natural, nullable, struct, variants } from "../core/shape.ts";
import { copiesOf } from "./copies.ts";

type Inner = { type: "pair"; b: number; a: number[] } | { type: "none" };
type Sending = {
  state: object;
  message: { type: "one"; inner: Inner | null; rows: { at: number; list: number[] }[] } | { type: "two" };
};

const inner = variants<Inner>({ pair: { a: list(natural, 9), b: natural }, none: {} });
const protocol = {
  shapes: {
    message: {
      one: {
        rows: list(struct<{ at: number; list: number[] }>({ list: list(natural, 9), at: natural }), 9),
        inner: nullable(inner),
      },
      two: {},
    },
  },
} as unknown as Protocol<Sending>;
const { message } = copiesOf(protocol);

it("a copy shares nothing with the original and has the fields of its shape in order, the type first", () => {
  const original: Sending["message"] = {
    rows: [{ at: 1, list: [2] }],
    inner: { b: 3, a: [4], type: "pair" },
    type: "one",
  };
  const text = JSON.stringify(original);
  const copy = message(original);
  expect(copy).toEqual(original);
  expect(JSON.stringify(copy)).toBe(
    '{"type":"one","rows":[{"list":[2],"at":1}],"inner":{"type":"pair","a":[4],"b":3}}',
  );
  if (copy.type !== "one" || copy.inner?.type !== "pair") throw new Error("it is another message");
  copy.rows[0]?.list.push(9);
  copy.rows.push({ at: 9, list: [] });
  copy.inner.a.push(9);
  copy.inner.b = 9;
  expect(JSON.stringify(original)).toBe(text);
  expect(message({ type: "one", rows: [], inner: null })).toEqual({ type: "one", rows: [], inner: null });
  expect(message({ type: "two" })).toEqual({ type: "two" });
});

it("rejects a value that has none of the declared shapes, as a network does", () => {
  const strange = { type: "three", list: [1] } as unknown as Sending["message"];
  expect(() => message(strange)).toThrow(expect.objectContaining({ name: "InvariantViolation", code: "bad-message" }));
});

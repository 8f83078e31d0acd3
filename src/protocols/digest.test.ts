import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { digest } from "./digest.ts";

it("is the SHA-256 of Node's crypto for any text, halves of surrogate pairs among them", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      expect(digest(text)).toBe(createHash("sha256").update(text).digest("hex"));
    }),
    { examples: [["\ud800"], ["a\udc00b"], [""]] },
  );
});

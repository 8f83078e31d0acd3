import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { digest } from "./digest.ts";

const reference = (text: string): string => createHash("sha256").update(text).digest("hex");

it("is SHA-256: the examples of FIPS 180-4", () => {
  expect(digest("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect(digest("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).toBe(
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  );
});

it("is what Node's crypto says of texts of every length around a block, and of any text", () => {
  for (let length = 0; length < 200; length++) expect(digest("x".repeat(length))).toBe(reference("x".repeat(length)));
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
      expect(digest(text)).toBe(reference(text));
    }),
  );
});

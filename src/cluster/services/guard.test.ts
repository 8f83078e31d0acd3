import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { guard, StaleToken } from "./guard.ts";

describe("a guard", () => {
  test("rejects a token lower than one that it has seen", () => {
    const accept = guard();
    accept(3);
    accept(3);
    accept(5);
    expect(() => accept(4)).toThrow(StaleToken);
    expect(() => accept(4)).toThrow("token 4 is stale: token 5 has already been accepted");
    accept(5);
  });

  test("continues from the token that the resource has stored", () => {
    const accept = guard(8);
    expect(() => accept(7)).toThrow(StaleToken);
    accept(8);
  });

  test.each([-1, 1.5, Number.NaN, null as never, "3" as never])("does not accept %j as a token", (token) => {
    expect(() => guard()(token)).toThrow("expected the token to be a natural number");
  });

  test("accepts tokens that never decrease", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20)), (tokens) => {
        const accept = guard();
        const accepted = tokens.filter((token) => {
          try {
            accept(token);
            return true;
          } catch {
            return false;
          }
        });
        expect(accepted).toEqual([...accepted].sort((a, b) => a - b));
        expect(accepted.at(-1)).toBe(tokens.length === 0 ? undefined : Math.max(...tokens));
      }),
    );
  });
});

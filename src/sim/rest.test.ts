import { describe, expect, it } from "vitest";
import { patience } from "./rest.ts";

describe("the patience with a run", () => {
  it("ends where it does not come to rest", () => {
    const happened = patience(3, Number.POSITIVE_INFINITY, 2);
    happened();
    happened();
    expect(happened).toThrow(
      "expected the run to come to rest within 2 happenings, but it goes on: say when it ends, with until in a scenario, --until on the command line or run(untilMs) in code",
    );
  });

  it("has no end where the run has one", () => {
    const happened = patience(3, 100, 2);
    for (let i = 0; i < 10; i++) expect(happened).not.toThrow();
  });
});

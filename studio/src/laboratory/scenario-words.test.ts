import { describe, expect, test } from "vitest";
import type { Catalogue } from "./catalogue.ts";
import { algorithmOf, withProtocol } from "./scenario-words.ts";

const bare = { summary: "", family: "", topology: "", guarantees: [], costs: [] };
const catalogue: Catalogue = [
  { ...bare, name: "bully", scenarios: [{ file: "bully-a", title: "" }] },
  { ...bare, name: "raft", scenarios: [{ file: "raft-as-lectured", title: "", variant: "lecture" }] },
];

describe("a link with a scenario alone", () => {
  test("has the protocol of the scenario", () => {
    expect(withProtocol({ scenario: "raft-as-lectured", at: "3" }, catalogue)).toEqual({
      scenario: "raft-as-lectured",
      at: "3",
      protocol: "raft",
    });
    expect(algorithmOf("raft-as-lectured", catalogue)).toEqual({ protocol: "raft", variant: "lecture" });
  });

  test("is as it was where it names a protocol, or the scenario is not known", () => {
    for (const words of [
      { scenario: "bully-a", protocol: "ring" },
      { scenario: "nothing" },
      { recording: "a.jsonl" },
      {},
    ])
      expect(withProtocol(words, catalogue)).toBe(words);
  });
});

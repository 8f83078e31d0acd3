import { describe, expect, it } from "vitest";
import type { NodePicture } from "./feed.ts";
import { headlineOf, spansOf } from "./headline.ts";

const node = (id: number, role: string, process: NodePicture["process"] = "running"): NodePicture => ({
  id,
  pid: 1,
  address: "",
  admin: "",
  process,
  exit: null,
  view: process === "exited" ? null : { role },
  commands: [],
});

describe("the sentence of the live page", () => {
  it("says who is inside, who waits and who is down", () => {
    const nodes = [node(0, "held"), node(1, "wanted"), node(2, "", "exited")];
    expect(headlineOf("ricart-agrawala", nodes)).toBe("Node 0 is inside; 1 waits; 2 is down.");
  });

  it("leaves elections, and what is not in the registry, to the page", () => {
    expect(headlineOf("bully", [node(0, "leader")])).toBeNull();
    expect(headlineOf("services", [node(0, "leader")])).toBeNull();
  });

  it("comes with the states that last, as the protocol declares them", () => {
    expect(spansOf("raft")).toEqual({ spans: "leadership", term: "term" });
    expect(spansOf("pbft")).toEqual({ spans: "leadership", term: "view" });
    expect(spansOf("maekawa").spans).toBe("section");
    expect(spansOf("two-phase-commit").spans).toBe("doubt");
    expect(spansOf("services").spans).toBe("section");
  });
});

/** Elections in timed exploration: they hold while messages keep to the assumed bound, and are violated beyond it. */
import { describe, expect, it } from "vitest";
import { type Exploration, explore } from "../../../src/check/explore.ts";
import { type SystemSpec, systemFor } from "../../../src/check/suite.ts";
import type { Tagged, Vocabulary } from "../../../src/core/protocol.ts";
import { reaching } from "../reached.ts";

/** Explores three nodes and the properties of single states. The longest message delay is `maxMs`. */
function elections(maxMs: number, spec: Omit<SystemSpec, "nodes">, unitMs = 60): Exploration<Vocabulary> {
  const system = systemFor({
    nodes: [0, 1, 2],
    begin: "idle",
    timers: "timed",
    time: { unitMs, delayMs: [0, maxMs] },
    ...spec,
  });
  const ofStates = (system.properties ?? []).filter(({ when }) => when === "always" || when === "quiescent");
  return reaching(explore({ ...system, properties: ofStates }), "elected");
}

const verdict = ({ verdict: found, property, path }: Exploration<Vocabulary>) =>
  found === "violated" ? [property?.name, path.length] : [found];

/** The moves, each with the time since the start. */
const run = ({ path }: Exploration<Vocabulary>): string[] => {
  let nowMs = 0;
  return path.map(({ move }) => {
    nowMs += move.afterMs ?? 0;
    const what =
      "message" in move
        ? ` ${(move.message as Tagged).type} from ${move.from}`
        : "timer" in move
          ? ` ${move.timer}`
          : "";
    return `${nowMs} ms: ${move.node} ${move.kind}${what}`;
  });
};

describe("bully: T_max is 60 ms, so a node waits 180 ms for answers", () => {
  it("two nodes call an election: holds within the bound", () => {
    const found = elections(60, { protocol: "bully", initiators: [0, 1] });
    expect([...verdict(found), found.states]).toEqual(["holds", 4_694]);
  });

  it("a node crashes, and all others are notified: holds within the bound", () => {
    const found = elections(60, { protocol: "bully", initiators: [0], crashes: 1, crashNotifications: "last" });
    expect([...verdict(found), found.states]).toEqual(["holds", 2_237]);
  });

  it("beyond the bound, an answer arrives too late, and a node follows one that is not the highest", () => {
    const found = elections(120, { protocol: "bully", initiators: [1] });
    expect(verdict(found)).toEqual(["E1 safety", 7]);
    expect(run(found)).toEqual([
      "0 ms: 1 command",
      "60 ms: 2 receive election from 1",
      "60 ms: 0 receive coordinator from 2",
      "180 ms: 1 timeout answer",
      "180 ms: 0 receive coordinator from 1",
      "180 ms: 1 receive answer from 2",
      "180 ms: 1 receive coordinator from 2",
    ]);
  });

  it("even within the bound, a node that starts during an election can be outvoted", () => {
    const found = elections(60, { protocol: "bully", begin: "down", initiators: [] });
    expect(verdict(found)).toEqual(["E1 safety", 7]);
    // Node 1 announces itself before it receives the announcement of node 2, and node 0 receives them in that order.
    expect(run(found).slice(-4)).toEqual([
      "120 ms: 0 receive coordinator from 2",
      "180 ms: 1 timeout answer",
      "180 ms: 0 receive coordinator from 1",
      "180 ms: 1 receive coordinator from 2",
    ]);
  });
});

describe("ring elections do not depend on the bound", () => {
  it.each([60, 600])("chang-roberts: two nodes call an election, with delays of up to %i ms", (maxMs) => {
    const found = elections(maxMs, { protocol: "chang-roberts", initiators: [0, 1] });
    expect(verdict(found)).toEqual(["holds"]);
  });

  it("ring: two nodes call an election", { tags: ["long"] }, () => {
    const found = elections(60, { protocol: "ring", initiators: [0, 1] });
    expect(verdict(found)).toEqual(["holds"]);
  });
});

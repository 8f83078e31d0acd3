import { expect, it } from "vitest";
import { exploreUses } from "../../../test/protocols/mutex-stage.ts";
import { maekawaSanders } from "./maekawa-sanders.ts";
import { ricartAgrawala } from "./ricart-agrawala.ts";

const suspect = (node: number) => ({ type: "mutex" as const, body: { type: "suspect" as const, node } });
it("counts", () => {
  const m = exploreUses(maekawaSanders({ rejoins: true }), 3, 1, { crashes: 1, recoveries: 1, notices: suspect });
  console.log("MS", m.verdict, m.states);
  const r = exploreUses(ricartAgrawala({ rejoins: true }), 3, 1, { crashes: 1, recoveries: 1, notices: suspect });
  console.log("RA", r.verdict, r.states);
  expect(1).toBe(1);
}, 600_000);

import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { requestFrom } from "../../experiment/check-request.ts";
import { explore } from "../../experiment/explore.ts";
import { textOf } from "../output.ts";
import { checkReport } from "./check.ts";

it("prints a deadlock above the final states", () => {
  const experiment = { protocol: "maekawa", nodes: 3 };
  const [request, answer] = [requestFrom(experiment), explore(experiment)];
  const text = stripVTControlCharacters(textOf(checkReport({ request, answer, seconds: 1 }).sections));
  expect(text).toContain("Deadlock: node 0 waits for 1, 1 for 2, 2 for 0\n\nFinal states\n  node 0  ");
});

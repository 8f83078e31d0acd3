import { expect, it } from "vitest";
import { requestFrom } from "../experiment/check-request.ts";
import { explore } from "../experiment/explore.ts";
import { checkText } from "./check-report.ts";

it("nodes that wait for each other are a deadlock where nothing else happens, and not where something went wrong", () => {
  const experiment = { protocol: "maekawa", nodes: 3 };
  const [request, answer] = [requestFrom(experiment), explore(experiment)];
  const text = (each: typeof answer): string =>
    checkText({ request, answer: each, seconds: 1 }, (_style, words) => words);
  expect(answer.property?.name).toBe("ME2 liveness");
  expect(text(answer)).toContain("Deadlock: node 0 waits for 1, 1 for 2, 2 for 0");
  const safety = { name: "ME1 safety", claim: "at most one node is inside", when: "always" } as const;
  expect(text({ ...answer, property: safety })).not.toContain("Deadlock");
  expect(text({ ...answer, loop: 0 })).not.toContain("Deadlock");
});

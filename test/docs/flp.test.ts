/**
 * Checks that docs/images/flp.svg shows the counterexample that the checker currently finds. `npm run pages -- flp`
 * draws it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { requestFrom } from "../../src/experiment/check-request.ts";
import { counterexampleTrace } from "../../src/experiment/exploration-report.ts";
import { answerTo, sharedRuns } from "../../src/experiment/explore.ts";
import { drawnAs } from "../../src/protocols/message-inks.ts";
import { excerptOf } from "../../src/trace/excerpt.ts";
import type { Trace } from "../../src/trace/file.ts";
import { drawSvg } from "../../src/trace/picture/svg.ts";

const file = fileURLToPath(new URL("../../docs/images/flp.svg", import.meta.url));

test("the picture of two proposers that reject each other forever shows the checker's counterexample", () => {
  const words = { protocol: "paxos", variant: "duelling", propose: [0, 1], timers: "never", maxInFlight: 5 } as const;
  const request = requestFrom({ ...words, propose: [...words.propose] });
  const answer = answerTo(
    { request, shared: sharedRuns() },
    () => true,
    () => 0,
  );
  expect([answer.verdict, answer.property?.name]).toEqual(["violated", "termination"]);
  const drawn = drawSvg(excerptOf(counterexampleTrace({ request, answer, seconds: 0 }) as Trace), drawnAs("paxos"));
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, drawn);
  expect(readFileSync(file, "utf8")).toBe(drawn);
});

import { expect, test } from "vitest";
import { unknownOutcome } from "./refusals.ts";

test("the error for a command of an undefined state machine names the machine", () => {
  expect(unknownOutcome({ type: "execute", machine: "seats", command: "1" })).toMatchObject({
    code: "outcome-unknown",
    phase: "uncertain",
    message:
      'the state machine "seats" was not defined at this member, or at the member that sent its snapshot, so its outcome is unknown here: it may have taken effect, at most once',
  });
  expect(unknownOutcome().message).toContain("this member has fallen behind");
});

/** vitest.config.ts leaves out files that say nothing of long tests: so who else gives that tag has to be known there. */
import { expect, it } from "vitest";
import { house, isTest } from "./house.ts";

it("helpers that tag tests as long are known to vitest.config.ts", () => {
  const helpers = house.filter(
    ({ path, text }) => path.endsWith(".ts") && !isTest(path) && /tags: ?\["long"\]/.test(text),
  );
  expect(helpers.map(({ path }) => path)).toEqual(["test/protocols/sizes.ts"]);
});

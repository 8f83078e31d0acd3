/** The conformance suite over members of a cluster: what engines promise is what the replicated log does. */
import { describe, it } from "vitest";
import { simulate } from "../../src/testing/index.ts";
import { conformance } from "./conformance.ts";

describe("members of a cluster", () => {
  it.each(conformance)("$name", async ({ check }) => {
    const world = simulate({ members: 3, seed: 1 });
    let joined = 0;
    const join = () => {
      joined += 1;
      return Promise.resolve(world.member(joined));
    };
    await world.run(() => check({ join, sleep: (ms) => world.sleep(ms) }));
  });
});

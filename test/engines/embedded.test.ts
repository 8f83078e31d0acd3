/**
 * Runs the conformance suite of engines over members of a cluster, because engines give the same guarantees as the
 * replicated log.
 */
import { describe, expect, it } from "vitest";
import { simulate } from "../../src/testing/index.ts";
import { conformance } from "./conformance.ts";
import { asListed, triedOn } from "./exceptions.ts";
import { outages } from "./outages.ts";

describe("members of a cluster", () => {
  it("has no engine to take down", () => {
    expect(triedOn("members", outages)).toEqual([]);
  });

  it.each(triedOn("members", conformance))("$name", async ({ name, check }) => {
    const world = simulate({ members: 3, seed: 1 });
    let joined = 0;
    const join = () => {
      joined += 1;
      return Promise.resolve(world.member(joined));
    };
    const spoil = () => Promise.reject(new Error("other programs cannot write to members"));
    await world.run(() => asListed("members", name, check({ join, spoil })));
  });
});

/**
 * Checks a member that was down while others moved. It learns their addresses from their connections, even though the
 * log has older addresses.
 */
import { expect, test } from "vitest";
import { simulate } from "../../src/testing/index.ts";

/** More than a leader sends at a time without an acknowledgment. */
const MANY = 600;

test.each([
  ["knew only the initial list", false],
  ["knew a list from the log", true],
])("a member that %s and was down while all others moved twice catches up", async (_, knewList) => {
  const world = simulate({ members: 5, seed: 1 });
  await world.run(async () => {
    if (knewList) {
      await world.move(1);
      await world.sleep(1_000);
    }
    world.kill(5);
    for (let round = 1; round <= 2; round++) {
      for (const id of [1, 2, 3, 4]) await world.move(id, { timeoutMs: 10_000 });
      const written = world.member(1).map<number>("written");
      for (let at = 0; at < MANY; at++) await written.put("round", round, { timeoutMs: 10_000 });
    }
    const late = await world.restart(5);
    expect(await late.map<number>("written").get("round", { timeoutMs: 10_000 })).toBe(2);
  });
});

/** Many names, one after the other, in virtual time. */
import { expect, test } from "vitest";
import { simulate } from "../../testing/index.ts";

/** As many as a member, and its journal, may have at a time. */
const ROOM = 20;
const NAMES = 200;

test.each(["raft", "elected-server"])(
  "more locks by %s than a member may have at a time, one after the other, leave no instance, and a handle outlives its own",
  (algorithm) =>
    simulate({ members: 3, seed: 1, join: { limits: { maxInstances: ROOM } } }).run(async (world) => {
      const two = world.member(2);
      const lock = (number: number) => two.mutex(`invoice-${number}`, { algorithm });
      const kept = lock(0);
      const tokens: number[] = [];
      for (let number = 0; number < NAMES; number++) await lock(number).use(({ token }) => void tokens.push(token));
      expect(tokens).toHaveLength(NAMES);
      await world.sleep(3_000);
      expect(world.members.flatMap((id) => world.member(id).status().instances)).toEqual([]);
      expect(await kept.use(({ token }) => token)).toBeGreaterThan(tokens[0] as number);
    }),
);

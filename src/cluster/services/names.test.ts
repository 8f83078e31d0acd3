/** Many names, one after the other, over real links and journals. */
import { expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import type { Member } from "./api.ts";

const closing = closedAfterEach();
const PATIENCE = { timeout: 60_000, interval: 5 };
const NAMES = 500;

test("more locks than a member may have at a time, one after the other, leave no instance, and a handle outlives its own", {
  tags: ["long"],
}, async () => {
  const members = await startAll(closing(await cluster(3, { limits: { maxInstances: 100 } })));
  const [, two] = members as [Member, Member];
  const kept = two.mutex("invoice-0");
  const tokens: number[] = [];
  for (let number = 0; number < NAMES; number++)
    await two.mutex(`invoice-${number}`).use(({ token }) => void tokens.push(token));
  expect(tokens).toHaveLength(NAMES);
  await vi.waitFor(() => expect(members.flatMap((member) => member.status().instances)).toEqual([]), PATIENCE);
  expect(await kept.use(({ token }) => token)).toBeGreaterThan(tokens[0] as number);
});

/**
 * Checks that a leader keeps leading when a member with a higher id campaigns or comes back. Virtual time prevents
 * leases from expiring by chance.
 */
import { expect, test } from "vitest";
import type { Leadership, MemberEvent } from "../../src/cluster/services/api.ts";
import { simulate } from "../../src/testing/index.ts";

const untilLost = ({ signal }: Leadership): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

test("the leader of an election and the leader of the log stay when a higher member joins", async () => {
  const world = simulate({ members: 3 });
  await world.run(async () => {
    world.kill(3);
    const first = world.member(1);
    await Promise.all([first.ready(), world.member(2).ready()]);
    while (first.status().leader === null || first.status().leader === 3) await world.sleep(10);
    const { leader } = first.status();
    const over = new AbortController();
    const led = first.election("report").lead(untilLost, over);
    while (first.election("report").leader !== 1) await world.sleep(10);
    const events: MemberEvent[] = [];
    void (async () => {
      for await (const event of first.events()) events.push(event);
    })();
    const third = await world.restart(3);
    await third.ready();
    const next = third.election("report").lead(({ token }) => token);
    for (let times = 0; times < 20; times++) await (await third.mutex("order").acquire()).release();
    expect(third.status()).toMatchObject({ leader });
    expect(third.election("report").leader).toBe(1);
    expect(events.map(({ type }) => type)).toContain("peer-restored");
    expect(events.filter(({ type }) => type === "log-leader-changed")).toEqual([]);
    over.abort();
    await expect(led).rejects.toMatchObject({ code: "lead-aborted" });
    expect(await next).toBeGreaterThan(0);
  });
});

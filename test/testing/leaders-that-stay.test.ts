/** Leaders that go on leading when somebody higher comes. In virtual time: on a busy machine a process stands still longer than a lease. */
import { describe, expect, test } from "vitest";
import type { Member, MemberEvent } from "../../src/cluster/services/api.ts";
import { simulate } from "../../src/testing/index.ts";

describe("who leads", () => {
  test("stays, though a higher member campaigns, unless the highest is asked for", async () => {
    const world = simulate({ members: 2 });
    await world.run(async () => {
      const [first, second] = [world.member(1), world.member(2)];
      const highest = { takesOver: true };
      const [sticky, bully] = [campaign(first, "sticky"), campaign(first, "bully", highest)];
      await Promise.all([sticky.leading, bully.leading]);
      const others = [campaign(second, "sticky"), campaign(second, "bully", highest)] as const;
      await others[1].leading; // The one that takes over has had as much time as the one that does not.
      expect(second.election("sticky", { algorithm: "epoch-bully" }).leader).toBe(1);
      await sticky.end();
      await others[0].leading; // It stood all the while.
      await Promise.all([bully, ...others].map(({ end }) => end()));
    });
  });

  test("of the log, and who serves locks of elected-server, stays, though a higher member comes", async () => {
    const world = simulate({ members: 3 });
    await world.run(async () => {
      world.kill(3);
      const [first, second] = [world.member(1), world.member(2)];
      const serves = (): number | null => first.status().lockServer;
      while (serves() === null || serves() === 3) await world.sleep(10);
      await Promise.all([first.ready(), second.ready()]);
      await second.mutex("invoice", { algorithm: "elected-server" }).use(() => {});
      const lockServer = serves();
      const events: MemberEvent[] = [];
      void (async () => {
        for await (const event of first.events()) events.push(event);
      })();
      const third = await world.restart(3);
      await third.ready();
      const locks = [third.mutex("invoice", { algorithm: "elected-server" }), third.mutex("order")];
      for (const lock of locks) for (let times = 0; times < 20; times++) await (await lock.acquire()).release();
      expect(third.status()).toMatchObject({ lockServer });
      expect(events.map(({ type }) => type)).toContain("peer-restored");
      expect(events.filter(({ type }) => type === "server-changed")).toEqual([]);
    });
  });
});

/** Campaigns, and leads until it is told to end. */
function campaign(member: Member, name: string, options = {}) {
  const over = new AbortController();
  let ended: Promise<unknown> = Promise.resolve();
  const leading = new Promise<void>((leads) => {
    ended = member
      .election(name, { algorithm: "epoch-bully", options })
      .lead(({ signal }) => {
        leads();
        return new Promise<void>((done) => signal.addEventListener("abort", () => done()));
      }, over)
      .catch(() => {});
  });
  const end = (): Promise<unknown> => {
    over.abort();
    return ended;
  };
  return { leading, end };
}

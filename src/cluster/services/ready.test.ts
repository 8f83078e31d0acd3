/** Checks the reports of a member before it has reached others, and when it becomes ready, in virtual time. */
import { describe, expect, test } from "vitest";
import { simulate, type World } from "../../testing/index.ts";
import type { Leadership, Member, MemberEvent } from "./api.ts";

/** Founds a cluster, for which all members must connect once, and then stops all members. */
async function founded(body: (world: World) => Promise<void>): Promise<void> {
  await simulate({ members: 3, seed: 1 }).run(async (world) => {
    const members = world.members.map((id) => world.member(id));
    await Promise.all(members.map((member) => member.ready()));
    await Promise.all(members.map((member) => member.leave()));
    for (const id of world.members) world.kill(id);
    await body(world);
  });
}

function eventsOf(member: Member): MemberEvent[] {
  const seen: MemberEvent[] = [];
  void (async () => {
    for await (const event of member.events()) seen.push(event);
  })();
  return seen;
}

describe("a member that has reached no other", () => {
  test("has no majority, reports this at once, and reports a majority as soon as it has one", () =>
    founded(async (world) => {
      const first = await world.restart(1);
      expect(first.status()).toMatchObject({ hasQuorum: false, reachable: 1, leader: null });
      const events = eventsOf(first);
      await world.restart(2);
      await world.sleep(1_000);
      expect(events).toContainEqual({ type: "quorum-gained", reachable: 2, members: 3 });
      expect(first.status()).toMatchObject({ hasQuorum: true, reachable: 2 });
    }));

  test("is not ready, and names the obstacle", () =>
    founded(async (world) => {
      const first = await world.restart(1);
      const missing = { code: "ready-timeout", phase: "no-majority" };
      await expect(first.ready({ timeoutMs: 5_000 })).rejects.toMatchObject(missing);
      const abort = new AbortController();
      const aborted = first.ready({ signal: abort.signal });
      abort.abort("not wanted");
      const refusal = { name: "AbortError", code: "ready-aborted", phase: "no-majority", cause: "not wanted" };
      await expect(aborted).rejects.toMatchObject(refusal);
      await expect(first.ready({ signal: abort.signal })).rejects.toMatchObject(refusal);
      const left = expect(first.ready()).rejects.toMatchObject({ code: "member-left" });
      await first.leave();
      await left;
      await expect(first.ready()).rejects.toMatchObject({ code: "member-left" });
    }));
});

test("a member that has lost its folder names this cause and the command that repairs it, in its first errors", () =>
  founded(async (world) => {
    world.wipe(3);
    await Promise.all([world.restart(1), world.restart(2)]);
    const wiped = await world.restart(3);
    const cause = /lost-journal: this node has a new journal, but node \d remembers another.*`coterie member replace`/;
    await expect(wiped.ready({ timeoutMs: 3_000 })).rejects.toMatchObject({
      code: "ready-timeout",
      phase: "no-majority",
      message: expect.stringMatching(cause) as string,
    });
    await expect(wiped.map("m").get("a", { timeoutMs: 1_000 })).rejects.toThrow(cause);
    await expect(wiped.mutex("m").acquire({ timeoutMs: 1_000 })).rejects.toThrow(cause);
  }));

describe("a member that is ready", () => {
  test("reaches a majority and knows the leader of the log", () =>
    founded(async (world) => {
      const first = await world.restart(1);
      const ready = first.ready();
      await world.restart(2);
      await ready;
      const { hasQuorum, leader } = first.status();
      expect(hasQuorum).toBe(true);
      expect([1, 2]).toContain(leader);
      const at = world.now();
      await first.ready({ timeoutMs: 1 });
      expect(world.now()).toBe(at);
    }));
});

describe("leader-changed events", () => {
  test("name the election, at members that use it", () =>
    simulate({ members: 2, seed: 1 }).run(async (world) => {
      const [first, second] = [world.member(1), world.member(2)];
      await first.ready();
      const events = eventsOf(second);
      second.election("report");
      const over = new AbortController();
      let token = Number.NaN;
      const untilOver = (leadership: Leadership): Promise<void> => {
        token = leadership.token;
        return new Promise((done) => leadership.signal.addEventListener("abort", () => done()));
      };
      const led = first.election("report").lead(untilOver, over);
      await world.sleep(1_000);
      const leaderOf = (member: Member) => member.status().instances.find(({ name }) => name === "report")?.leader;
      expect([leaderOf(first), leaderOf(second)]).toEqual([1, 1]);
      expect(events).toContainEqual({ type: "leader-changed", election: "report", leader: 1, token });
      over.abort();
      await expect(led).rejects.toMatchObject({ name: "AbortError", code: "lead-aborted" });
    }));
});

/** Checks status and events of a member, from joining until it leaves or fails, in virtual time. */
import { expect, test } from "vitest";
import { simulate, type World } from "../../testing/index.ts";
import type { Member, MemberEvent } from "./api.ts";

/** Long enough for the others to detect that a member has stopped or returned. */
const A_WHILE = 2_000;

const alone = (body: (member: Member, world: World) => Promise<void>): Promise<void> =>
  simulate({ members: 1, seed: 1 }).run((world) => body(world.member(1), world));

/** Collects all events of a member from now on. */
function eventsOf(member: Member): MemberEvent[] {
  const seen: MemberEvent[] = [];
  void (async () => {
    for await (const event of member.events()) seen.push(event);
  })();
  return seen;
}

/**
 * Starts three members that have met before. Collects the events of the first one, starting before it reaches the
 * others, which restart.
 */
async function heardFromTheBeginning(
  body: (first: Member, world: World, events: readonly MemberEvent[]) => Promise<void>,
): Promise<void> {
  await simulate({ members: 3, seed: 1 }).run(async (world) => {
    await world.sleep(500);
    for (const id of world.members) world.kill(id);
    const first = await world.restart(1);
    const events = eventsOf(first);
    await Promise.all([world.restart(2), world.restart(3)]);
    await world.sleep(A_WHILE);
    await body(first, world, events);
  });
}

test("has a majority of one when alone", () =>
  alone(async (member) => {
    await member.ready();
    expect(member.status()).toMatchObject({ leader: 1, hasQuorum: true, reachable: 1, peers: [] });
    await expect(member.election("report").lead(({ token }) => token)).resolves.toBeGreaterThan(0);
  }));

test("reports suspected and restored members, and the loss and gain of a majority, each once", () =>
  heardFromTheBeginning(async (first, world, events) => {
    const since = (from: number): MemberEvent[] =>
      events.slice(from).filter(({ type }) => /^(peer|quorum)-/.test(type));
    expect(since(0)).toContainEqual({ type: "quorum-gained", reachable: 2, members: 3 });
    let before = events.length;
    await world.member(3).leave();
    await world.sleep(A_WHILE);
    expect(since(before)).toEqual([{ type: "peer-suspected", node: 3 }]);
    expect(first.status()).toMatchObject({ hasQuorum: true });
    before = events.length;
    await world.member(2).leave();
    world.kill(2);
    await world.sleep(A_WHILE);
    const lost = { type: "quorum-lost", reachable: 1, members: 3 };
    expect(since(before)).toEqual(expect.arrayContaining([{ type: "peer-suspected", node: 2 }, lost]));
    expect(since(before)).toHaveLength(2);
    expect(first.status().peers.map(({ suspected }) => suspected)).toEqual([true, true]);
    before = events.length;
    await world.restart(2);
    await world.sleep(A_WHILE);
    const gained = { type: "quorum-gained", reachable: 2, members: 3 };
    expect(since(before)).toEqual(expect.arrayContaining([{ type: "peer-restored", node: 2 }, gained]));
    expect(since(before)).toHaveLength(2);
  }));

test("reports that no leader of the log is known once the others have left", () =>
  heardFromTheBeginning(async (first, world, events) => {
    const last = (): MemberEvent | undefined => events.findLast(({ type }) => type === "log-leader-changed");
    expect(last()).toMatchObject({ leader: first.status().leader });
    expect(first.status().leader).not.toBe(null);
    await Promise.all([world.member(2).leave(), world.member(3).leave()]);
    await world.sleep(A_WHILE);
    expect(first.status().leader).toBe(null);
    expect(last()).toMatchObject({ leader: null });
  }));

test("detects that its process was paused", () =>
  alone(async (member, world) => {
    const events = eventsOf(member);
    world.pause(1);
    await world.sleep(600);
    world.resume(1);
    await world.sleep(100);
    expect(events.map(({ type }) => type)).toContain("stalled");
  }));

test("tokens keep growing after all members restart", () =>
  simulate({ members: 3, seed: 1 }).run(async (world) => {
    const lead = (id: number): Promise<number> =>
      world
        .member(id)
        .election("report")
        .lead(({ token }) => token);
    const first = await lead(1);
    await Promise.all(world.members.map((id) => world.member(id).leave()));
    for (const id of world.members) world.kill(id);
    await Promise.all(world.members.map((id) => world.restart(id)));
    expect(await lead(2)).toBeGreaterThan(first);
  }));

test("loses everything it holds when it fails, and ends every wait", () =>
  alone(async (member, world) => {
    const account = member.mutex("account");
    const grant = await account.acquire();
    await world.sleep(A_WHILE); // No other write is pending at the disk.
    world.failDisk(1);
    const map = member.map<number>("stock");
    const failed = [
      [account.acquire(), "never-acquired"],
      [map.put("apples", 3), "uncertain"],
      [map.get("apples"), "never-sent"],
    ] as const;
    const at = world.now();
    for (const [waiting, phase] of failed)
      await expect(waiting).rejects.toMatchObject({ code: "member-failed", phase });
    expect(world.now() - at).toBeLessThan(100);
    expect(grant.signal.reason).toMatchObject({ code: "member-failed", phase: "lost" });
    expect(member.signal.reason).toMatchObject({ code: "member-failed" });
    expect((grant.signal.reason as Error).cause).toBe((member.signal.reason as Error).cause);
    expect(member.status().state).toBe("failed");
    await member.leave();
  }));

test("leaves once, no matter how often it is called, and its readers end", () =>
  alone(async (member) => {
    const events = member.events();
    await Promise.all([member.leave(), member.leave()]);
    while ((await events.next()).done !== true); // Skip earlier events.
    expect(await events.next()).toEqual({ done: true, value: undefined });
  }));

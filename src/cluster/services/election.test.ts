/** Checks elections of three members in virtual time. Messages are delayed only on purpose. */
import { describe, expect, test, vi } from "vitest";
import { simulate, type World } from "../../testing/index.ts";
import type { LeaderChange, Leadership, Member } from "./api.ts";

const three = (): World => simulate({ members: 3, seed: 1 });
/** Longer than a session, so that a lost leader has a successor that all members know. */
const A_WHILE = 8_000;

const membersOf = (world: World): Member[] => world.members.map((id) => world.member(id));

/** Works until it no longer leads. */
const untilLost = ({ signal }: Leadership): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

/** Drops everything that the member sends. */
function mute(world: World, id: number): void {
  for (const other of world.members) if (other !== id) world.cut(id, other);
}

describe("an election", () => {
  test("has one leader at a time, and the next when it is done", () =>
    three().run(async (world) => {
      await world.sleep(500);
      expect(membersOf(world).map((member) => member.status().reachable)).toEqual([3, 3, 3]);
      let leading = 0;
      const led: number[] = [];
      const tokens: number[] = [];
      await Promise.all(
        membersOf(world).map((member) =>
          member.election("report").lead(async ({ signal, token }) => {
            leading += 1;
            expect({ leading, isAborted: signal.aborted }).toEqual({ leading: 1, isAborted: false });
            led.push(member.id);
            tokens.push(token);
            await world.sleep(20);
            expect({ leading, isAborted: signal.aborted }).toEqual({ leading: 1, isAborted: false });
            leading -= 1;
          }),
        ),
      );
      expect(led.sort((a, b) => a - b)).toEqual([1, 2, 3]);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    }));
});

describe("a leadership", () => {
  test("that is lost ends its work; the member campaigns again, and works again when it is elected again", () =>
    three().run(async (world) => {
      const stints: Leadership[] = [];
      const leaders: number[] = [];
      for (const member of membersOf(world))
        void member.election("report").lead((leadership) => {
          expect(stints.filter(({ isHeld }) => isHeld)).toEqual([]);
          stints.push(leadership);
          leaders.push(member.id);
          expect(leadership.deadline).toBeGreaterThan(0);
          return untilLost(leadership);
        });
      await world.sleep(A_WHILE);
      expect(leaders).toHaveLength(1);
      const [first] = leaders as [number];
      mute(world, first);
      await world.sleep(A_WHILE);
      expect(leaders).toHaveLength(2);
      const [, second] = leaders as [number, number];
      expect(second).not.toBe(first);
      world.heal();
      await world.sleep(A_WHILE);
      expect(leaders).toHaveLength(2); // The returned member waits for its turn.
      mute(world, second);
      await world.sleep(A_WHILE);
      expect(leaders).toHaveLength(3);
      expect(leaders[2]).not.toBe(second);
      const tokens = stints.map(({ token }) => token);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    }));

  test("aborts the leader's signal as soon as the campaign is stopped", () =>
    three().run(async (world) => {
      const abort = new AbortController();
      const election = world.member(1).election("report");
      let known: Leadership | undefined;
      const led = election.lead(
        async (leadership) => {
          known = leadership;
          abort.abort("enough");
          expect(leadership.signal.aborted).toBe(true);
          await world.sleep(10);
          expect(election.leader).toBe(1); // It leads until its work has ended.
        },
        { signal: abort.signal },
      );
      await expect(led).rejects.toMatchObject({ code: "lead-aborted", phase: "lost", cause: "enough" });
      expect(known?.signal.reason).toMatchObject({ code: "lead-aborted" });
      expect(election.leader).toBe(null);
      const again = election.lead(() => {}, { signal: abort.signal });
      await expect(again).rejects.toMatchObject({ code: "lead-aborted", phase: "never-acquired" });
      await expect(election.lead(({ token }) => token)).resolves.toBeGreaterThan(known?.token ?? 0);
    }));

  test("ends with the error of its work", () =>
    three().run(async (world) => {
      const led = world
        .member(2)
        .election("report")
        .lead(() => {
          throw new Error("no ink");
        });
      await expect(led).rejects.toThrow("no ink");
      const next = world.member(1).election("report");
      await expect(next.lead(() => 7)).resolves.toBe(7);
    }));

  test("ends when the member leaves, which waits for the work to end", () =>
    three().run(async (world) => {
      const ended = vi.fn();
      const third = world.member(3);
      const started = new Promise<void>((resolve) => {
        const led = third.election("report").lead(async (leadership) => {
          resolve();
          await untilLost(leadership);
          await world.sleep(20);
          ended();
        });
        led.catch((error: unknown) => expect(error).toMatchObject({ code: "member-left", phase: "lost" }));
      });
      await started;
      const next = world
        .member(1)
        .election("report")
        .lead(() => ended.mock.calls.length);
      await third.leave();
      expect(ended).toHaveBeenCalledTimes(1);
      await expect(next).resolves.toBe(1);
    }));

  test("can be campaigned for once per process", () =>
    three().run(async (world) => {
      const election = world.member(1).election("report");
      const led = election.lead(() => world.sleep(50));
      await expect(election.lead(() => {})).rejects.toMatchObject({ code: "already-campaigning" });
      await led;
    }));
});

describe("watching an election", () => {
  test("reports the leader, with its token, at every member", () =>
    three().run(async (world) => {
      const abort = new AbortController();
      const seen: LeaderChange[][] = [];
      const watching = membersOf(world).map(async (member) => {
        const changes: LeaderChange[] = [];
        seen.push(changes);
        for await (const change of member.election("report").watch({ signal: abort.signal })) changes.push(change);
      });
      const token = await world
        .member(2)
        .election("report")
        .lead(async (leadership) => {
          await world.sleep(500);
          return leadership.token;
        });
      abort.abort();
      await Promise.all(watching);
      for (const changes of seen) expect(changes).toContainEqual({ leader: 2, token });
    }));

  test("reports that its leader is lost", () =>
    three().run(async (world) => {
      const seen: LeaderChange[] = [];
      void (async () => {
        for await (const change of world.member(1).election("report").watch()) seen.push(change);
      })();
      void world.member(3).election("report").lead(untilLost);
      await world.sleep(A_WHILE);
      expect(seen.at(-1)).toMatchObject({ leader: 3 });
      const wasSeen = seen.length;
      world.kill(3);
      await world.sleep(A_WHILE);
      expect(seen.slice(wasSeen)).toContainEqual({ leader: null, token: null });
    }));
});

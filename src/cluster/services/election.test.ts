import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import type { Election, LeaderChange, Leadership, Member } from "./api.ts";
import type { Timing } from "./timing.ts";

const closing = closedAfterEach();
const PATIENCE = { timeout: 60_000, interval: 5 };

const at = <T>(items: readonly T[], index: number): T => items[index] as T;
const three = async (timing: Timing = "default"): Promise<Member[]> => startAll(closing(await cluster(3, { timing })));

/** Works until it no longer leads. */
const untilLost = ({ signal }: Leadership<number | null>): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

/** Drops all that the member sends to others. */
async function mute(member: Member, cutTo: readonly number[]): Promise<void> {
  const headers = { "content-type": "application/json" };
  await fetch(`${member.admin}/faults`, { method: "PUT", headers, body: JSON.stringify({ cutTo }) });
}

describe.each(["bully", "epoch-bully"] as const)("an election by %s", (algorithm) => {
  // The textbook's bully has one leader while messages are in time and nobody is suspected wrongly: here it is so, however busy the machine is.
  const isTextbook = algorithm === "bully";
  const options = isTextbook ? { maxDelayMs: 2_000 } : {};

  test("has one leader at a time, and the next when it is done", async () => {
    const members = await three("patient");
    await vi.waitUntil(() => members.every((member) => member.status().reachable === 3), PATIENCE);
    let leading = 0;
    const led: number[] = [];
    const tokens: (number | null)[] = [];
    await Promise.all(
      members.map((member) =>
        member.election("report", { algorithm, options }).lead(async ({ signal, token }) => {
          leading += 1;
          expect({ leading, isAborted: signal.aborted }).toEqual({ leading: 1, isAborted: false });
          led.push(member.id);
          tokens.push(token);
          await sleep(20);
          leading -= 1;
        }),
      ),
    );
    expect(led.sort((a, b) => a - b)).toEqual([1, 2, 3]);
    const growing = tokens.every((token, index) => index === 0 || Number(token) > Number(tokens[index - 1]));
    expect(tokens.every((token) => token === null) || growing).toBe(true);
  });

  test("who does not campaign does not lead", async () => {
    const members = await three();
    const lowest = at(members, 0).election("report", { algorithm });
    await expect(lowest.lead(() => "done")).resolves.toBe("done");
    await expect(lowest.lead(() => "again")).resolves.toBe("again");
  });
});

describe("a leadership", () => {
  test("that is lost ends its work; the member campaigns again, and works anew when it is elected anew", async () => {
    const it = closing(await cluster(3, { admin: "127.0.0.1:0", faultInjector: true }));
    const members = await startAll(it);
    const stints: { member: number; token: number; deadline: number | null }[] = [];
    for (const member of members) {
      const led = member.election("report").lead((leadership) => {
        stints.push({ member: member.id, token: leadership.token, deadline: leadership.deadline });
        return untilLost(leadership);
      });
      led.catch(() => {}); // The member leaves in the end.
    }
    await vi.waitFor(() => expect(stints).toHaveLength(1), PATIENCE);
    const first = at(members, at(stints, 0).member - 1);
    expect(at(stints, 0).deadline).toBeGreaterThan(0);
    await mute(first, [1, 2, 3]);
    await vi.waitFor(() => expect(stints.length).toBeGreaterThan(1), PATIENCE);
    const second = at(members, at(stints, 1).member - 1);
    expect(second.id).not.toBe(first.id);
    await mute(first, []);
    await mute(second, [1, 2, 3]);
    await vi.waitFor(() => expect(stints.length).toBeGreaterThan(2), PATIENCE);
    const tokens = stints.map(({ token }) => token);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  test("aborts the signal of the leader as soon as the member is told to stop", async () => {
    const members = await three("patient"); // It leads until it is told to stop.
    const abort = new AbortController();
    const election = at(members, 0).election("report");
    let known: Leadership | undefined;
    const led = election.lead(
      async (leadership) => {
        known = leadership;
        abort.abort("enough");
        expect(leadership.signal.aborted).toBe(true);
        await sleep(10);
        expect(election.leader).toBe(1); // Until the work has ended.
      },
      { signal: abort.signal },
    );
    await expect(led).rejects.toMatchObject({ code: "lead-aborted", phase: "lost", cause: "enough" });
    expect(known?.signal.reason).toMatchObject({ code: "lead-aborted" });
    expect(election.leader).toBe(null);
    const again = election.lead(() => {}, { signal: abort.signal });
    await expect(again).rejects.toMatchObject({ code: "lead-aborted", phase: "never-acquired" });
    await expect(election.lead(({ token }) => token)).resolves.toBeGreaterThan(known?.token ?? 0);
  });

  test("ends with what its work throws", async () => {
    const members = await three();
    const led = at(members, 1)
      .election("report")
      .lead(() => {
        throw new Error("no ink");
      });
    await expect(led).rejects.toThrow("no ink");
    await expect(
      at(members, 0)
        .election("report")
        .lead(() => 7),
    ).resolves.toBe(7);
  });

  test("ends as the member leaves, which waits for the work to end", async () => {
    const members = await three("patient"); // Its work ends once.
    const ended = vi.fn();
    const started = new Promise<void>((resolve) => {
      const led = at(members, 2)
        .election("report")
        .lead(async (leadership) => {
          resolve();
          await untilLost(leadership);
          await sleep(20);
          ended();
        });
      led.catch((error: unknown) => expect(error).toMatchObject({ code: "member-left", phase: "lost" }));
    });
    await started;
    const next = at(members, 0)
      .election("report")
      .lead(() => ended.mock.calls.length);
    await at(members, 2).leave();
    expect(ended).toHaveBeenCalledTimes(1);
    await expect(next).resolves.toBe(1);
  });

  test("is campaigned for once in a process", async () => {
    const members = await three();
    const election = at(members, 0).election("report");
    const led = election.lead(() => sleep(50));
    await expect(election.lead(() => {})).rejects.toMatchObject({ code: "already-campaigning" });
    await led;
  });
});

describe("watching an election", () => {
  test("shows who leads, with the token, at every member", async () => {
    const members = await three("patient"); // It leads until all have seen it.
    const seen: LeaderChange[][] = members.map(() => []);
    const abort = new AbortController();
    const watching = members.map(async (member, index) => {
      for await (const change of member.election("report").watch({ signal: abort.signal }))
        at(seen, index).push(change);
    });
    await at(members, 1)
      .election("report")
      .lead(async ({ token }) => {
        const change = { leader: 2, token };
        await vi.waitFor(() => {
          for (const changes of seen) expect(changes).toContainEqual(change);
        }, PATIENCE);
      });
    abort.abort();
    await Promise.all(watching);
  });

  test.each(["bully", "epoch-bully"])("shows that its leader is lost: %s", async (algorithm) => {
    const it = closing(await cluster(3, { admin: "127.0.0.1:0", faultInjector: true }));
    const members = await startAll(it);
    const [first, second, third] = members as [Member, Member, Member];
    const seen: LeaderChange<number | null>[] = [];
    void (async () => {
      for await (const change of first.election("report", { algorithm }).watch()) seen.push(change);
    })();
    const led = third.election("report", { algorithm }).lead(untilLost);
    led.catch(() => {}); // The member leaves in the end.
    await vi.waitFor(() => expect(seen.at(-1)).toMatchObject({ leader: 3 }), PATIENCE);
    const wasSeen = seen.length;
    await Promise.all([mute(second, [1, 3]), mute(third, [1, 2])]);
    const nobody = { leader: null, token: null };
    await vi.waitFor(() => expect(seen.slice(wasSeen)).toContainEqual(nobody), PATIENCE);
  });
});

describe.each(["chang-roberts", "ring"] as const)("an election on a ring, %s", (algorithm) => {
  // It assumes that messages are in time, and that nobody is suspected wrongly: here it is so, however busy the machine is.
  const setting = { algorithm, options: algorithm === "ring" ? { maxDelayMs: 2_000 } : {} };

  test("elects among those that campaign, and goes on to the next when its leader is done", async () => {
    const members = await three("patient");
    const [first, , third] = members.map((member) => member.election("report", setting)) as [
      Election<null>,
      Election<null>,
      Election<null>,
    ];
    await expect(first.lead(({ token }) => token)).resolves.toBe(null);
    const abort = new AbortController();
    const led = third.lead(untilLost, { signal: abort.signal }).catch(() => "aborted");
    await vi.waitFor(() => expect(first.leader).toBe(3), PATIENCE);
    const next = first.lead(() => "next");
    abort.abort();
    await expect(led).resolves.toBe("aborted");
    await expect(next).resolves.toBe("next");
  });
});

describe("ranks", () => {
  test("say who leads, where the algorithm goes by them", async () => {
    const members = await three();
    const [first, second] = [at(members, 0), at(members, 1)];
    const given = { algorithm: "epoch-bully", options: { takesOver: true } } as const;
    const low = first.election("report", { ...given, rank: 9 });
    const high = second.election("report", { ...given, rank: 1 });
    const abort = new AbortController();
    const led = high.lead(untilLost, { signal: abort.signal }).catch(() => {});
    await vi.waitFor(() => expect(low.leader).toBe(2), PATIENCE);
    await expect(low.lead(() => "taken over")).resolves.toBe("taken over");
    abort.abort();
    await led;
  });
});

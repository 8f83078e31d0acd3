/** What a member says of its surroundings before it has heard of any, and when it is ready. */
import { describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { type Cluster, cluster, startAll } from "../../../test/network/joined.ts";
import type { Member, MemberEvent } from "./api.ts";

const closing = closedAfterEach();
const PATIENCE = { timeout: 60_000, interval: 5 };

/** A cluster whose members have all met once, as they have to, and of which none runs. */
async function founded(size: number): Promise<Cluster> {
  const it = closing(await cluster(size));
  const members = await startAll(it);
  await Promise.all(members.map((member) => member.ready()));
  await Promise.all(members.map((member) => member.leave()));
  return it;
}

function eventsOf(member: Member): MemberEvent[] {
  const seen: MemberEvent[] = [];
  void (async () => {
    for await (const event of member.events()) seen.push(event);
  })();
  return seen;
}

describe("a member that has heard nobody", () => {
  test("has no majority, and says so at once", async () => {
    const it = await founded(3);
    const first = await it.start(1);
    expect(first.status()).toMatchObject({ hasQuorum: false, reachable: 1, lockServer: null });
    const events = eventsOf(first);
    await it.start(2);
    await vi.waitFor(
      () => expect(events).toContainEqual({ type: "quorum-gained", reachable: 2, members: 3 }),
      PATIENCE,
    );
    expect(first.status()).toMatchObject({ hasQuorum: true, reachable: 2 });
  });

  test("is not ready, and says what is missing", async () => {
    const it = await founded(3);
    const first = await it.start(1);
    await expect(first.ready({ timeoutMs: 20 })).rejects.toMatchObject({ code: "ready-timeout", phase: "no-majority" });
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
  });
});

describe("a member that is ready", () => {
  test("hears a majority, and knows who leads the log of the default locks and elections", async () => {
    const it = await founded(3);
    const first = await it.start(1);
    const ready = first.ready();
    await it.start(2);
    await ready;
    const { hasQuorum, lockServer } = first.status();
    expect(hasQuorum).toBe(true);
    expect([1, 2]).toContain(lockServer);
    await first.ready({ timeoutMs: 1 }); // At once.
  });

  test("needs no log where it keeps no journal, as there is none", async () => {
    const members = await startAll(closing(await cluster(2, { dataDir: undefined })));
    await Promise.all(members.map((member) => member.ready()));
    expect(members[0]?.status()).toMatchObject({ hasQuorum: true, lockServer: null, shared: null });
  });
});

describe("who leads", () => {
  test("is told of each election by name, to members that use it", async () => {
    const [first, second] = (await startAll(closing(await cluster(2)))) as [Member, Member];
    await first.ready();
    const events = eventsOf(second);
    second.election("report");
    const over = new AbortController();
    const led = first
      .election("report")
      .lead(({ signal }) => new Promise((done) => signal.addEventListener("abort", done)), over);
    const leaderOf = (member: Member) => member.status().instances.find(({ name }) => name === "report")?.leader;
    await vi.waitFor(() => expect([leaderOf(first), leaderOf(second)]).toEqual([1, 1]), PATIENCE);
    const told = { type: "leader-changed", election: "report", leader: 1, token: expect.any(Number) as number };
    await vi.waitFor(() => expect(events).toContainEqual(told), PATIENCE);
    over.abort();
    await expect(led).rejects.toMatchObject({ name: "AbortError", code: "lead-aborted" });
  });
});

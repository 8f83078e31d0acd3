import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { type Cluster, cluster, lockServerOf, startAll } from "../../../test/network/joined.ts";
import type { Grant, Member, MemberEvent, Mutex } from "./api.ts";

const closing = closedAfterEach();
const PATIENCE = { timeout: 60_000, interval: 5 };
const algorithm = "ricart-agrawala";

async function three(options = {}): Promise<{ it: Cluster; members: Member[]; locks: Mutex[] }> {
  const it = closing(await cluster(3, { dataDir: undefined, ...options }));
  const members = await startAll(it);
  return { it, members, locks: members.map((member) => member.mutex("invoice-42", { algorithm })) };
}

const at = <T>(items: readonly T[], index: number): T => items[index] as T;

describe.each(["raft", "elected-server", "central-server", "token-ring", algorithm, "maekawa-sanders"])(
  "a lock by %s",
  (name) => {
    test("has one holder at a time, and tokens that grow", async () => {
      // A grant with a lease is lost where a process stands still for longer than that.
      const timing = ["raft", "elected-server"].includes(name) ? "patient" : "default";
      const members = await startAll(closing(await cluster(3, { timing })));
      let inside = 0;
      const tokens: number[] = [];
      const use = (member: Member): Promise<void> =>
        member.mutex("report", { algorithm: name }).use(async ({ token, signal, isHeld }) => {
          inside += 1;
          expect({ inside, isHeld, isAborted: signal.aborted }).toEqual({ inside: 1, isHeld: true, isAborted: false });
          tokens.push(token);
          await sleep(1);
          inside -= 1;
        });
      await Promise.all(Array.from({ length: 10 }, () => members.map(use)).flat());
      expect(tokens).toHaveLength(30);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    });
  },
);

describe("a member that leaves in order", () => {
  // With leases this long whoever had to wait for one would not get in before its time is up.
  const served = { algorithm: "elected-server", options: { leaseMs: 600_000, renewMs: 200 } };
  const within = { timeoutMs: 30_000 };

  test("while it serves: nobody waits for what it has granted, since it says that it holds nothing", async () => {
    const members = await startAll(closing(await cluster(3)));
    const locks = members.map((member) => member.mutex("report", served));
    const tokens: number[] = [];
    for (const lock of locks) await lock.use(({ token }) => void tokens.push(token), within);
    const serving = members.indexOf((await lockServerOf(members, locks)) as Member);
    const leaving = at(members, serving).leave();
    for (const lock of locks.filter((_lock, index) => index !== serving))
      await lock.use(({ token }) => void tokens.push(token), within);
    await leaving;
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(tokens).toHaveLength(5);
  });

  test("is out of the group at once, as far as the others can see", async () => {
    const members = await startAll(closing(await cluster(3)));
    await at(members, 0)
      .mutex("report")
      .use(() => {});
    const suspicion = (async () => {
      for await (const event of at(members, 0).events())
        if (event.type === "peer-suspected" && event.node === 2) return event; // Another, where this process stood still.
      return null;
    })();
    await at(members, 1).leave();
    expect(await suspicion).toMatchObject({ node: 2 });
  });
});

describe("acquire", () => {
  test("lets those who wait in one process in as they came", async () => {
    const { locks } = await three();
    const first = await at(locks, 0).acquire();
    const order: number[] = [];
    const waits = [1, 2, 3].map((number) => at(locks, 0).use(() => void order.push(number)));
    await first.release();
    await Promise.all(waits);
    expect(order).toEqual([1, 2, 3]);
  });

  test("stops waiting when its time is up or its signal is aborted, and says which", async () => {
    const { locks } = await three();
    const grant = await at(locks, 0).acquire();
    const late = at(locks, 1).acquire({ timeoutMs: 30 });
    await expect(late).rejects.toMatchObject({ code: "acquire-timeout", phase: "never-acquired" });
    const abort = new AbortController();
    const aborted = at(locks, 1).acquire({ signal: abort.signal });
    abort.abort("not wanted");
    await expect(aborted).rejects.toMatchObject({
      name: "AbortError",
      code: "acquire-aborted",
      phase: "never-acquired",
      cause: "not wanted",
    });
    await expect(at(locks, 1).acquire({ signal: abort.signal })).rejects.toMatchObject({ code: "acquire-aborted" });
    await expect(at(locks, 1).acquire({ timeoutMs: -1 })).rejects.toMatchObject({ code: "bad-option" });
    expect(grant.isHeld).toBe(true);
  });

  test("leaves nothing behind: a grant that comes too late is given back at once", async () => {
    const { locks } = await three();
    const grant = await at(locks, 0).acquire();
    await expect(at(locks, 1).acquire({ timeoutMs: 10 })).rejects.toMatchObject({ code: "acquire-timeout" });
    await grant.release();
    await at(locks, 2).use(() => {}); // Behind the abandoned request.
    await at(locks, 1).use(() => {});
  });

  test("a wait that is aborted does not touch the grant that it has got", async () => {
    const { locks } = await three();
    const abort = new AbortController();
    const grant = await at(locks, 0).acquire({ signal: abort.signal });
    abort.abort();
    expect(grant.isHeld).toBe(true);
  });

  test("refuses more waiters than the limit allows", async () => {
    const { locks } = await three({ limits: { maxWaiters: 1 } });
    const grant = await at(locks, 0).acquire();
    const waiting = at(locks, 0).acquire();
    await expect(at(locks, 0).acquire()).rejects.toMatchObject({ code: "too-many-waiters", phase: "never-acquired" });
    await grant.release();
    await (await waiting).release();
  });
});

describe("a grant", () => {
  test("is released once, and its own release does not touch the next", async () => {
    const { locks } = await three();
    const first = await at(locks, 0).acquire();
    const next = at(locks, 0).acquire();
    await first.release();
    const second = await next;
    await first.release();
    expect(first.isHeld).toBe(false);
    expect(first.signal.reason).toMatchObject({ code: "released", phase: "released" });
    expect(second.isHeld).toBe(true);
    expect(second.token).toBeGreaterThan(first.token);
  });

  test("ends with its scope", async () => {
    const { locks } = await three();
    let known: Grant;
    {
      await using grant = await at(locks, 0).acquire();
      known = grant;
      expect(known.isHeld).toBe(true);
    }
    expect(known.isHeld).toBe(false);
    await at(locks, 1).use(() => {});
  });

  test("is given back when the work under it fails", async () => {
    const { locks } = await three();
    const failing = at(locks, 0).use(() => {
      throw new Error("no ink");
    });
    await expect(failing).rejects.toThrow("no ink");
    await at(locks, 1).use(() => {});
  });

  test("is lost when its member leaves, and those who wait there are told", async () => {
    const { members, locks } = await three();
    const grant = await at(locks, 0).acquire();
    const waiting = at(locks, 0).acquire();
    const told = expect(waiting).rejects.toMatchObject({ code: "member-left", phase: "never-acquired" });
    await at(members, 0).leave();
    await told;
    expect(grant.signal.reason).toMatchObject({ code: "member-left", phase: "lost" });
    expect(grant.isHeld).toBe(false);
    await grant.release();
    expect(() => at(members, 0).mutex("invoice-42", { algorithm })).toThrow("has left");
    await expect(at(locks, 0).acquire()).rejects.toMatchObject({ code: "member-left" });
    expect(at(members, 0).status().state).toBe("left");
  });
});

describe("a member that is gone", () => {
  test("is not waited for where that is asked for, and is otherwise, whatever the failure detector says", async () => {
    const members = await startAll(closing(await cluster(3)));
    const locks = members.map((member) => member.mutex("invoice-42", { algorithm }));
    const first = at(members, 0);
    const daring = first.mutex("daring", { algorithm, options: { rejoins: true } });
    await daring.use(() => {});
    await at(locks, 0).use(() => {});
    await at(members, 2).leave();
    await vi.waitFor(() => expect(first.status().peers).toContainEqual(suspectedThird), PATIENCE);
    await daring.use(() => {});
    await expect(at(locks, 0).acquire({ timeoutMs: 100 })).rejects.toMatchObject({ code: "acquire-timeout" });
  });

  const suspectedThird = expect.objectContaining({ id: 3, suspected: true });
});

describe("a lock of one name", () => {
  test("is run by one algorithm with the same options: who comes second is refused", async () => {
    const { members, locks } = await three();
    await at(locks, 0).use(() => {});
    const [, second] = members as [Member, Member, Member];
    expect(() => second.mutex("invoice-42", { algorithm: "maekawa-sanders" })).toThrow(
      'expected the algorithm of the mutex "invoice-42" to be ricart-agrawala, as it is in use already, got "maekawa-sanders"',
    );
    expect(() => second.mutex("invoice-42", { algorithm, options: { rejoins: true } })).toThrow(
      'expected the options of the mutex "invoice-42" to be {}, as they are in use already, got {"rejoins":true}',
    );
  });

  test("wanted in two ways at the same time is refused by whoever had the other first, and said so", async () => {
    const it = closing(await cluster(2, { dataDir: undefined }));
    const [first, second] = (await startAll(it)) as [Member, Member];
    const events = first.events();
    const one = first.mutex("report", { algorithm: "central-server" }).acquire();
    const other = second.mutex("report", { algorithm: "token-ring" }).acquire();
    const results = await Promise.allSettled([one, other]);
    expect(results.map(({ status }) => status)).toContain("rejected");
    let event: MemberEvent | undefined;
    do event = (await events.next()).value as MemberEvent;
    while (event.type !== "instance-refused");
    expect(event).toMatchObject({ kind: "mutex", name: "report" });
    expect(it.lines.join("\n")).toContain('refuses the mutex "report"');
  });

  test.each([
    ["", "not empty"],
    ["x".repeat(129), "at most 128 bytes"],
    ["é".repeat(65), "at most 128 bytes"],
    ["a\nb", "control characters"],
  ])("cannot be %j", async (name, why) => {
    const { members } = await three();
    expect(() => at(members, 0).mutex(name, { algorithm })).toThrow(why);
  });

  test("needs an algorithm that there is", async () => {
    const { members } = await three();
    expect(() => at(members, 0).mutex("a", { algorithm: "bully" })).toThrow(
      /expected the algorithm of mutex\(\) to be one of .*central-server.*ricart-agrawala.*, got "bully"/,
    );
    expect(() => at(members, 0).mutex("a", { algorithm, options: { keeps: 1 } })).toThrow("the options are");
    expect(() => at(members, 0).election("a")).toThrow("expected join() to be given a dataDir");
  });

  test("takes no option that there is not, which would be passed over in silence", async () => {
    const { members, locks } = await three();
    const first = at(members, 0);
    expect(() => first.mutex("a", { leaseMs: 5 } as object)).toThrow(
      'expected the options of mutex() to be among algorithm, options, got "leaseMs"; options of the algorithm are written options: { leaseMs }',
    );
    expect(() => first.mutex("a", algorithm as never)).toThrow("to be an object");
    expect(() => first.election("a", { algorithm: "bully", stands: true } as object)).toThrow('got "stands"');
    await expect(at(locks, 0).acquire({ timeout: 5 } as object)).rejects.toThrow(
      'expected the options of acquire() to be among timeoutMs, signal, got "timeout": timeoutMs is meant?',
    );
    const election = first.election("a", { algorithm: "bully" });
    await expect(election.lead(() => {}, { timeoutMs: 5 } as object)).rejects.toThrow('got "timeoutMs"');
  });

  test("is refused beyond the limit, and that is said", async () => {
    const { members, it } = await three({ limits: { maxInstances: 2 } });
    at(members, 0).mutex("a", { algorithm });
    expect(() => at(members, 0).mutex("b", { algorithm })).toThrow("raise limits.maxInstances");
    expect(it.lines.join("\n")).toContain("this member has 2 elections, locks and channels");
  });

  test("is there for a member that joins later, or again", async () => {
    const it = closing(await cluster(3, { dataDir: undefined }));
    const first = await it.start(1);
    const waiting = first.mutex("report", { algorithm: "central-server" }).acquire();
    const second = await it.start(2);
    await (await waiting).release();
    await second.mutex("report", { algorithm: "central-server" }).use(() => {});
    await second.leave();
    const again = await it.start(2);
    await vi.waitFor(() => expect(again.status().instances).toMatchObject([{ name: "report" }]), PATIENCE);
    await again.mutex("report", { algorithm: "central-server" }).use(() => {});
  });
});

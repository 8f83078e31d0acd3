/** Locks of three members, in virtual time: messages are late only where a test says so. */
import { describe, expect, test } from "vitest";
import { lockServerOf } from "../../../test/services/lock-server.ts";
import { simulate, type World, type WorldOptions } from "../../testing/index.ts";
import type { Grant, Member, MemberEvent, Mutex } from "./api.ts";

const algorithm = "ricart-agrawala";
const NAME = "invoice-42";

const three = (): World => simulate({ members: 3, seed: 1 });
const membersOf = (world: World): Member[] => world.members.map((id) => world.member(id));
const locksOf = (world: World): Mutex[] => membersOf(world).map((member) => member.mutex(NAME, { algorithm }));
const at = <T>(items: readonly T[], index: number): T => items[index] as T;

/** Three without journals, and a lock of theirs. */
function withLocks(
  body: (locks: readonly Mutex[], members: readonly Member[], world: World) => Promise<void> | void,
  limits: WorldOptions["join"] = {},
): Promise<void> {
  const world = simulate({ members: 3, seed: 1, join: { dataDir: undefined, ...limits } });
  return world.run(() => body(locksOf(world), membersOf(world), world));
}

describe.each(["raft", "elected-server", "central-server", "token-ring", algorithm, "maekawa-sanders"])(
  "a lock by %s",
  (name) => {
    test("has one holder at a time, and tokens that grow", () =>
      three().run(async (world) => {
        let inside = 0;
        const tokens: number[] = [];
        const use = (member: Member): Promise<void> =>
          member.mutex("report", { algorithm: name }).use(async (grant) => {
            const isAlone = { inside: 1, isHeld: true, isAborted: false };
            const look = () => ({ inside, isHeld: grant.isHeld, isAborted: grant.signal.aborted });
            inside += 1;
            expect(look()).toEqual(isAlone);
            tokens.push(grant.token);
            await world.sleep(1);
            expect(look()).toEqual(isAlone);
            inside -= 1;
          });
        await Promise.all(Array.from({ length: 10 }, () => membersOf(world).map(use)).flat());
        expect(tokens).toHaveLength(30);
        expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      }));
  },
);

describe("a member that leaves in order", () => {
  // With leases this long, no wait for one would end in time.
  const served = { algorithm: "elected-server", options: { leaseMs: 600_000, renewMs: 200 } };
  const within = { timeoutMs: 2_000 };

  test("while it serves: nobody waits for what it has granted, since it says that it holds nothing", () =>
    three().run(async (world) => {
      const members = membersOf(world);
      const locks = members.map((member) => member.mutex("report", served));
      const tokens: number[] = [];
      for (const lock of locks) await lock.use(({ token }) => void tokens.push(token), within);
      const serving = await lockServerOf(members, locks);
      const leaving = serving.leave();
      for (const [index, lock] of locks.entries())
        if (members[index] !== serving) await lock.use(({ token }) => void tokens.push(token), within);
      await leaving;
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(tokens).toHaveLength(5);
    }));

  test("is out of the group at once, as far as the others can see", () =>
    three().run(async (world) => {
      const [first, second] = membersOf(world) as [Member, Member, Member];
      await first.mutex("report").use(() => {});
      const suspected: number[] = [];
      void (async () => {
        for await (const event of first.events()) if (event.type === "peer-suspected") suspected.push(event.node);
      })();
      await second.leave();
      await world.sleep(10); // No detector suspects anybody that soon.
      expect(suspected).toEqual([2]);
    }));
});

describe("acquire", () => {
  test("lets those who wait in one process in as they came", () =>
    withLocks(async (locks) => {
      const first = await at(locks, 0).acquire();
      const order: number[] = [];
      const waits = [1, 2, 3].map((number) => at(locks, 0).use(() => void order.push(number)));
      await first.release();
      await Promise.all(waits);
      expect(order).toEqual([1, 2, 3]);
    }));

  test("stops waiting when its time is up or its signal is aborted, and says which", () =>
    withLocks(async (locks) => {
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
    }));

  test("leaves nothing behind: a grant that comes too late is given back at once", () =>
    withLocks(async (locks) => {
      const grant = await at(locks, 0).acquire();
      await expect(at(locks, 1).acquire({ timeoutMs: 10 })).rejects.toMatchObject({ code: "acquire-timeout" });
      await grant.release();
      await at(locks, 2).use(() => {}); // Behind the abandoned request.
      await at(locks, 1).use(() => {});
    }));

  test("a wait that is aborted does not touch the grant that it has got", () =>
    withLocks(async (locks) => {
      const abort = new AbortController();
      const grant = await at(locks, 0).acquire({ signal: abort.signal });
      abort.abort();
      expect(grant.isHeld).toBe(true);
    }));

  test("refuses more waiters than the limit allows", () =>
    withLocks(
      async (locks) => {
        const grant = await at(locks, 0).acquire();
        const waiting = at(locks, 0).acquire();
        await expect(at(locks, 0).acquire()).rejects.toMatchObject({
          code: "too-many-waiters",
          phase: "never-acquired",
        });
        await grant.release();
        await (await waiting).release();
      },
      { limits: { maxWaiters: 1 } },
    ));
});

describe("a grant", () => {
  test("is released once, and its own release does not touch the next", () =>
    withLocks(async (locks) => {
      const first = await at(locks, 0).acquire();
      const next = at(locks, 0).acquire();
      await first.release();
      const second = await next;
      await first.release();
      expect(first.isHeld).toBe(false);
      expect(first.signal.reason).toMatchObject({ code: "released", phase: "released" });
      expect(second.isHeld).toBe(true);
      expect(second.token).toBeGreaterThan(first.token);
    }));

  test("ends with its scope", () =>
    withLocks(async (locks) => {
      let known: Grant;
      {
        await using grant = await at(locks, 0).acquire();
        known = grant;
        expect(known.isHeld).toBe(true);
      }
      expect(known.isHeld).toBe(false);
      await at(locks, 1).use(() => {});
    }));

  test("is given back when the work under it fails", () =>
    withLocks(async (locks) => {
      const failing = at(locks, 0).use(() => {
        throw new Error("no ink");
      });
      await expect(failing).rejects.toThrow("no ink");
      await at(locks, 1).use(() => {});
    }));

  test("is lost when its member leaves, and those who wait there are told", () =>
    withLocks(async (locks, members) => {
      const grant = await at(locks, 0).acquire();
      const waiting = at(locks, 0).acquire();
      const told = expect(waiting).rejects.toMatchObject({ code: "member-left", phase: "never-acquired" });
      await at(members, 0).leave();
      await told;
      expect(grant.signal.reason).toMatchObject({ code: "member-left", phase: "lost" });
      expect(grant.isHeld).toBe(false);
      await grant.release();
      const late = at(members, 0).mutex("invoice-42", { algorithm });
      await expect(late.acquire()).rejects.toMatchObject({ code: "member-left" });
      await expect(at(locks, 0).acquire()).rejects.toMatchObject({ code: "member-left" });
      expect(at(members, 0).status().state).toBe("left");
    }));
});

describe("a member that is gone", () => {
  test("is not waited for where that is asked for, and is otherwise, whatever the failure detector says", () =>
    three().run(async (world) => {
      const [first, , third] = membersOf(world) as [Member, Member, Member];
      const locks = locksOf(world);
      const daring = first.mutex("daring", { algorithm, options: { rejoins: true } });
      await daring.use(() => {});
      await at(locks, 0).use(() => {});
      await third.leave();
      await world.sleep(1_000);
      expect(first.status().peers).toMatchObject([
        { id: 2, suspected: false },
        { id: 3, suspected: true },
      ]);
      await daring.use(() => {});
      await expect(at(locks, 0).acquire({ timeoutMs: 5_000 })).rejects.toMatchObject({ code: "acquire-timeout" });
    }));
});

describe("a lock of one name", () => {
  test("is run by one algorithm with the same options: who comes second is refused", () =>
    withLocks(async (locks, members) => {
      await at(locks, 0).use(() => {});
      const [, second] = members as [Member, Member, Member];
      expect(() => second.mutex("invoice-42", { algorithm: "maekawa-sanders" })).toThrow(
        'expected the algorithm of the mutex "invoice-42" to be ricart-agrawala, as it is in use already, got "maekawa-sanders"',
      );
      expect(() => second.mutex("invoice-42", { algorithm, options: { rejoins: true } })).toThrow(
        'expected the options of the mutex "invoice-42" to be {}, as they are in use already, got {"rejoins":true}',
      );
    }));

  test("wanted in two ways at the same time is refused by whoever had the other first, and said so", () =>
    simulate({ members: 2, seed: 1, join: { dataDir: undefined } }).run(async (world) => {
      const [first, second] = membersOf(world) as [Member, Member];
      const events = first.events();
      const one = first.mutex("report", { algorithm: "central-server" }).acquire();
      const other = second.mutex("report", { algorithm: "token-ring" }).acquire();
      const results = await Promise.allSettled([one, other]);
      expect(results.map(({ status }) => status)).toContain("rejected");
      let event: MemberEvent | undefined;
      do event = (await events.next()).value as MemberEvent;
      while (event.type !== "instance-refused");
      expect(event).toMatchObject({ kind: "mutex", name: "report" });
      expect(world.log.join("\n")).toContain('refuses the mutex "report"');
    }));

  test.each([
    ["", "not empty"],
    ["x".repeat(129), "at most 128 bytes"],
    ["é".repeat(65), "at most 128 bytes"],
    ["a\nb", "control characters"],
  ])("cannot be %j", (name, why) =>
    withLocks((_locks, members) => {
      expect(() => at(members, 0).mutex(name, { algorithm })).toThrow(why);
    }),
  );

  test("needs an algorithm that there is", () =>
    withLocks((_locks, members) => {
      expect(() => at(members, 0).mutex("a", { algorithm: "bully" })).toThrow(
        /expected the algorithm of mutex\(\) to be one of .*central-server.*ricart-agrawala.*, got "bully"/,
      );
      expect(() => at(members, 0).mutex("a", { algorithm, options: { keeps: 1 } })).toThrow("the options are");
      expect(() => at(members, 0).election("a")).toThrow("expected join() to be given a dataDir");
    }));

  test("takes no option that there is not, which would be passed over in silence", () =>
    withLocks(async (locks, members) => {
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
    }));

  test("is refused beyond the limit, and that is said", () =>
    withLocks(
      (_locks, members, world) => {
        at(members, 0).mutex("a", { algorithm });
        expect(() => at(members, 0).mutex("b", { algorithm })).toThrow("raise limits.maxInstances");
        expect(world.log.join("\n")).toContain("this member has 2 elections, locks and channels");
      },
      { limits: { maxInstances: 2 } },
    ));

  test("is there for a member that joins later, or again", () =>
    simulate({ members: 3, seed: 1, join: { dataDir: undefined } }).run(async (world) => {
      for (const id of [2, 3]) world.kill(id);
      const lockAt = (member: Member): Mutex => member.mutex("report", { algorithm: "central-server" });
      const waiting = lockAt(world.member(1)).acquire();
      const second = await world.restart(2);
      await (await waiting).release();
      await lockAt(second).use(() => {});
      await second.leave();
      world.kill(2);
      const again = await world.restart(2);
      await world.sleep(1_000);
      expect(again.status().instances).toMatchObject([{ name: "report" }]);
      await lockAt(again).use(() => {});
    }));
});

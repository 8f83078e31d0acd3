/** What this process makes of events that come late: after a wait for the journal, or after it has changed its mind. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { Tagged } from "../../core/protocol.ts";
import { newCounts } from "../../runtime/metrics.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import type { LeaderChange } from "./api.ts";
import { CoordinationError } from "./coordination-error.ts";
import type { Engine } from "./engine.ts";
import { LocalElection } from "./local-election.ts";
import { LocalMutex } from "./local-mutex.ts";

interface Played extends Engine {
  leader: number | null;
  isSettled: boolean;
  readonly commands: string[];
}

/** An algorithm that a test plays: it notes what it is told and says nothing by itself. */
function played(kind: "mutex" | "election"): Played {
  const commands: string[] = [];
  return {
    platform: realPlatform,
    setting: { kind, name: "report", algorithm: "played", options: "{}" },
    self: 1,
    peers: [2, 3],
    maxWaiters: 10,
    counts: newCounts(),
    leader: null,
    isSettled: true,
    commands,
    takes: (command) => ["stand", "resign"].includes(command),
    command: ({ type }: Tagged) => void commands.push(type),
    sayLeader() {},
    hasRoom: () => true,
    bounds: () => ({ payloadBytes: 60_000, batchBytes: 60_000 }),
    sayPressure() {},
  };
}

const soon = (): number => performance.now() + 60_000;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("a lock", () => {
  test("is asked for while somebody waits, and given back when nobody does any more", async () => {
    const engine = played("mutex");
    const lock = new LocalMutex(engine);
    await expect(lock.acquire({ timeoutMs: 1 })).rejects.toMatchObject({ code: "acquire-timeout" });
    expect(engine.commands).toEqual(["enter", "exit"]);
    lock.onEvent({ type: "entered", token: 1 }, null); // The request could not be taken back.
    expect(engine.commands).toEqual(["enter", "exit", "exit"]);
  });

  test("is not left while a grant may be on its way: whoever comes next must not take it for a new one", async () => {
    const engine = played("mutex");
    const lock = new LocalMutex(engine);
    engine.isSettled = false;
    await expect(lock.acquire({ timeoutMs: 1 })).rejects.toMatchObject({ code: "acquire-timeout" });
    expect(engine.commands).toEqual(["enter"]);
    const next = lock.acquire();
    lock.onEvent({ type: "entered", token: 1 }, null);
    expect(await next).toMatchObject({ token: 1, isHeld: true });
  });

  test("that somebody waits for is given up as the member leaves, so that it is not granted to a member that is gone", async () => {
    const engine = played("mutex");
    const lock = new LocalMutex(engine);
    engine.isSettled = false; // Even if a grant is on its way: nobody will wait for it.
    const waiting = lock.acquire();
    const told = expect(waiting).rejects.toMatchObject({ code: "member-left", phase: "never-acquired" });
    lock.close(new CoordinationError("member-left", "lost", "member 1 has left"));
    await told;
    expect(engine.commands).toEqual(["enter", "exit"]);
  });

  test("goes to the next who waits when it is lost, after it has been given back", async () => {
    const engine = played("mutex");
    const lock = new LocalMutex(engine);
    const waits = [lock.acquire(), lock.acquire()] as const;
    lock.onEvent({ type: "entered", token: 1 }, null);
    const first = await waits[0];
    engine.commands.length = 0;
    lock.onEvent({ type: "lost", token: 1 }, null);
    expect(first.signal.reason).toMatchObject({ code: "grant-lost" });
    expect(engine.commands).toEqual(["exit", "enter"]);
    lock.onEvent({ type: "entered", token: 5 }, null);
    lock.onEvent({ type: "confirmed", token: 5 }, soon());
    const second = await waits[1];
    lock.onEvent({ type: "lost", token: 1 }, null); // Told late: of the grant before.
    lock.onEvent({ type: "confirmed", token: 1 }, null);
    expect(second).toMatchObject({ token: 5, isHeld: true });
    expect(second.deadline).toBeGreaterThan(performance.now());
    await second.release();
  });

  test("that ran out before its news came is given back, and its caller waits on before all others", async () => {
    const engine = played("mutex");
    const lock = new LocalMutex(engine);
    const waits = [lock.acquire(), lock.acquire()] as const;
    lock.onEvent({ type: "entered", token: 1 }, null);
    lock.onEvent({ type: "confirmed", token: 1 }, performance.now() - 1);
    await turn();
    expect(engine.commands).toEqual(["enter", "enter", "exit", "enter"]);
    lock.onEvent({ type: "entered", token: 5 }, null);
    const first = await waits[0];
    expect(first).toMatchObject({ token: 5, isHeld: true });
    await first.release();
    lock.onEvent({ type: "entered", token: 6 }, null);
    expect(await waits[1]).toMatchObject({ token: 6, isHeld: true });
  });

  test("that is lost before its caller has it is asked for again", async () => {
    const engine = played("mutex");
    const lock = new LocalMutex(engine);
    const waiting = lock.acquire();
    lock.onEvent({ type: "entered", token: 1 }, null);
    lock.onEvent({ type: "lost", token: 1 }, null);
    await turn();
    expect(engine.commands).toEqual(["enter", "exit", "enter"]);
    lock.onEvent({ type: "entered", token: 5 }, null);
    expect(await waiting).toMatchObject({ token: 5, isHeld: true });
  });

  test("that is granted to a caller that gives up at that moment is given back", async () => {
    const engine = played("mutex");
    const lock = new LocalMutex(engine);
    const abort = new AbortController();
    const waiting = lock.acquire({ signal: abort.signal });
    lock.onEvent({ type: "entered", token: 1 }, null);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: "acquire-aborted" });
    expect(engine.commands).toEqual(["enter", "exit"]);
    expect(lock.isUsed).toBe(false);
  });
});

describe("a wait for a lock", () => {
  test.each([0, -1, Number.NaN])("of %s ms is refused: without waiting nobody gets in", async (timeoutMs) => {
    const engine = played("mutex");
    await expect(new LocalMutex(engine).acquire({ timeoutMs })).rejects.toMatchObject({
      code: "bad-option",
      message: `expected timeoutMs of acquire() to be a number of milliseconds above 0, since no lock on a network is had without waiting, got ${timeoutMs}`,
    });
    expect(engine.commands).toEqual([]);
  });
});

describe("a signal", () => {
  test("that many waits share has one listener, and none when they are over", async () => {
    const [report, invoice] = [new LocalMutex(played("mutex")), new LocalMutex(played("mutex"))];
    const abort = new AbortController();
    const { signal } = abort;
    const waits = [report, invoice].flatMap((lock) => Array.from({ length: 9 }, () => lock.acquire({ signal })));
    const election = new LocalElection(played("election"));
    const led = election.lead(() => {}, { signal });
    const watching = election.watch({ signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    abort.abort();
    for (const waiting of [...waits, led])
      await expect(waiting).rejects.toMatchObject({ name: "AbortError", phase: "never-acquired" });
    await watching.next();
    expect(await watching.next()).toEqual({ done: true, value: undefined });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("an election that is followed", () => {
  const seenBy = (election: LocalElection): LeaderChange[] => {
    const seen: LeaderChange[] = [];
    void (async () => {
      for await (const change of election.watch()) seen.push(change);
    })();
    return seen;
  };

  test("has no leader while its algorithm has none, and the same one again with the same token", async () => {
    const engine = played("election");
    const election = new LocalElection(engine);
    const seen = seenBy(election);
    await turn();
    engine.leader = 2;
    election.onEvent({ type: "elected", leader: 2, epoch: 3 }, null);
    for (const leader of [2, null, null, 2]) {
      engine.leader = leader;
      election.lookAgain();
      await turn();
      expect(election.leader).toBe(leader);
    }
    const nobody = { leader: null, token: null };
    expect(seen).toEqual([nobody, { leader: 2, token: 3 }, nobody, { leader: 2, token: 3 }]);
  });

  test("names no leader whose event waits for the journal, and none that has been lost by then", async () => {
    const engine = played("election");
    const election = new LocalElection(engine);
    engine.leader = 2;
    election.onEvent({ type: "elected", leader: 2, epoch: 3 }, null);
    engine.leader = null;
    election.lookAgain();
    Object.assign(engine, { leader: 2, isSettled: false });
    election.lookAgain(); // It may lead in a later epoch, of which the event is on its way.
    expect(election.leader).toBe(null);
    engine.leader = null;
    election.onEvent({ type: "elected", leader: 2, epoch: 4 }, null);
    expect(election.leader).toBe(null);
    Object.assign(engine, { leader: 2, isSettled: true });
    election.lookAgain();
    expect((await election.watch().next()).value).toEqual({ leader: 2, token: 4 });
  });

  test("ends its own leadership by events alone", () => {
    const engine = played("election");
    const election = new LocalElection(engine);
    engine.leader = 1;
    election.onEvent({ type: "elected", leader: 1, epoch: 3 }, null);
    engine.leader = null;
    election.lookAgain();
    expect(election.leader).toBe(1);
    election.onEvent({ type: "deposed", epoch: 3 }, null);
    expect(election.leader).toBe(null);
  });
});

describe("an election", () => {
  test("that was won by a node which has stepped down since is no leadership", async () => {
    const engine = played("election");
    const election = new LocalElection(engine);
    let calls = 0;
    const stop = new AbortController();
    const led = election.lead(() => void calls++, { signal: stop.signal });
    expect(engine.commands).toEqual(["stand"]);
    election.onEvent({ type: "elected", leader: 1, epoch: 3 }, null);
    await turn();
    expect({ calls, leader: election.leader }).toEqual({ calls: 0, leader: null });
    engine.leader = 1;
    election.onEvent({ type: "elected", leader: 1, epoch: 4 }, null);
    await led;
    expect(calls).toBe(1);
    expect(engine.commands).toEqual(["stand", "resign"]);
  });

  test("lost by the clock before the algorithm says so is given up, and campaigned for again", async () => {
    const engine = played("election");
    const election = new LocalElection(engine);
    engine.leader = 1;
    const tokens: (number | null)[] = [];
    const led = election.lead(async ({ token, signal }) => {
      tokens.push(token);
      if (tokens.length === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    election.onEvent({ type: "elected", leader: 1, epoch: 3 }, null);
    await turn();
    expect(tokens).toEqual([3]); // The work has begun.
    election.onEvent({ type: "confirmed", epoch: 3 }, performance.now() + 5);
    await expect.poll(() => engine.commands).toEqual(["stand", "resign", "stand"]);
    expect(election.leader).toBe(null);
    election.onEvent({ type: "deposed", epoch: 3 }, null); // Told late.
    election.onEvent({ type: "elected", leader: 1, epoch: 4 }, null);
    election.onEvent({ type: "deposed", epoch: 3 }, null);
    await led;
    expect(tokens).toEqual([3, 4]);
  });

  test("lost before the work has begun is campaigned for again, too", async () => {
    const engine = played("election");
    const election = new LocalElection(engine);
    engine.leader = 1;
    const led = election.lead(({ token }) => token);
    election.onEvent({ type: "elected", leader: 1, epoch: 3 }, null);
    election.onEvent({ type: "confirmed", epoch: 3 }, performance.now() - 1);
    await turn();
    expect(engine.commands).toEqual(["stand", "resign", "stand"]);
    election.onEvent({ type: "elected", leader: 1, epoch: 4 }, null);
    await expect(led).resolves.toBe(4);
  });

  test("of another ends a leadership, and the work that comes of it is called once more later", async () => {
    const engine = played("election");
    const election = new LocalElection(engine);
    engine.leader = 1;
    const aborted: boolean[] = [];
    const led = election.lead(async ({ signal }) => {
      if (aborted.length === 0) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      aborted.push(signal.aborted);
      signal.throwIfAborted(); // What fails because of the loss does not end the campaign.
      return "done";
    });
    election.onEvent({ type: "elected", leader: 1, epoch: 3 }, null);
    await turn();
    election.onEvent({ type: "elected", leader: 2, epoch: 4 }, null);
    expect(election.leader).toBe(2);
    await turn();
    election.onEvent({ type: "elected", leader: 1, epoch: 5 }, null);
    await expect(led).resolves.toBe("done");
    expect(aborted).toEqual([true, false]);
  });

  test("is led by a function", async () => {
    const election = new LocalElection(played("election"));
    await expect(election.lead(undefined as never)).rejects.toThrow("expected the work of lead() to be a function");
  });
});

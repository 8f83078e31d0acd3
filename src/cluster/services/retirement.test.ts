/** Names that are used now and then, at members that put away what nobody uses, crash and start again; in virtual time. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lockServerOf } from "../../../test/services/lock-server.ts";
import { ExclusiveUse } from "../../../test/testing/exclusive-use.ts";
import type { NodeId } from "../../core/protocol.ts";
import { openJournal } from "../../runtime/journal/disk-journal.ts";
import { createLog } from "../../runtime/log.ts";
import { type ProcessTools, simulate, type World } from "../../testing/index.ts";
import { release } from "../../testing/release.ts";
import type { Grant, Leadership, Member, Mutex } from "./api.ts";
import type { Channel, Order } from "./channel-api.ts";
import { stackFor } from "./channel-stacks.ts";
import type { CoordinationError } from "./coordination-error.ts";

const IDS: readonly NodeId[] = [1, 2, 3];
/** What nobody uses is away by then, and what has been asked is answered. */
const A_WHILE = 3_000;
const NOBODY = [[], [], []];

const three = (): World => simulate({ members: IDS, seed: 1 });
const openIn = (world: World): string[][] =>
  IDS.map((id) =>
    world
      .member(id)
      .status()
      .instances.map(({ name }) => name)
      .sort(),
  );
const lockAt = (world: World, id: NodeId, name = "invoice"): Mutex =>
  world.member(id).mutex(name, { algorithm: "elected-server" });
const electionAt = (world: World, id: NodeId, name = "report", options = {}) =>
  world.member(id).election(name, { algorithm: "epoch-bully", options });

const untilLost = ({ signal }: Leadership): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

/** Members whose journals are looked at as they start: which of them have this slot. */
function withJournals(slot: string): { world: World; holdersAfterRestart(): Promise<NodeId[]> } {
  const holders = new Set<NodeId>();
  const world = simulate({
    members: IDS,
    seed: 1,
    release: () => ({
      ...release,
      async joinOn(platform, options) {
        const { id, dataDir = "" } = options;
        const owner = `member ${id} of coterie`;
        const journal = await openJournal(dataDir, { platform, owner, log: createLog(() => {}), onFailure() {} });
        if (journal.has(slot)) holders.add(id);
        await journal.close();
        return release.joinOn(platform, options);
      },
    }),
  });
  const holdersAfterRestart = async (): Promise<NodeId[]> => {
    holders.clear();
    for (const id of IDS) world.kill(id);
    await Promise.all(IDS.map((id) => world.restart(id)));
    return IDS.filter((id) => holders.has(id));
  };
  return { world, holdersAfterRestart };
}

describe("a lock that nobody uses any more", () => {
  test("is gone at all members, and stays so over a restart", () =>
    three().run(async (world) => {
      for (let number = 0; number < 20; number++) await lockAt(world, 2, `invoice-${number}`).use(() => {});
      expect(openIn(world)[1]).not.toEqual([]);
      await world.sleep(A_WHILE);
      expect(openIn(world)).toEqual(NOBODY);
      for (const id of IDS) world.kill(id);
      await Promise.all(IDS.map((id) => world.restart(id)));
      expect(openIn(world)).toEqual(NOBODY);
    }));

  test("is opened again by the next use, with a token that has grown", () =>
    three().run(async (world) => {
      const tokens: number[] = [];
      for (const id of [2, 3, 1, 2]) {
        await lockAt(world, id).use(({ token }) => void tokens.push(token));
        await world.sleep(A_WHILE);
        expect(openIn(world)).toEqual(NOBODY);
      }
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(tokens).toHaveLength(4);
    }));

  test("stays where it is held, and at the member that serves it, for as long as that takes", () =>
    three().run(async (world) => {
      const { id: server } = await lockServerOf(
        IDS.map((id) => world.member(id)),
        IDS.map((id) => lockAt(world, id)),
      );
      const [holder, other] = IDS.filter((id) => id !== server) as [NodeId, NodeId];
      await world.sleep(A_WHILE);
      expect(openIn(world)).toEqual(NOBODY);
      const held = await lockAt(world, holder).acquire();
      await world.sleep(3 * A_WHILE);
      expect(openIn(world)).toEqual(IDS.map((id) => (id === other ? [] : ["invoice"])));
      let next: Grant | null = null;
      void lockAt(world, other)
        .acquire()
        .then((grant) => (next = grant));
      await world.sleep(A_WHILE);
      expect({ isHeld: held.isHeld, next }).toEqual({ isHeld: true, next: null });
      await held.release();
      await world.sleep(20);
      expect(next).toMatchObject({ isHeld: true });
    }));

  test("costs one round trip when it is opened, once its member has served for a while, also if another member is cut off", () => {
    const oneWayMs = 20;
    const world = simulate({ members: IDS, seed: 1, network: { delayMs: oneWayMs } });
    return world.run(async () => {
      const { id: server } = await lockServerOf(
        IDS.map((id) => world.member(id)),
        IDS.map((id) => lockAt(world, id, "first")),
      );
      const [holder, other] = IDS.filter((id) => id !== server) as [NodeId, NodeId];
      await world.sleep(A_WHILE);
      world.partition([other], [server, holder]);
      const began = world.now();
      await lockAt(world, holder).acquire();
      expect(Math.floor((world.now() - began) / (2 * oneWayMs))).toBe(1);
    });
  });
});

describe("an election that nobody uses any more", () => {
  test("is gone, with its slot in the journal; its epochs go on growing, over a restart, too", () => {
    const { world, holdersAfterRestart } = withJournals("election/epoch-bully/report");
    return world.run(async () => {
      const tokens: number[] = [];
      for (const id of [1, 2, 3, 1]) {
        tokens.push(await electionAt(world, id).lead(({ token }) => token));
        expect(await holdersAfterRestart()).toEqual(IDS);
        await world.sleep(A_WHILE);
        expect(openIn(world)).toEqual(NOBODY);
        expect(await holdersAfterRestart()).toEqual([]);
      }
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(tokens).toHaveLength(4);
    });
  });

  test("stays at all that are bound to a leader, however long its lease, though it is cut off", () =>
    three().run(async (world) => {
      let known: Leadership | undefined;
      void electionAt(world, 1, "led", { leaseMs: 10_000 }).lead((leadership) => {
        known = leadership;
        return untilLost(leadership);
      });
      await world.sleep(A_WHILE);
      expect(known?.isHeld).toBe(true);
      world.partition([1], [2, 3]);
      await world.sleep(9_000);
      expect(known?.isHeld).toBe(true);
      for (const id of [2, 3]) expect(() => electionAt(world, id, "led")).toThrow("as they are in use already");
    }));

  test("stays where it has a leader, or somebody who watches", () =>
    three().run(async (world) => {
      const end = new AbortController();
      const led = electionAt(world, 1, "led").lead(untilLost, { signal: end.signal });
      const stop = new AbortController();
      const watching = electionAt(world, 2, "watched").watch({ signal: stop.signal });
      await world.sleep(2 * A_WHILE);
      expect(openIn(world)).toEqual([["led"], ["led", "watched"], ["led"]]);
      expect(electionAt(world, 3, "led").leader).toBe(1);
      stop.abort();
      end.abort();
      await expect(led).rejects.toThrow("was aborted");
      await watching.return?.();
      await world.sleep(A_WHILE);
      expect(openIn(world)).toEqual(NOBODY);
    }));
});

describe.each<{ order: Order; reliable: boolean }>([
  { order: "none", reliable: true },
  { order: "fifo", reliable: true },
  { order: "total", reliable: true },
  { order: "causal-total", reliable: true },
  { order: "fifo", reliable: false },
  { order: "total", reliable: false },
])("a channel of order $order, reliable: $reliable", (kind) => {
  const open = (world: World, id: NodeId): Channel<string> => world.member(id).channel<string>("room", kind);
  /** A program may open what its member is in already for ten seconds, and all are asked in turn. */
  const LONG = 16_000;
  const EVERYBODY = [["room"], ["room"], ["room"]];

  test("that all have closed is gone at all members, with its slot; opened again it goes on in later views", () => {
    const { algorithm } = stackFor(kind.order, kind.reliable, "tcp");
    const { world, holdersAfterRestart } = withJournals(`channel/${algorithm}/room`);
    return world.run(async () => {
      const views: (number | null)[] = [];
      for (const [id, other] of [
        [1, 2],
        [2, 3],
      ] as const) {
        const channels = [open(world, id), open(world, other)] as const;
        await world.sleep(1_000);
        const read = channels[1].read();
        views.push((await channels[0].send(`from ${id}`)).view);
        expect((await read.next()).value).toMatchObject({ from: id, payload: `from ${id}` });
        for (const each of channels) await each.close();
        await world.sleep(LONG);
        expect(openIn(world)).toEqual(NOBODY);
        expect(await holdersAfterRestart()).toEqual([]);
      }
      const [first = 0, second = 0] = views as number[];
      if (kind.reliable) expect(second).toBeGreaterThan(first);
    });
  });

  test("stays while any member uses it, or one is suspected", () =>
    three().run(async (world) => {
      const used = open(world, 3);
      await world.sleep(LONG);
      expect(openIn(world)).toEqual(EVERYBODY);
      await used.close();
      world.pause(2);
      await world.sleep(LONG);
      expect(world.member(1).status().instances).toMatchObject([{ name: "room" }]);
      world.resume(2);
      await world.sleep(LONG);
      expect(openIn(world)).toEqual(NOBODY);
    }));

  test("that a program opens while it is put away is opened anew, and carries what is sent on it", async () => {
    const oneWayMs = 50;
    /** The worlds go alike until a test does something else in one: so it is known when the members put the channel away. */
    const putAway = async (): Promise<World> => {
      const world = simulate({ members: IDS, seed: 1, network: { delayMs: oneWayMs } });
      await world.run(async () => {
        await open(world, 1).close();
        await world.sleep(1_000);
        expect(openIn(world)).toEqual(EVERYBODY);
      });
      return world;
    };
    const before = await putAway();
    while (before.member(2).status().instances.length > 0) await before.sleep(20);
    const world = await putAway();
    await world.run(async () => {
      await world.sleep(before.now() - oneWayMs - world.now());
      const channels = [open(world, 2), open(world, 3)] as const; // They have agreed, and have not heard yet that all have.
      await world.sleep(A_WHILE);
      const read = channels[1].read();
      const sent = channels[0].send("after all");
      expect((await read.next()).value).toMatchObject({ from: 2, payload: "after all" });
      await sent;
      expect(openIn(world)).toEqual(EVERYBODY);
    });
  });
});

test("a lock whose token goes round is put away by all at once, and its tokens go on growing", () => {
  const { world, holdersAfterRestart } = withJournals("mutex/epoch-token-ring/ring");
  return world.run(async () => {
    const tokens: number[] = [];
    for (const id of IDS) {
      await world
        .member(id)
        .mutex("ring", { algorithm: "epoch-token-ring" })
        .use(({ token }) => tokens.push(token));
      expect(await holdersAfterRestart()).toEqual(IDS);
      await world.sleep(2 * A_WHILE);
      expect(openIn(world)).toEqual(NOBODY);
      expect(await holdersAfterRestart()).toEqual([]);
    }
    expect(tokens).toHaveLength(3);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });
});

test.each(["bully", "chang-roberts", "ring"] as const)(
  "an election by %s is put away by all at once, and led again",
  (algorithm) =>
    three().run(async (world) => {
      for (let time = 0; time < 2; time++) {
        const led = await world
          .member(3)
          .election("textbook", { algorithm })
          .lead(() => "led");
        expect(led).toBe("led");
        await world.sleep(2 * A_WHILE);
        expect(openIn(world)).toEqual(NOBODY);
      }
    }),
);

interface Act {
  readonly does: "acquire" | "release" | "crash" | "pause" | "wait";
  readonly who: NodeId;
  readonly name: number;
  readonly forMs: number;
}

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.record({
    does: fc.constantFrom<Act["does"]>("acquire", "acquire", "release", "release", "wait", "crash", "pause"),
    who: fc.constantFrom(...IDS),
    name: fc.nat(2),
    forMs: fc.constantFrom(0, 1, 5, 20, 300, 600, 900, 1_500),
  }),
  { minLength: 5, maxLength: 40 },
);

/** What a script does to members, and what it has from them. */
class Script {
  readonly errors: string[] = [];
  readonly #exclusive: ExclusiveUse;
  readonly #tools = new Map<Member, ProcessTools>();
  readonly #grants: Grant[] = [];
  readonly world: World;

  constructor(seed: number) {
    this.world = simulate({ members: IDS, seed, program: (member, tools) => this.#tools.set(member, tools) });
    this.#exclusive = new ExclusiveUse(() => this.world.now());
  }

  async act({ does, who, name, forMs }: Act): Promise<void> {
    const { world } = this;
    if (does === "acquire" && world.isUp(who)) this.acquire(who, `name-${name}`);
    else if (does === "release") await this.release();
    else if (does === "pause") world.pause(who);
    else if (does === "crash" && world.isUp(who)) world.crash(who);
    else if (does === "crash") await world.restart(who);
    await world.sleep(forMs);
    if (does === "pause") world.resume(who);
  }

  acquire(id: NodeId, name: string): void {
    const member = this.world.member(id);
    const { now } = this.#tools.get(member) as ProcessTools;
    const runs = (): boolean => this.world.isUp(id) && this.world.member(id) === member;
    void lockAt(this.world, id, name)
      .acquire({ timeoutMs: 60_000 })
      .then((grant) => {
        this.#exclusive.enter(name, id, grant, now, runs);
        this.#grants.push(grant);
      })
      .catch((error: unknown) => {
        const { code, message } = error as CoordinationError;
        if (code !== "grant-lost") this.errors.push(message); // It came while its process stood still, and was over then.
      });
  }

  async release(): Promise<void> {
    for (const grant of this.#grants.splice(0)) await grant.release();
  }
}

test("whatever is used, put away, paused and restarted in whatever order: one at a time, tokens that grow, and all get what they wait for", async () => {
  const property = fc.asyncProperty(acts, fc.nat(), async (acts, seed) => {
    const script = new Script(seed);
    const { world } = script;
    await world.run(async () => {
      for (const act of acts) await script.act(act);
      for (const id of IDS) if (!world.isUp(id)) await world.restart(id);
      for (let round = 0; round < 12; round++) {
        await world.sleep(500);
        await script.release();
      }
      await world.sleep(A_WHILE);
      expect(script.errors).toEqual([]);
      expect(openIn(world)).toEqual(NOBODY);
    });
  });
  await fc.assert(property, { numRuns: 20 });
});

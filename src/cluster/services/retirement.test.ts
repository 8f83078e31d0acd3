/**
 * Names that are used now and then, at members that put away what nobody uses, crash, start again, and take turns in serving. Messages go
 * by lot, in order on each link; the clock is the test's.
 */
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import { type Random, random } from "../../core/random.ts";
import { newCounts } from "../../runtime/metrics.ts";
import type { Envelope, Setting } from "./algorithms.ts";
import type { Grant } from "./api.ts";
import type { Channel, Order } from "./channel-api.ts";
import { stackOf } from "./channel-stacks.ts";
import { ElectionHandle, MutexHandle } from "./handles.ts";
import { Instances } from "./instances.ts";
import type { LocalChannel } from "./local-channel.ts";
import type { LocalElection } from "./local-election.ts";
import type { LocalMutex } from "./local-mutex.ts";

beforeAll(() => void vi.useFakeTimers());
afterAll(() => void vi.useRealTimers());

const IDS: readonly NodeId[] = [1, 2, 3];
const RECEIPT = { id: () => "", lost: null };

type Message = Parameters<Instances["receive"]>[1];

interface Running {
  readonly instances: Instances;
  readonly grants: Set<Grant>;
}

class Cluster {
  readonly #running = new Map<NodeId, Running>();
  readonly #kept = new Map<NodeId, Map<string, unknown[]>>(IDS.map((id) => [id, new Map()]));
  #onTheWay: { from: NodeId; to: NodeId; envelope: Message }[] = [];
  #epoch = 0;
  #server: NodeId | null = null;
  /** By name: the token of the last grant, whoever has it, and who that was. */
  readonly #last = new Map<string, Grant>();
  granted = 0;
  readonly #idle: NodeId[] = [];

  start(id: NodeId): this {
    const instances = this.#made(id);
    this.#running.set(id, { instances, grants: new Set() });
    instances.restore();
    this.#send(id, { type: "hello" });
    return this;
  }

  crash(id: NodeId): void {
    this.#running.get(id)?.instances.stop();
    this.#running.delete(id);
    this.#onTheWay = this.#onTheWay.filter(({ from, to }) => from !== id && to !== id);
    if (this.#server === id) this.#server = null;
  }

  runs(id: NodeId): boolean {
    return this.#running.has(id);
  }

  /** Whoever served is told first that it does not any more, as its lease sees to it. */
  serve(id: NodeId): this {
    if (this.#server !== null) this.instances(this.#server).tell({ type: "deposed", epoch: this.#epoch } as Tagged);
    this.#epoch += 1;
    this.#server = id;
    for (const { instances } of this.#running.values()) for (const command of this.#news()) instances.tell(command);
    return this;
  }

  instances(id: NodeId): Instances {
    return (this.#running.get(id) as Running).instances;
  }

  openAt(id: NodeId): string[] {
    return this.instances(id).all.map(({ setting }) => setting.name);
  }

  slots(id: NodeId): string[] {
    return [...(this.#kept.get(id) as Map<string, unknown[]>).keys()];
  }

  /** Asks for the lock, and takes down what it gets. */
  acquire(id: NodeId, name: string): void {
    const { grants, instances } = this.#running.get(id) as Running;
    const handle = new MutexHandle(() => instances.use(mutex(name)).local as LocalMutex);
    const noted = (grant: Grant): void => {
      const before = this.#last.get(name);
      if (before?.isHeld === true) throw new Error(`two hold ${name}: ${before.token} and ${grant.token}`);
      if (before !== undefined && before.token >= grant.token)
        throw new Error(`${name} had ${before.token} before ${grant.token}`);
      this.#last.set(name, grant);
      this.granted += 1;
      grants.add(grant);
    };
    // What becomes of it if its member crashes, or the lock is lost, is not looked at.
    void handle.acquire({ timeoutMs: 60_000 }).then(noted, (error: unknown) => this.#noteError(error as Error));
  }

  async release(id: NodeId): Promise<void> {
    const { grants } = this.#running.get(id) as Running;
    for (const grant of grants) await grant.release();
    grants.clear();
  }

  readonly errors: string[] = [];

  #noteError(error: Error): void {
    if ((error as { code?: string }).code !== "grant-lost") this.errors.push(error.message);
  }

  /** All that is on its way arrives, in the order of each link, and time goes on. */
  async goOn(ms: number, lot: Random = random(1)): Promise<this> {
    for (let left = ms; left >= 0; left -= 10) {
      for (let most = 1_000; most > 0 && this.#onTheWay.length > 0; most--) {
        this.#deliverOne(lot);
        await Promise.resolve(); // The journal is as fast as that.
      }
      await vi.advanceTimersByTimeAsync(10);
    }
    return this;
  }

  deliver(lot: Random, most: number): void {
    for (let count = 0; count < most && this.#onTheWay.length > 0; count++) this.#deliverOne(lot);
  }

  /** How often that member has agreed to put something away. */
  saidIdle(id: NodeId): number {
    return this.#idle.filter((from) => from === id).length;
  }

  stop(): void {
    for (const id of IDS) if (this.runs(id)) this.crash(id);
  }

  #deliverOne(lot: Random): void {
    const { from, to } = lot.pick(this.#onTheWay);
    const first = this.#onTheWay.findIndex((other) => other.from === from && other.to === to);
    for (const { envelope } of this.#onTheWay.splice(first, 1))
      this.#running.get(to)?.instances.receive(from, envelope);
  }

  #send(from: NodeId, envelope: Message): void {
    for (const to of IDS) if (to !== from) this.#onTheWay.push({ from, to, envelope });
  }

  #news(): Tagged[] {
    return this.#server === null ? [] : [{ type: "elected", leader: this.#server, epoch: this.#epoch } as Tagged];
  }

  #made(self: NodeId): Instances {
    const send = (to: NodeId, envelope: Envelope) => {
      if ("content" in envelope && "body" in envelope.content && envelope.content.body.type === "idle")
        this.#idle.push(self);
      if (this.runs(self) && this.runs(to)) this.#onTheWay.push({ from: self, to, envelope: envelope as Message });
      return RECEIPT;
    };
    return new Instances({
      self,
      peers: IDS.filter((id) => id !== self),
      maxWaiters: 10,
      counts: newCounts(),
      maxInstances: 100,
      journal: memoryJournal(this.#kept.get(self)),
      log: { info() {}, warn() {}, error() {}, once() {} },
      news: () => this.#news(),
      send,
      insist: send,
      multicast: (members, envelope) => {
        for (const to of members) send(to, envelope);
      },
      publish() {},
      hasRoom: () => true,
      bounds: () => ({ payloadBytes: 60_000, batchBytes: 60_000 }),
      checkService() {},
      onExhausted: () => void this.serve(self),
      onRefused: (_setting, by, why) => void this.errors.push(`refused by ${by}: ${why}`),
      onFull() {},
      onStray() {},
      onFatal(error) {
        throw error;
      },
    });
  }
}

const once = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

const mutex = (name: string): Setting => ({ kind: "mutex", name, algorithm: "elected-server", options: "{}" });
const channel = (order: Order, reliable: boolean): Setting => ({
  kind: "channel",
  name: "room",
  algorithm: stackOf(order, reliable, "tcp").algorithm,
  options: '{"transport":"tcp"}',
});
const election = (name: string): Setting => ({ kind: "election", name, algorithm: "epoch-bully", options: "{}" });

let it: Cluster;
function three(): Cluster {
  it = new Cluster();
  for (const id of IDS) it.start(id);
  return it.serve(1);
}
afterEach(() => it.stop());

/** What nobody uses is away by then, and what has been asked is answered. */
const A_WHILE = 3_000;

describe("a lock that nobody uses any more", () => {
  test("is gone at all members, and has left nothing in the journal of any", async () => {
    const cluster = await three().goOn(A_WHILE);
    const before = IDS.map((id) => cluster.slots(id));
    for (let number = 0; number < 20; number++) {
      cluster.acquire(2, `invoice-${number}`);
      await cluster.goOn(20);
      await cluster.release(2);
    }
    expect(cluster.granted).toBe(20);
    await cluster.goOn(A_WHILE);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([[], [], []]);
    expect(IDS.map((id) => cluster.slots(id))).toEqual(before);
  });

  test("is opened again by whoever uses it, with a token that has grown", async () => {
    const cluster = await three().goOn(A_WHILE);
    for (const id of [2, 3, 1, 2]) {
      cluster.acquire(id, "invoice");
      await cluster.goOn(20); // It throws if the token has not.
      await cluster.release(id);
      await cluster.goOn(A_WHILE);
      expect(cluster.openAt(1)).toEqual([]);
    }
    expect(cluster.granted).toBe(4);
  });

  test("stays where it is held, and at the member that serves it, for as long as that takes", async () => {
    const cluster = await three().goOn(A_WHILE);
    cluster.acquire(2, "invoice");
    await cluster.goOn(3 * A_WHILE);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([["invoice"], ["invoice"], []]);
    cluster.acquire(3, "invoice");
    await cluster.goOn(A_WHILE);
    expect(cluster.granted).toBe(1);
    await cluster.release(2);
    await cluster.goOn(20);
    expect(cluster.granted).toBe(2);
  });

  test("makes room for others, however lately it was used", async () => {
    const cluster = await three().goOn(A_WHILE);
    for (let number = 0; number < 150; number++) {
      cluster.acquire(1, `invoice-${number}`);
      await cluster.goOn(0);
      await cluster.release(1);
    }
    expect(cluster.errors).toEqual([]);
    expect(cluster.granted).toBe(150);
  });

  test("costs one round trip when it is opened, once its member has served for a while, also if another member is cut off", async () => {
    const cluster = await three().goOn(A_WHILE);
    cluster.crash(3);
    cluster.acquire(2, "invoice");
    await cluster.goOn(0);
    expect(cluster.granted).toBe(1);
  });
});

describe("an election that nobody uses any more", () => {
  const handle = (cluster: Cluster, id: NodeId, name: string): ElectionHandle =>
    new ElectionHandle(
      () => cluster.instances(id).use(election(name)).local as LocalElection,
      () => (cluster.instances(id).find(election(name))?.local as LocalElection | undefined) ?? null,
    );

  test("is gone, with its slot in the journal; its epochs go on growing, over a restart, too", async () => {
    const cluster = three();
    const tokens: (number | null)[] = [];
    for (const id of [1, 2, 3, 1]) {
      const led = handle(cluster, id, "report").lead(({ token }) => token);
      await cluster.goOn(A_WHILE);
      tokens.push(await led);
      expect(IDS.map((each) => cluster.openAt(each))).toEqual([[], [], []]);
      for (const each of IDS) {
        expect(cluster.slots(each)).not.toContain("election/epoch-bully/report");
        cluster.crash(each);
        cluster.start(each);
      }
      await cluster.goOn(0);
    }
    expect(tokens).toEqual([1, 2, 3, 4]);
  });

  test("stays where it has a leader, or somebody who watches", async () => {
    const cluster = three();
    const end = new AbortController();
    const led = handle(cluster, 1, "led").lead(({ signal }) => once(signal), { signal: end.signal });
    const stop = new AbortController();
    const watching = handle(cluster, 2, "watched").watch({ signal: stop.signal });
    await cluster.goOn(2 * A_WHILE);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([["led"], ["watched", "led"], ["led"]]);
    expect(handle(cluster, 3, "led").leader).toBe(1);
    stop.abort();
    end.abort();
    await expect(led).rejects.toThrow("was aborted");
    await watching.return?.();
    await cluster.goOn(A_WHILE);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([[], [], []]);
  });
});

describe.each<{ order: Order; reliable: boolean }>([
  { order: "none", reliable: true },
  { order: "fifo", reliable: true },
  { order: "total", reliable: true },
  { order: "causal-total", reliable: true },
  { order: "fifo", reliable: false },
  { order: "total", reliable: false },
])("a channel of order $order, reliable: $reliable", ({ order, reliable }) => {
  const open = (cluster: Cluster, id: NodeId): Channel<string> =>
    (cluster.instances(id).use(channel(order, reliable)).local as LocalChannel).use<string>();
  /** A program may open what its member is in already for ten seconds, and all are asked in turn. */
  const LONG = 16_000;

  test("that all have closed is gone at all members, with its slot; opened again it goes on in later views", async () => {
    const cluster = three();
    const views: (number | null)[] = [];
    for (const [id, other] of [
      [1, 2],
      [3, 1],
      [2, 3],
    ] as const) {
      const channels = [open(cluster, id), open(cluster, other)] as const;
      await cluster.goOn(A_WHILE);
      const read = channels[1].read();
      const sent = channels[0].send(`from ${id}`);
      await cluster.goOn(500);
      views.push((await sent).view);
      expect((await read.next()).value).toMatchObject({ from: id, payload: `from ${id}` });
      for (const each of channels) await each.close();
      await cluster.goOn(LONG);
      expect(IDS.map((each) => cluster.openAt(each))).toEqual([[], [], []]);
      for (const each of IDS) expect(cluster.slots(each).filter((slot) => slot.startsWith("channel/"))).toEqual([]);
    }
    const [first = 0, second = 0, third = 0] = views as number[];
    if (reliable) expect(first < second && second < third).toBe(true);
  });

  test("stays while any member uses it, or one is suspected", async () => {
    const cluster = three();
    const used = open(cluster, 3);
    await cluster.goOn(LONG);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([["room"], ["room"], ["room"]]);
    await used.close();
    cluster.instances(1).tell({ type: "suspect", node: 2 } as Tagged);
    await cluster.goOn(LONG);
    expect(cluster.openAt(1)).toEqual(["room"]);
    cluster.instances(1).tell({ type: "restore", node: 2 } as Tagged);
    await cluster.goOn(LONG);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([[], [], []]);
  });

  test("that a program opens while it is put away is opened anew, and carries what is sent on it", async () => {
    const cluster = three();
    await open(cluster, 1).close();
    for (let waited = 0; cluster.saidIdle(2) === 0; waited += 10) {
      if (waited > LONG) throw new Error("nobody was asked");
      await cluster.goOn(0);
    }
    const channels = [open(cluster, 2), open(cluster, 3)] as const; // They have agreed, and have not heard yet that all have.
    await cluster.goOn(A_WHILE);
    const read = channels[1].read();
    const sent = channels[0].send("after all");
    await cluster.goOn(A_WHILE);
    expect((await read.next()).value).toMatchObject({ from: 2, payload: "after all" });
    await sent;
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([["room"], ["room"], ["room"]]);
  });
});

test("a lock whose token goes round is put away by all at once, and its tokens go on growing", async () => {
  const ring: Setting = { kind: "mutex", name: "ring", algorithm: "epoch-token-ring", options: "{}" };
  const cluster = three();
  const tokens: number[] = [];
  for (const id of IDS) {
    const handle = new MutexHandle(() => cluster.instances(id).use(ring).local as LocalMutex);
    const used = handle.use(({ token }) => tokens.push(token));
    await cluster.goOn(A_WHILE);
    await used;
    await cluster.goOn(2 * A_WHILE);
    expect(IDS.map((each) => cluster.openAt(each))).toEqual([[], [], []]);
    for (const each of IDS) expect(cluster.slots(each)).not.toContain("mutex/epoch-token-ring/ring");
  }
  expect(tokens).toHaveLength(3);
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
});

test.each(["bully", "chang-roberts", "ring"])(
  "an election by %s is put away by all at once, and led again",
  async (algorithm) => {
    const setting: Setting = { ...election("textbook"), algorithm };
    const cluster = three();
    for (let time = 0; time < 2; time++) {
      const open = (): LocalElection => cluster.instances(3).use(setting).local as LocalElection;
      const led = new ElectionHandle(open, () => null).lead(() => "led");
      await cluster.goOn(A_WHILE);
      expect(await led).toBe("led");
      await cluster.goOn(2 * A_WHILE);
      expect(IDS.map((each) => cluster.openAt(each))).toEqual([[], [], []]);
    }
  },
);

interface Act {
  readonly does: "acquire" | "release" | "crash" | "serve" | "wait";
  readonly who: number;
  readonly name: number;
  readonly delivered: number;
}

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.record({
    does: fc.constantFrom<Act["does"]>("acquire", "acquire", "release", "release", "wait", "crash", "serve"),
    who: fc.constantFrom(...IDS),
    name: fc.nat(2),
    delivered: fc.nat(12),
  }),
  { minLength: 5, maxLength: 40 },
);

test("whatever is used, put away, served and restarted in whatever order: one at a time, tokens that grow, and all get what they wait for", async () => {
  const property = fc.asyncProperty(acts, fc.nat(), async (script, seed) => {
    const lot = random(seed);
    const cluster = await three().goOn(0, lot);
    for (const { does, who, name, delivered } of script) {
      if (does === "acquire" && cluster.runs(who)) cluster.acquire(who, `name-${name}`);
      else if (does === "release" && cluster.runs(who)) await cluster.release(who);
      else if (does === "serve" && cluster.runs(who)) cluster.serve(who);
      else if (does === "crash" && cluster.runs(who)) cluster.crash(who);
      else if (does === "crash") cluster.start(who);
      else await vi.advanceTimersByTimeAsync(250 * delivered);
      cluster.deliver(lot, delivered);
      await vi.advanceTimersByTimeAsync(0);
    }
    for (const id of IDS) if (!cluster.runs(id)) cluster.start(id);
    cluster.serve(1);
    for (let round = 0; round < 12; round++) {
      await cluster.goOn(500, lot);
      for (const id of IDS) await cluster.release(id);
    }
    await cluster.goOn(A_WHILE, lot);
    expect(cluster.errors).toEqual([]);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([[], [], []]);
    cluster.stop();
  });
  await fc.assert(property, { numRuns: 40 });
});

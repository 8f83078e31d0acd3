/**
 * Names that are used now and then, at members that put away what nobody uses, crash, start again, and take turns in serving. Messages go
 * by lot, in order on each link; the clock is the test's.
 */
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Cluster, IDS } from "../../../test/services/bare-members.ts";
import type { NodeId } from "../../core/protocol.ts";
import { random } from "../../core/random.ts";
import type { Setting } from "./algorithms.ts";
import type { Channel, Order } from "./channel-api.ts";
import { stackFor } from "./channel-stacks.ts";
import { ElectionHandle, MutexHandle } from "./handles.ts";
import type { LocalChannel } from "./local-channel.ts";
import type { LocalElection } from "./local-election.ts";
import type { LocalMutex } from "./local-mutex.ts";

beforeAll(() => void vi.useFakeTimers());
afterAll(() => void vi.useRealTimers());

const once = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

const channel = (order: Order, reliable: boolean): Setting => ({
  kind: "channel",
  name: "room",
  algorithm: stackFor(order, reliable, "tcp").algorithm,
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

  test("is opened again by the next use, with a token that has grown", async () => {
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

  test("stays at all that are bound to a leader, however long its lease, though it is cut off", async () => {
    const cluster = three();
    const long: Setting = { ...election("led"), options: '{"leaseMs":10000}' };
    const open = (): LocalElection => cluster.instances(1).use(long).local as LocalElection;
    const led = new ElectionHandle(open, () => null).lead(({ signal }) => once(signal));
    led.catch(() => {});
    await cluster.goOn(A_WHILE);
    expect(open().leads).toBe(true);
    cluster.cutOff(1);
    await cluster.goOn(9_000);
    expect(open().leads).toBe(true);
    for (const id of [2, 3]) expect(() => handle(cluster, id, "led")).toThrow("as they are in use already");
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
    cluster.instances(1).tell({ type: "suspected", node: 2 });
    await cluster.goOn(LONG);
    expect(cluster.openAt(1)).toEqual(["room"]);
    cluster.instances(1).tell({ type: "restored", node: 2 });
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

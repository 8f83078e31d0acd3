/** What becomes of instances when members disagree on how one is run. The other member is played. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import { untraced } from "../../../test/services/untraced.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import { newCounts } from "../../runtime/metrics.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import { announcement, type Envelope, type Setting } from "./algorithms.ts";
import { MutexHandle } from "./handles.ts";
import { Instances } from "./instances.ts";
import type { LocalChannel } from "./local-channel.ts";
import type { LocalMutex } from "./local-mutex.ts";

const OTHER: NodeId = 2;
const THIRD: NodeId = 3;
const setting: Setting = { kind: "mutex", name: "report", algorithm: "elected-server", options: "{}" };
const otherwise: Setting = { ...setting, options: '{"leaseMs":10000}' };

/** By then what is in use has been remembered. */
const A_SWEEP_MS = 250;

afterEach(() => vi.useRealTimers());

const refusal = { type: "refuse", ...setting, why: "for a test" } as const;

/** Member 1 serves; member 2 says what it is made to say, and that it holds nothing whenever it is asked. */
function serving({
  kept = new Map<string, unknown[]>(),
  maxInstances = 10,
  stalls = false,
  others = [] as readonly NodeId[],
} = {}) {
  let epoch = 1;
  let serves = true;
  let isLate = false;
  const news = (): Tagged[] => {
    isLate = stalls;
    return serves ? [{ type: "elected", leader: 1, epoch } as Tagged] : [];
  };
  const sent: string[] = [];
  const refused: string[] = [];
  const full: string[] = [];
  const lines: string[] = [];
  const strays: string[] = [];
  const hear = (body: object): void =>
    instances.receive(OTHER, {
      type: "mutex",
      name: "report",
      content: { type: "elected-server", body: body as Tagged },
    });
  const send = (_to: NodeId, envelope: Envelope): SendResult => {
    const type = "content" in envelope && "body" in envelope.content ? envelope.content.body.type : envelope.type;
    sent.push(type);
    if (type === "recall") queueMicrotask(() => hear({ type: "empty", epoch }));
    return { id: () => "", lost: null };
  };
  const instances: Instances = new Instances({
    platform: realPlatform,
    self: 1,
    peers: [OTHER, ...others],
    maxWaiters: 10,
    counts: newCounts(),
    maxInstances,
    timing: "default",
    journal: memoryJournal(kept),
    log: { info() {}, warn() {}, error() {}, once: (_key, text) => void lines.push(text) },
    news,
    isOnLog: () => false,
    send,
    insist: (to, envelope) => ("content" in envelope ? { id: () => "", lost: null } : send(to, envelope)),
    multicast() {},
    trace: untraced,
    publish() {},
    hasRoom: () => true,
    bounds: () => ({ payloadBytes: 60_000, batchBytes: 60_000 }),
    /** If it stalls, that is found right after somebody has been told that it serves. */
    checkService() {
      if (!isLate || !serves) return;
      serves = false;
      instances.tell({ type: "deposed", epoch });
    },
    give() {},
    onExhausted() {
      instances.tell({ type: "deposed", epoch });
      epoch += 1;
      for (const command of news()) instances.tell(command);
    },
    onRefused: ({ name }) => void refused.push(name),
    onFull: ({ name }, by) => void full.push(`${name} at ${by}`),
    onStray: (_from, { name }) => void strays.push(name),
    onFatal(error) {
      throw error;
    },
  });
  const alone = (name = setting.name): MutexHandle =>
    new MutexHandle(() => instances.use({ ...setting, name }).local as LocalMutex);
  /** Announced by the other member, too. */
  const lock = (name = setting.name): MutexHandle => {
    const handle = alone(name);
    instances.receive(OTHER, announcement({ ...setting, name }));
    return handle;
  };
  /** It is wanted, and what this member does not come to have it is nothing to this test. */
  const want = (name?: string): void =>
    void lock(name)
      .acquire()
      .catch(() => {});
  instances.start();
  sent.length = 0;
  return { instances, sent, refused, full, lines, strays, hear, alone, lock, want };
}

describe("a name whose algorithm has other messages in another member's release", () => {
  test("is refused to that member alone; what both know alike goes on", async () => {
    const { instances, sent, refused, lock } = serving();
    const held = await lock().acquire();
    instances.receive(OTHER, announcement(setting));
    const election: Setting = { kind: "election", name: "scheduler", algorithm: "epoch-bully", options: "{}" };
    sent.length = 0;
    instances.receive(OTHER, { ...announcement(election), form: 7 });
    expect(sent).toEqual(["refuse"]);
    expect(refused).toEqual(["scheduler"]);
    expect(instances.all.map(({ setting: { name } }) => name)).toEqual(["report"]);
    expect(held.isHeld).toBe(true);
    instances.stop();
  });

  test("is refused by name if this release does not have the algorithm", () => {
    const { instances, refused, sent } = serving();
    instances.receive(OTHER, { ...announcement(setting), algorithm: "of-tomorrow", form: 7 });
    expect(sent).toEqual(["refuse"]);
    expect(refused).toEqual(["report"]);
    instances.stop();
  });

  test("brings messages that nobody here can read, and nobody is given", () => {
    const { instances } = serving();
    instances.use(setting);
    instances.receive(OTHER, announcement(setting));
    expect(() =>
      instances.receive(OTHER, { type: "mutex", name: "report", content: { type: "unknown" } }),
    ).not.toThrow();
    instances.stop();
  });
});

describe("a lock that another member runs otherwise", () => {
  test("is closed; and opened again, it has tokens that go on growing", async () => {
    const { instances, alone, lock } = serving();
    const before = await alone().use(({ token }) => token); // Once all that others could hold must have run out.
    instances.receive(OTHER, refusal);
    expect(instances.all).toEqual([]);
    expect(await lock().use(({ token }) => token)).toBeGreaterThan(before);
    instances.stop();
  });

  test("grants that member nothing: leases of different lengths do not keep anybody out", async () => {
    const { instances, sent, hear, lock } = serving();
    await lock().use(() => {});
    const request = { type: "request", epoch: 1, requestId: { run: 1, request: 1, round: 1 } };
    instances.receive(OTHER, announcement(otherwise));
    sent.length = 0;
    hear(request);
    expect(sent).toEqual([]);
    instances.receive(OTHER, announcement(setting));
    hear(request);
    expect(sent).toEqual(["grant"]);
    instances.stop();
  });
});

test("a lock that is opened as this member's service ends serves nobody", () => {
  const { instances, alone } = serving({ stalls: true });
  alone();
  expect(instances.all.map(({ status }) => status.role)).toEqual(["released"]);
  instances.stop();
});

describe("a name that this member ran differently from most", () => {
  const election: Setting = { kind: "election", name: "report", algorithm: "epoch-bully", options: "{}" };
  const slots = (kept: Map<string, unknown[]>): string[] => [...kept.keys()].filter((slot) => slot.endsWith("/report"));

  test("leaves no slot in the journal once it is run by another algorithm, and its promises in the floor", () => {
    vi.useFakeTimers();
    const kept = new Map<string, unknown[]>([["election/epoch-bully/report", [{ type: "promised", epoch: 7, to: 2 }]]]);
    const { instances } = serving({ kept });
    instances.use(election);
    expect(slots(kept)).toEqual(["election/epoch-bully/report"]);
    instances.receive(OTHER, { type: "refuse", ...election, why: "for a test" });
    expect(instances.all).toEqual([]);
    instances.receive(OTHER, announcement({ ...election, algorithm: "bully" }));
    expect(slots(kept)).toEqual([]);
    expect(kept.get("floor/epoch-bully")).toEqual([{ epoch: 7 }]);
    instances.stop();
  });

  test("is opened anew through the same handle once it is free again", async () => {
    const { instances, alone } = serving();
    const handle = alone();
    await handle.use(() => {});
    instances.receive(OTHER, refusal);
    expect(instances.all).toEqual([]);
    expect(await handle.use(() => "again")).toBe("again");
    instances.stop();
  });
});

describe("a lock that another member refuses", () => {
  test("is not opened again after a restart, unless it has been used since", () => {
    vi.useFakeTimers();
    const kept = new Map<string, unknown[]>();
    const first = serving({ kept });
    first.lock();
    first.instances.receive(OTHER, refusal);
    first.instances.stop();
    const second = serving({ kept });
    expect(second.instances.all).toEqual([]);
    second.want();
    vi.advanceTimersByTime(A_SWEEP_MS);
    second.instances.stop();
    const third = serving({ kept });
    expect(third.instances.all.map((known) => known.setting)).toEqual([setting]);
    third.instances.stop();
  });

  test("by this member itself is told once, and not after each restart", () => {
    const kept = new Map<string, unknown[]>([["instances", [{ ...setting, algorithm: "of a later version" }]]]);
    const first = serving({ kept });
    expect(first.refused).toEqual(["report"]);
    const second = serving({ kept });
    expect(second.refused).toEqual([]);
  });
});

describe("a member that has as many as it takes", () => {
  test("says that it is full, and refuses nothing", () => {
    const { instances, sent, refused, full, want } = serving({ maxInstances: 1 });
    want();
    sent.length = 0;
    instances.receive(OTHER, announcement({ ...setting, name: "invoice" }));
    expect({ sent, refused, full }).toEqual({ sent: ["full"], refused: [], full: ["invoice at 1"] });
    expect(() => instances.use({ ...setting, name: "invoice" })).toThrow("takes no more");
    instances.stop();
  });

  test("closes nothing at the others, nor for the time when it takes more", () => {
    vi.useFakeTimers();
    const kept = new Map<string, unknown[]>();
    const first = serving({ kept });
    first.want();
    first.want("invoice");
    vi.advanceTimersByTime(A_SWEEP_MS);
    first.instances.receive(OTHER, { type: "full", kind: "mutex", name: "report" });
    expect(first.instances.all).toHaveLength(2);
    expect(first.full).toEqual(["report at 2"]);
    first.instances.stop();
    const second = serving({ kept, maxInstances: 0 });
    expect(second.full).toEqual(["report at 1", "invoice at 1"]);
    second.instances.stop();
    const third = serving({ kept });
    expect(third.instances.all).toHaveLength(2);
    third.instances.stop();
  });
});

describe("options that no member of this program has", () => {
  const absurd: Setting[] = [
    { kind: "channel", name: "room", algorithm: "fifo", options: "{" },
    { kind: "channel", name: "room", algorithm: "fifo", options: "null" },
    { kind: "channel", name: "room", algorithm: "fifo", options: '{"transport":"quic"}' },
    { kind: "channel", name: "room", algorithm: "fifo", options: '{"transport": "tcp"}' },
    { kind: "channel", name: "room", algorithm: "fifo", options: '{"order":"fifo","transport":"tcp"}' },
    { kind: "channel", name: "room", algorithm: "elected-server", options: '{"transport":"tcp"}' },
    { ...setting, options: "{" },
    { ...setting, options: "[]" },
    { ...setting, options: '{"leaseMs":"x"}' },
    { ...setting, options: '{"leaseMs":1e999}' },
    { ...setting, algorithm: "fifo" },
  ];

  test.each(absurd)("are refused: $kind, $algorithm, $options", (each) => {
    const { instances, sent, refused } = serving();
    instances.receive(OTHER, announcement(each));
    expect({ sent, refused, all: instances.all }).toEqual({ sent: ["refuse"], refused: [each.name], all: [] });
    const restarted = serving({ kept: new Map([["instances", [each]]]) });
    expect({ refused: restarted.refused, all: restarted.instances.all }).toEqual({ refused: [each.name], all: [] });
  });
});

describe("messages of a channel that has not been announced", () => {
  const room: Setting = { kind: "channel", name: "room", algorithm: "basic-multicast", options: '{"transport":"tcp"}' };
  const content = (number: number, payload: string) => ({
    type: room.algorithm,
    body: { type: "multicast", number, payload } as Tagged,
  });
  const big = `1 1 ["${"x".repeat(60_000)}"]`;
  const hear = (instances: Instances, number: number, payload: string, from = OTHER): void =>
    instances.receive(from, { type: "channel", name: room.name, content: content(number, payload) });
  const announce = (instances: Instances, from = OTHER): void => instances.receive(from, announcement(room));
  const delivered = (instances: Instances): number => {
    announce(instances);
    return (instances.use(room).local as LocalChannel).status.delivered;
  };

  test("wait for their sender, also where it is open already", () => {
    const { instances, sent } = serving();
    const channel = instances.use(room).local as LocalChannel;
    sent.length = 0;
    hear(instances, 1, "1 1 [1]");
    expect({ sent, delivered: channel.status.delivered }).toEqual({ sent: ["open", "ask"], delivered: 0 });
    announce(instances);
    expect(channel.status.delivered).toBe(1);
    instances.stop();
  });

  test("wait for it, and no more of them than fit 4 MiB", () => {
    const { instances, sent, lines } = serving();
    for (let number = 1; number <= 100; number++) hear(instances, number, big);
    expect(sent).toEqual(["ask"]);
    expect(lines[0]).toMatch(
      /^69 messages of unknown elections, locks and channels wait, of 4\d{6} bytes: more are dropped$/,
    );
    expect(delivered(instances)).toBe(69);
    instances.stop();
  });

  test("are dropped, and that is said, if nobody announces it; room is there again for others", () => {
    vi.useFakeTimers();
    const { instances, sent, lines } = serving({ others: [THIRD] });
    for (let number = 1; number <= 3; number++) hear(instances, number, big);
    vi.advanceTimersByTime(5_000);
    expect(delivered(instances)).toBe(3);
    for (let number = 1; number <= 100; number++) hear(instances, number, big, THIRD);
    vi.advanceTimersByTime(5_000); // Those that came first were taken: this is not the end of the time of these.
    sent.length = 0;
    hear(instances, 101, "1 1 [1]", THIRD);
    expect(sent).toEqual([]);
    vi.advanceTimersByTime(5_000);
    expect(lines.at(-1)).toBe("dropped 70 messages of channel/room, since nobody has announced it within 10000 ms");
    for (let number = 1; number <= 100; number++) hear(instances, number, big, THIRD);
    announce(instances, THIRD);
    expect(delivered(instances)).toBe(3 + 69);
    instances.stop();
  });

  test("do not wait where there is no room for it", async () => {
    vi.useFakeTimers();
    const { instances, sent, full, lock } = serving({ maxInstances: 1 });
    const grant = await lock().acquire();
    hear(instances, 1, big);
    instances.receive(OTHER, announcement(room));
    expect(full).toEqual(["room at 1"]);
    sent.length = 0;
    for (let number = 2; number <= 100; number++) hear(instances, number, big);
    expect(sent).toEqual([]);
    await grant.release();
    instances.tell({ type: "elected", leader: 1, epoch: 1 }); // As it has been told before.
    vi.advanceTimersByTime(5 * A_SWEEP_MS); // Now there is.
    hear(instances, 101, "1 1 [1]");
    expect(sent).toEqual(["ask"]);
    expect(delivered(instances)).toBe(1);
    instances.stop();
  });

  test("by datagram are strays if it uses none, unless their sender runs it otherwise", () => {
    const { instances, strays } = serving();
    const byDatagram = (): void =>
      instances.receive(OTHER, { type: "channel", name: room.name, content: content(1, "1 1 [1]") }, "udp");
    instances.use(room);
    byDatagram();
    expect(strays).toEqual(["room"]);
    instances.receive(OTHER, announcement({ ...room, options: '{"transport":"udp"}' }));
    byDatagram();
    expect(strays).toEqual(["room"]);
    expect(delivered(instances)).toBe(0);
    instances.stop();
  });
});

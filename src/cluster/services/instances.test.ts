/** What becomes of instances when members disagree on how one is run. The other member is played. */
import { describe, expect, test } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import type { Envelope, Setting } from "./algorithms.ts";
import { Instances } from "./instances.ts";
import type { LocalMutex } from "./local-mutex.ts";

const OTHER: NodeId = 2;
const setting: Setting = { kind: "mutex", name: "report", algorithm: "elected-server", options: "{}" };
const otherwise: Setting = { ...setting, options: '{"leaseMs":10000}' };

/** Member 1 serves; member 2 says what it is made to say, and that it holds nothing whenever it is asked. */
function serving({ kept = new Map<string, unknown[]>(), maxInstances = 10 } = {}) {
  let epoch = 1;
  const news = (): Tagged[] => [{ type: "elected", leader: 1, epoch } as Tagged];
  const sent: string[] = [];
  const refused: string[] = [];
  const full: string[] = [];
  const hear = (body: object): void =>
    instances.receive(OTHER, {
      type: "mutex",
      name: "report",
      content: { type: "elected-server", body: body as Tagged },
    });
  const instances: Instances = new Instances({
    self: 1,
    peers: [OTHER],
    maxWaiters: 10,
    maxInstances,
    journal: memoryJournal(kept),
    log: { info() {}, warn() {}, error() {}, once() {} },
    news,
    send(_to: NodeId, envelope: Envelope) {
      const type = "content" in envelope ? envelope.content.body.type : envelope.type;
      sent.push(type);
      if (type === "recall") queueMicrotask(() => hear({ type: "empty", epoch }));
      return { id: () => "", lost: null };
    },
    insist: () => ({ id: () => "", lost: null }),
    multicast() {},
    hasRoom: () => true,
    bounds: () => ({ payloadBytes: 60_000, batchBytes: 60_000 }),
    checkService() {},
    onExhausted() {
      instances.tell({ type: "deposed", epoch } as Tagged);
      epoch += 1;
      for (const command of news()) instances.tell(command);
    },
    onRefused: ({ name }) => void refused.push(name),
    onFull: (_kind, name, by) => void full.push(`${name} at ${by}`),
    onFatal(error) {
      throw error;
    },
  });
  const lock = (): LocalMutex => instances.use(setting).local as LocalMutex;
  return { instances, sent, refused, full, hear, lock };
}

describe("a lock that another member runs otherwise", () => {
  test("is closed; and opened again, it has tokens that go on growing", async () => {
    const { instances, lock } = serving();
    const before = await lock().use(({ token }) => token);
    instances.receive(OTHER, { type: "refuse", kind: "mutex", name: "report", why: "for a test" });
    expect(instances.all).toEqual([]);
    expect(await lock().use(({ token }) => token)).toBeGreaterThan(before);
    instances.stop();
  });

  test("grants that member nothing: leases of different lengths do not keep anybody out", async () => {
    const { instances, sent, hear, lock } = serving();
    await lock().use(() => {});
    const request = { type: "request", epoch: 1, ticket: { run: 1, request: 1, round: 1 } };
    instances.receive(OTHER, { type: "open", ...otherwise });
    sent.length = 0;
    hear(request);
    expect(sent).toEqual([]);
    instances.receive(OTHER, { type: "open", ...setting });
    hear(request);
    expect(sent).toEqual(["grant"]);
    instances.stop();
  });
});

describe("a lock that another member refuses", () => {
  const refusal: Envelope = { type: "refuse", kind: "mutex", name: "report", why: "for a test" };

  test("is not opened again after a restart, unless it has been used since", () => {
    const kept = new Map<string, unknown[]>();
    const first = serving({ kept });
    first.lock();
    first.instances.receive(OTHER, refusal);
    first.instances.stop();
    const second = serving({ kept });
    second.instances.restore();
    expect(second.instances.all).toEqual([]);
    second.lock();
    second.instances.stop();
    const third = serving({ kept });
    third.instances.restore();
    expect(third.instances.all.map((known) => known.setting)).toEqual([setting]);
    third.instances.stop();
  });

  test("by this member itself is told once, and not after each restart", () => {
    const kept = new Map<string, unknown[]>([["instances", [{ ...setting, algorithm: "of a later version" }]]]);
    const first = serving({ kept });
    first.instances.restore();
    expect(first.refused).toEqual(["report"]);
    const second = serving({ kept });
    second.instances.restore();
    expect(second.refused).toEqual([]);
  });
});

describe("a member that has as many as it takes", () => {
  test("says that it is full, and refuses nothing", () => {
    const { instances, sent, refused, full, lock } = serving({ maxInstances: 1 });
    lock();
    sent.length = 0;
    instances.receive(OTHER, { type: "open", ...setting, name: "invoice" });
    expect({ sent, refused, full }).toEqual({ sent: ["full"], refused: [], full: ["invoice at 1"] });
    expect(() => instances.use({ ...setting, name: "invoice" })).toThrow("takes no more");
    instances.stop();
  });

  test("closes nothing at the others, nor for the time when it takes more", () => {
    const kept = new Map<string, unknown[]>();
    const first = serving({ kept });
    first.lock();
    first.instances.use({ ...setting, name: "invoice" });
    first.instances.receive(OTHER, { type: "full", kind: "mutex", name: "report" });
    expect(first.instances.all).toHaveLength(2);
    expect(first.full).toEqual(["report at 2"]);
    first.instances.stop();
    const second = serving({ kept, maxInstances: 1 });
    second.instances.restore();
    expect(second.full).toEqual(["invoice at 1"]);
    second.instances.stop();
    const third = serving({ kept });
    third.instances.restore();
    expect(third.instances.all).toHaveLength(2);
    third.instances.stop();
  });
});

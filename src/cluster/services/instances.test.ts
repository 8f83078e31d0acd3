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
function serving() {
  let epoch = 1;
  const news = (): Tagged[] => [{ type: "elected", leader: 1, epoch } as Tagged];
  const sent: string[] = [];
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
    maxInstances: 10,
    journal: memoryJournal(),
    log: { info() {}, warn() {}, error() {}, once() {} },
    news,
    send(_to: NodeId, envelope: Envelope) {
      const type = "content" in envelope ? envelope.content.body.type : envelope.type;
      sent.push(type);
      if (type === "recall") queueMicrotask(() => hear({ type: "empty", epoch }));
      return { id: () => "", lost: null };
    },
    checkService() {},
    onExhausted() {
      instances.tell({ type: "deposed", epoch } as Tagged);
      epoch += 1;
      for (const command of news()) instances.tell(command);
    },
    onRefused() {},
    onFatal(error) {
      throw error;
    },
  });
  const lock = (): LocalMutex => instances.use(setting).local as LocalMutex;
  return { instances, sent, hear, lock };
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

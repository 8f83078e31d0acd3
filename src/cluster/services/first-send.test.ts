/** How often the first send on a new channel waits for a disk: each wait is an `fdatasync`, of all members at once. */
import { afterEach, expect, test, vi } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import { untraced } from "../../../test/services/untraced.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Journal } from "../../runtime/journal/journal.ts";
import { newCounts } from "../../runtime/metrics.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { channelOptions, type Envelope, optionsText } from "./algorithms.ts";
import { orders, stackFor } from "./channel-stacks.ts";
import { Instances } from "./instances.ts";
import type { LocalChannel } from "./local-channel.ts";

/** More than any step of a program takes, and less than any wait for a member. */
const STEP_MS = 5;
const MOST_WAITS = 10;

afterEach(() => vi.useRealTimers());

/** Three members whose disks work at the same time, and only when they are told to. */
function members(floor: readonly object[]) {
  const ids = [1, 2, 3];
  const onTheirWay: { from: NodeId; to: NodeId; envelope: Envelope }[] = [];
  let writing: (() => void)[] = [];
  const journal = (): Journal => {
    const memory = memoryJournal(new Map([["floor/views", [...floor]]]));
    return {
      ...memory,
      slot: (name, shape) => ({ ...memory.slot(name, shape), whenDurable: (then) => void writing.push(then) }),
    };
  };
  const begin = (self: NodeId): Instances => {
    const send = (to: NodeId, envelope: Envelope) => {
      onTheirWay.push({ from: self, to, envelope: structuredClone(envelope) });
      return { id: () => "", lost: null };
    };
    return new Instances({
      platform: realPlatform,
      self,
      peers: ids.filter((id) => id !== self),
      maxWaiters: 10,
      counts: newCounts(),
      maxInstances: 10,
      timing: "default",
      journal: journal(),
      log: { info() {}, warn() {}, error() {}, once() {} },
      news: () => [],
      isOnLog: () => false,
      send,
      insist: send,
      multicast: (to, envelope) => to.forEach((each) => void send(each, envelope)),
      trace: untraced,
      publish() {},
      hasRoom: () => true,
      bounds: () => ({ payloadBytes: 60_000, batchBytes: 60_000 }),
      checkService() {},
      give() {},
      onExhausted() {},
      onRefused() {},
      onFull() {},
      onStray() {},
      onFatal(error) {
        throw error;
      },
    });
  };
  const all = new Map(ids.map((id) => [id, begin(id)]));
  return {
    all,
    /** Until all wait for their disks, or for nothing. */
    async settle(): Promise<void> {
      do {
        for (let next = onTheirWay.shift(); next !== undefined; next = onTheirWay.shift())
          all.get(next.to)?.receive(next.from, next.envelope as never);
        await vi.advanceTimersByTimeAsync(STEP_MS);
      } while (onTheirWay.length > 0);
    },
    write(): void {
      const written = writing;
      writing = [];
      for (const then of written) then();
    },
  };
}

const cases = orders.flatMap((order) => [1, 2, 3].map((sender) => ({ order, sender })));

test.each([
  ...cases.map((each) => ({ ...each, what: "where no channel has been put away", floor: [] })),
  ...cases.map((each) => ({ ...each, what: "after others were put away", floor: [{ incarnation: 3, view: 16 }] })),
])("$order, sent by $sender, $what: two writes, one after the other", async ({ order, sender, floor }) => {
  vi.useFakeTimers();
  const { all, settle, write } = members(floor);
  for (const instances of all.values()) instances.start();
  const { algorithm } = stackFor(order, true, "tcp");
  const options = optionsText(channelOptions("tcp", "default"));
  const { local } = (all.get(sender) as Instances).use({ kind: "channel", name: "room", algorithm, options });
  const channel = (local as LocalChannel).use<string>();
  let isSent = false;
  void channel.send("hello").then(() => {
    isSent = true;
  });
  let waits = 0;
  for (await settle(); !isSent && waits < MOST_WAITS; waits += 1) {
    write();
    await settle();
  }
  expect(waits).toBe(2);
  for (const instances of all.values()) instances.stop();
});

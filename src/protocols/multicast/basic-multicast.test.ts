import { describe, expect, it } from "vitest";
import { expectAllDelivered } from "../../../test/protocols/multicast-expectations.ts";
import { reaching } from "../../../test/protocols/reached.ts";
import { eachSize, range } from "../../../test/protocols/sizes.ts";
import { explore } from "../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../check/suite.ts";
import type { Protocol } from "../../core/protocol.ts";
import { step } from "../../core/step.ts";
import { type Simulation, simulation } from "../../sim/simulation.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { logLine } from "../../trace/log.ts";
import { type BasicMulticast, type BasicMulticastOptions, basicMulticast } from "./basic-multicast.ts";
import { delivery } from "./family/properties.ts";
import { type MulticastWithWorkload, multicastWithWorkload } from "./family/workload.ts";

type Used = MulticastWithWorkload<BasicMulticast>;

const send = (payload: string): BasicMulticast["command"] => ({ type: "send", payload });
const use = (messages: number): Used["command"] => ({ type: "workload", body: { type: "send", messages } });

/** Node 0 crashes within a step after sending `crashAfter` messages, unless that is 0. */
function stage(nodes: number, options: Partial<BasicMulticastOptions> = {}, crashAfter = 0) {
  const entries: TraceEntry<BasicMulticast>[] = [];
  const sim: Simulation<BasicMulticast> = simulation<BasicMulticast>({
    protocol: basicMulticast(options),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 10,
    trace(entry) {
      entries.push(entry);
      const sent = entries.filter(({ kind, node }) => kind === "send" && node === 0).length;
      if (entry.kind === "send" && entry.node === 0 && sent === crashAfter) sim.crash(0);
    },
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  entries.length = 0;
  return { sim, entries, story: () => entries.map((entry) => `${logLine(entry as TraceEntry)}\n`).join("") };
}

const idsAt = (sim: Simulation<BasicMulticast>, node: number): string[] => sim.events(node).map(({ id }) => id);

interface LinkConditions {
  readonly lossRate?: number;
  readonly duplicateRate?: number;
}

const plain = multicastWithWorkload(basicMulticast(), delivery);

/** Runs a group whose members send and record deliveries, over links that are unordered across senders. */
function correspondence(protocol: Protocol<Used>, link: LinkConditions, seed: number) {
  const sim = simulation<Used>({
    protocol,
    nodes: range(0, 4),
    seed,
    delayMs: [1, 40],
    link: { order: "none", ...link },
  });
  for (const node of range(0, 4)) sim.wake(node);
  return sim;
}

describe("basic multicast: the worked examples", () => {
  it("sends a message to each member; all deliver it, the sender at once", async () => {
    const { sim, story } = stage(4);
    sim.command(0, send("hello"));
    sim.run();
    for (const node of range(0, 3)) expect(idsAt(sim, node)).toEqual(["0.1"]);
    await expect(story()).toMatchFileSnapshot("stories/basic-multicast-undisturbed.txt");
  });

  it("the sender crashes midway: some nodes deliver the message, others never will", async () => {
    const { sim, story } = stage(4, {}, 2);
    sim.command(0, send("hello"));
    sim.run();
    expect(range(1, 3).map((node) => idsAt(sim, node))).toEqual([["0.1"], ["0.1"], []]);
    await expect(story()).toMatchFileSnapshot("stories/basic-multicast-half-way.txt");
  });

  it("acknowledged, over a lossy link: unacknowledged messages are sent again", async () => {
    const { sim, story } = stage(3, { acknowledges: true });
    sim.cut(0, 1);
    sim.cut(2, 0);
    sim.command(0, send("hello"));
    sim.run(20);
    expect(sim.world.state(0).open).toMatchObject([{ number: 1, missing: [1, 2], tries: 1 }]);
    sim.heal();
    sim.run();
    for (const node of range(0, 2)) expect(idsAt(sim, node)).toEqual(["0.1"]);
    expect(sim.world.state(0).open).toEqual([]);
    await expect(story()).toMatchFileSnapshot("stories/basic-multicast-acknowledged.txt");
  });
});

describe("basic multicast: what it costs", () => {
  eachSize(1, 64, "N = %i: N − 1 messages per multicast, and as many acknowledgements", (nodes) => {
    for (const acknowledges of [false, true]) {
      const { sim } = stage(nodes, { acknowledges });
      sim.command(0, send("hello"));
      sim.command(nodes - 1, send("hello"));
      sim.run();
      const each = acknowledges ? 2 * (nodes - 1) : nodes - 1;
      expect(sim.messages.total).toBe(2 * each);
      expect(basicMulticast({ acknowledges }).costs[0]?.messages(nodes)).toBe(each);
      expect(sim.messages.byType.acknowledgement ?? 0).toBe(acknowledges ? 2 * (nodes - 1) : 0);
    }
  });
});

describe("basic multicast: guarantees", () => {
  it.each([
    ["over reliable links", plain, {}],
    [
      "acknowledged, over links that lose and copy",
      multicastWithWorkload(basicMulticast({ acknowledges: true, maxTries: 100 }), delivery),
      { lossRate: 0.3, duplicateRate: 0.2 },
    ],
  ] as const)("%s: integrity, validity, agreement, for any senders and any delays", (_where, protocol, link) => {
    expectAllDelivered((seed) => correspondence(protocol, link, seed), { numRuns: 100 });
  });

  it("without acknowledgements one lost message breaks agreement, and one duplicate breaks integrity", () => {
    const lost = correspondence(plain, { lossRate: 1 }, 1);
    lost.command(0, use(1));
    lost.run();
    expect(lost.verdict().map(({ property }) => property)).toEqual(["workload: agreement"]);
    const copied = correspondence(plain, { duplicateRate: 1 }, 1);
    copied.command(0, use(1));
    copied.run();
    expect(copied.violations.map(({ property }) => property)).toEqual(["workload: integrity"]);
  });

  it.each(range(1, 6))("agreement fails if the sender crashes after %i of 7 messages", (sent) => {
    const { sim } = stage(8, {}, sent);
    sim.command(0, send("hello"));
    sim.run();
    expect(range(1, 7).filter((node) => idsAt(sim, node).length > 0)).toEqual(range(1, sent));
  });

  it("gives up a member that does not acknowledge after the maximum number of tries", () => {
    const { sim } = stage(3, { acknowledges: true, maxTries: 4 });
    sim.crash(2);
    sim.command(0, send("hello"));
    sim.run();
    expect(sim.messages.byType).toEqual({ multicast: 2 + 3, acknowledgement: 1 });
    expect([sim.isOver, sim.world.state(0).open]).toEqual([true, []]);
  });

  it("ignores an acknowledgement of a settled message, and a duplicate of a delivered one", () => {
    const protocol = basicMulticast({ acknowledges: true });
    const node = { self: 1, peers: [0] };
    const received = step(protocol, node, protocol.init(1, [0]), {
      kind: "receive",
      from: 0,
      message: { type: "multicast", number: 1, payload: "once" },
    });
    const again = step(protocol, node, received.state, {
      kind: "receive",
      from: 0,
      message: { type: "multicast", number: 1, payload: "once" },
    });
    expect(again.state).toEqual(received.state);
    expect(again.effects).toEqual([
      { kind: "send", to: 0, message: { type: "acknowledgement", number: 1 } }, // The first may have been lost.
    ]);
    const late = step(protocol, node, again.state, {
      kind: "receive",
      from: 0,
      message: { type: "acknowledgement", number: 9 },
    });
    expect([late.state, late.effects]).toEqual([again.state, []]);
  });

  it.each([])("rejects invalid options", (build, sentence) => {
    expect(build).toThrow(sentence);
  });
});

const exploring = (spec: Partial<SystemSpec>) =>
  reaching(explore(systemFor({ protocol: "basic-multicast", nodes: [0, 1, 2], ...spec })), "delivered");

describe("basic multicast: every run", () => {
  it.each([
    [{ network: "fifo" }, 1_008],
    [{ network: "bag" }, 1_008],
    [{ initiators: [0, 1], times: 2, network: "bag" }, 15_032],
  ] as const)("without faults keeps integrity, validity and agreement: %o", (spec, states) => {
    expect(exploring(spec)).toMatchObject({ verdict: "holds", states });
  });

  it.each([
    [[0, 1, 2], 3],
    [[0, 1, 2, 3], 4],
  ])("agreement fails with a crash in the middle of sending: %o", (nodes) => {
    const { verdict, property, path } = exploring({ nodes, initiators: [0], crashes: 1, withinStep: true });
    expect([verdict, property?.name]).toEqual(["violated", "workload: agreement"]);
    expect(
      path.map(({ move, sends }) => [move.node, move.kind, move.crashesWithinStep ?? false, sends.length]),
    ).toEqual([
      [0, "command", true, 1],
      [1, "receive", false, 0],
    ]);
  });

  it("agreement holds if crashes occur between steps only: all messages of one step are sent", () => {
    expect(exploring({ initiators: [0], crashes: 1 })).toMatchObject({ verdict: "holds", states: 16 });
  });

  it.each([
    [{ losses: 1 }, "workload: agreement"],
    [{ duplications: 1 }, "workload: integrity"],
  ] as const)("a property is violated with %o", (faults, broken) => {
    const { property, path } = exploring({ initiators: [0], ...faults });
    expect(property?.name).toBe(broken);
    expect(path.length).toBeLessThanOrEqual(3);
  });

  it("tolerates loss and duplication with acknowledgements", () => {
    const variant = { variant: "acknowledged", timers: "quiet", initiators: [0], network: "bag" } as const;
    expect(exploring({ ...variant, losses: 2, duplications: 1 })).toMatchObject({ verdict: "holds", states: 203 });
  });
});

import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { verdictsOf } from "../../../experiment/scenario/result.ts";
import { simulation } from "../../../sim/simulation.ts";
import { contexts, withContext } from "../../contexts.ts";
import { ENTRIES, fence, type Mutex, type MutexWithWorkload, mutexWithWorkload } from "../family/workload.ts";
import { lockService } from "./lock-service.ts";
import type { LockService } from "./server.ts";

/**
 * Explores lock services without workloads and without an election. Node 0 serves in epoch 1. When it crashes, all
 * nodes are notified that node 1 serves in epoch 2. Each node makes one request per run. It may leave at any time,
 * inside or waiting.
 */
function exploreServices(
  names: readonly string[],
  more: Partial<ExploreOptions<LockService>> = {},
  plain = lockService(),
) {
  const protocol: Protocol<LockService> = {
    ...plain,
    init(self, peers) {
      const service = { grants: 0, awaited: [], isRecalling: false, holder: null, queue: [] };
      return { ...plain.init(self, peers), epoch: 1, server: 0, service: self === 0 ? service : null };
    },
    // Only a restarted node calls it.
    start: (state) => void Object.assign(state, { epoch: 0, server: null, service: null }),
  };
  return reaching(
    explore<LockService>({
      protocol,
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "idle",
      properties: [...protocol.properties, tokensGrow].filter(({ name }) => names.includes(name)),
      crashNotification: (crashed) => (crashed === 0 ? elected(1, 2) : elected(0, 1)),
      commands({ epoch, section, requestId }, node) {
        if (epoch === 0) return [node === 0 ? elected(1, 2) : elected(0, 1)];
        if (section !== "released") return [{ type: "exit" }];
        return requestId.request === 0 ? [{ type: "enter" }] : [];
      },
      ...more,
    }),
    "entered",
  );
}

const elected = (leader: number, epoch: number): LockService["command"] => ({ type: "elected", leader, epoch });

const tokensGrow: Property<LockService> = {
  name: "tokens grow",
  claim: "a node that is inside has the highest token",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every(
      (inside) =>
        state(inside).section !== "held" ||
        alive.every((node) => node === inside || state(node).token < state(inside).token),
    ),
};

describe("elected server: every run", () => {
  type More = Partial<ExploreOptions<LockService>>;
  const safe = ["ME1 safety", "tokens are unique", "tokens grow"];
  const title = "3 nodes, with up to %s at any time: tokens are unique";

  it.each<[string, More, number]>([
    ["in any order", { network: "bag" }, 1_505],
    ["and one crashes", { crashes: 1 }, 10_092],
    [
      "and a message is lost, and one arrives twice, in any order",
      { losses: 1, duplications: 1, network: "bag" },
      21_863,
    ],
  ])("3 nodes that enter, leave or withdraw, %s: ME1 holds, tokens are unique and grow", (_what, more, states) => {
    const found = exploreServices(safe, { timers: "never", ...more });
    expect([found.verdict, found.states]).toEqual(["holds", states]);
  });

  it("the same holds if a node crashes and recovers", { tags: ["long"] }, () => {
    const found = exploreServices(safe, { timers: "never", crashes: 1, recoveries: 1 });
    expect([found.verdict, found.states]).toEqual(["holds", 172_423]);
  });

  it.each<[string, More, number]>([["a time-out and a loss", { maxTimeouts: 1, losses: 1 }, 20_674]])(
    title,
    (_what, ...run) => areUnique(...run),
  );

  it.each<[string, More, number]>([
    ["two time-outs", { maxTimeouts: 2 }, 59_873],
    ["a time-out and a crash", { maxTimeouts: 1, crashes: 1 }, 94_802],
  ])(title, { tags: ["long"] }, (_what, ...run) => areUnique(...run));

  function areUnique(more: More, states: number): void {
    const found = exploreServices(["tokens are unique"], more);
    expect([found.verdict, found.path.length, found.states]).toEqual(["unknown", 0, states]); // Runs are cut off.
  }

  it("detects a server that continues counting in epoch 1 and reuses the token of a crashed node", () => {
    const inEpoch1 = contexts((ctx) => ({
      send(to, message) {
        const said = message as LockService["message"];
        if (said.type === "grant") said.token = fence(1, said.token % ENTRIES);
        ctx.send(to, said);
      },
    }));
    const forgetful: Protocol<LockService> = withContext(lockService(), inEpoch1);
    const { verdict, property, path } = exploreServices(
      ["tokens are unique"],
      {
        timers: "never",
        crashes: 1,
        recoveries: 1,
        commands({ epoch, requestId }, node) {
          if (epoch === 0) return [elected(1, 2)];
          return node !== 1 && requestId.request === 0 ? [{ type: "enter" }] : [];
        },
      },
      forgetful,
    );
    expect([verdict, property?.name]).toEqual(["violated", "tokens are unique"]);
    // No live node remembers the other entry.
    expect(path.at(-1)?.states.filter((state) => state?.token === fence(1, 1))).toHaveLength(1);
  });

  it("with arbitrary timers, a lease outlasts the server's reclaim timeout, and two nodes are inside", () => {
    const { verdict, property } = exploreServices(["ME1 safety"], { maxTimeouts: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "ME1 safety"]);
  });
});

/** Lock services with workloads, where node 0 serves forever. */
function servedBy0(drops: (message: Extract<LockService["message"], { type: "request" }>) => boolean) {
  const plain = lockService();
  return mutexWithWorkload(
    () =>
      ({
        ...plain,
        init(self, peers) {
          const service = { grants: 0, awaited: [], isRecalling: false, holder: null, queue: [] };
          return { ...plain.init(self, peers), epoch: 1, server: 0, service: self === 0 ? service : null };
        },
        receive: {
          ...plain.receive,
          request(state, from, message, ctx) {
            if (!drops(message)) plain.receive.request(state, from, message, ctx);
          },
        },
      }) satisfies Protocol<LockService> as unknown as Protocol<Mutex>,
  );
}

const use = (entries: number): MutexWithWorkload<Mutex>["command"] => ({
  type: "workload",
  body: { type: "use", entries },
});

describe("elected server: ME2, although waiting nodes repeat their requests forever", () => {
  const all = () => false;
  const everySecond = ({ requestId }: { requestId: { request: number } }) => requestId.request % 2 === 0;

  it.each([
    ["a server that receives every request: all enter", all, "holds", null],
    ["a server that drops every second request: one round of retries", everySecond, "violated", "ME2 no starvation"],
  ] as const)("explored: %s", (_what, drops, verdict, name) => {
    const protocol = servedBy0(drops);
    const found = explore<MutexWithWorkload<Mutex>>({
      protocol,
      nodes: [0, 1],
      network: "fifo",
      timers: "quiet",
      begin: "idle",
      rounds: ["round", "confirmed"],
      properties: protocol.properties.filter(({ when }) => when === "leadsTo"),
      asks: (node: NodeId) => (node === 0 ? [] : [use(2)]),
    });
    expect([found.verdict, found.property?.name ?? null]).toEqual([verdict, name]);
    // In the loop, nodes only send requests and let them expire.
    const round = found.path.slice(found.loop ?? found.path.length).map(({ move }) => move.kind);
    expect(new Set(round)).toEqual(new Set(verdict === "holds" ? [] : ["receive", "timeout"]));
  });

  it.each([
    ["a server that receives every request", all, "holds"],
    ["a server that drops every second request", everySecond, "violated"],
  ] as const)("simulated: %s", (_what, drops, verdict) => {
    const protocol = servedBy0(drops);
    const sim = simulation({ protocol, nodes: [0, 1, 2], seed: 1, delayMs: [1, 20] });
    for (const node of [0, 1, 2]) sim.wake(node);
    for (const node of [1, 2]) sim.command(node, use(2));
    sim.run(30_000);
    const said = verdictsOf(sim, protocol.properties, true);
    expect(said.find(({ name }) => name === "ME2 no starvation")?.verdict).toBe(verdict);
  });
});

/**
 * Leases in timed exploration: they hold while clocks drift by no more than stated, and are violated beyond it, or if a
 * process pauses.
 */
import { describe, expect, it } from "vitest";
import { type Exploration, type ExploreOptions, explore } from "../../../src/check/explore.ts";
import type { Protocol } from "../../../src/core/protocol.ts";
import { type LockServiceOptions, lockService } from "../../../src/protocols/mutex/elected-server/lock-service.ts";
import type { LockService } from "../../../src/protocols/mutex/elected-server/server.ts";
import { reaching } from "../reached.ts";

const DRIFT = 0.25;

/** Returns a lock service where node 0 serves in epoch 1. */
function servedBy0(options: Partial<LockServiceOptions>): Protocol<LockService> {
  const plain = lockService(options);
  const service = { grants: 0, awaited: [], isRecalling: false, holder: null, queue: [] };
  return {
    ...plain,
    init: (self, peers) => ({
      ...plain.init(self, peers),
      epoch: 1,
      server: 0,
      service: self === 0 ? structuredClone(service) : null,
    }),
  };
}

interface Settings extends Partial<ExploreOptions<LockService>> {
  readonly count?: number;
  readonly options?: Partial<LockServiceOptions>;
  /** The actual drift of all clocks. */
  readonly drift?: number;
  readonly maxDelayMs?: number;
}

/**
 * Explores nodes that each request the lock once and keep it as long as they can. A lease is 300 ms. With a drift of
 * 0.25, it lasts at most 400 ms, and the server waits for at least that long.
 */
function locks({
  count = 2,
  options = {},
  drift = DRIFT,
  maxDelayMs = 100,
  ...more
}: Settings): Exploration<LockService> {
  const protocol = servedBy0({ leaseMs: 300, renewMs: 250, drift: DRIFT, ...options });
  const found = explore<LockService>({
    protocol,
    nodes: Array.from({ length: count }, (_, node) => node),
    network: "fifo",
    timers: "timed",
    begin: "idle",
    rounds: ["round", "confirmed"],
    properties: protocol.properties.filter(({ name }) => name === "ME1 safety" || name === "tokens are unique"),
    asks: () => [{ type: "enter" }],
    ...more,
    time: { unitMs: 100, delayMs: [100, maxDelayMs], drift, ...more.time },
  });
  return reaching(found, "entered", "lost", "timeout reclaim");
}

/** The states if all properties hold, or the violated property. */
const outcome = ({ verdict, property, states }: Exploration<LockService>) => [verdict, property?.name ?? states];

const run = ({ path }: Exploration<LockService>): string[] => {
  let nowMs = 0;
  return path.map(({ move, events }) => {
    nowMs += move.afterMs ?? 0;
    const what = "message" in move ? ` ${move.message.type}` : "timer" in move ? ` ${move.timer}` : "";
    const emitted = events.map(({ type }) => `, ${type}`).join("");
    return `${nowMs} ms: ${move.node} ${move.kind}${what}${emitted}`;
  });
};

describe("elected-server: a lease of 300 ms, for clocks that drift by up to 0.25", () => {
  it("2 nodes, clocks within the drift: one node inside", () => {
    expect(outcome(locks({}))).toEqual(["holds", 4_366]);
  });

  it("2 nodes, exact clocks, delays of up to 200 ms and a lost message: one node inside", { tags: ["long"] }, () => {
    expect(outcome(locks({ drift: 0, maxDelayMs: 200, losses: 1 }))).toEqual(["holds", 55_230]);
  });

  it("2 nodes, clocks within the drift and a lost message: one node inside", { tags: ["long"] }, () => {
    expect(outcome(locks({ losses: 1 }))).toEqual(["holds", 19_097]);
  });

  it("3 nodes, exact clocks: one node inside", { tags: ["larger"] }, () => {
    expect(outcome(locks({ count: 3, drift: 0 }))).toEqual(["holds", 457_076]);
  });

  it("clocks beyond the drift: the server reclaims a lease that its holder still has", () => {
    const found = locks({ drift: 0.4 });
    expect(outcome(found)).toEqual(["violated", "ME1 safety"]);
    expect(run(found)).toEqual([
      "0 ms: 1 command",
      "100 ms: 0 receive request",
      "200 ms: 0 command",
      "200 ms: 1 receive grant, entered, confirmed",
      "400 ms: 0 timeout reclaim, entered, confirmed",
    ]);
  });

  it("a server without a margin for drift reclaims too early, although clocks are within the drift", () => {
    const found = locks({ options: { drift: 0 } });
    expect(outcome(found)).toEqual(["violated", "ME1 safety"]);
  });

  it("a paused holder does not learn that its lease has expired", () => {
    const found = locks({ drift: 0, pauses: 1, time: { unitMs: 100, delayMs: [100, 100], pauseMs: 400 } });
    expect(outcome(found)).toEqual(["violated", "ME1 safety"]);
  });
});

/**
 * Checks that random runs of the coordination service find every seeded bug, and nothing without one.
 *
 * @module-tag long
 */
import { describe, expect, it } from "vitest";
import { checkLinearizability } from "../../src/history/check.ts";
import { coordinationService } from "../../src/protocols/service/coordination-service/coordination-service.ts";
import { grantRun } from "../protocols/service/grant-runs.ts";
import { modelRun } from "../protocols/service/model-runs.ts";
import { oneReplica, type StateMachine } from "../protocols/service/one-replica.ts";
import { stage } from "../protocols/service/stage.ts";
import { store } from "../protocols/service/store-model.ts";
import { swarm } from "../protocols/service/swarm.ts";
import { type ServiceBug, serviceBugs } from "./service.ts";

const FOLDER = "../../src/protocols/service/coordination-service";
const SEEDS = 100;

interface Subject {
  protocol: typeof coordinationService;
  machine: StateMachine;
}

const withBug = async (bug: string): Promise<Subject> => ({
  protocol: (await import(/* @vite-ignore */ `${FOLDER}/coordination-service.ts?bug=${bug}`)).coordinationService,
  machine: await import(/* @vite-ignore */ `${FOLDER}/apply.ts?bug=${bug}`),
});
const withoutBug = async (): Promise<Subject> => ({
  protocol: coordinationService,
  machine: await import("../../src/protocols/service/coordination-service/apply.ts"),
});

/** Returns the violation that a run with this seed finds, or null. */
const looks: Readonly<Record<ServiceBug["by"], (subject: Subject, seed: number) => string | null>> = {
  adversity({ protocol }, seed) {
    const { violations, gaps, history, unanswered, lostWrongly, keptWrongly } = swarm({ seed, protocol });
    const wrong = [...violations, ...gaps];
    if (wrong[0] !== undefined) return wrong[0];
    if (unanswered + lostWrongly + keptWrongly > 0) return "not answered, or sessions lost or kept wrongly";
    return checkLinearizability(history, store()).verdict === "violated" ? "not linearizable" : null;
  },
  operations: ({ machine }, seed) =>
    grantRun(seed, 200, machine) ?? modelRun(seed, 100, machine) ?? lateExpiry(machine),
  "slow link": (subject, seed) => (seed > 20 ? null : heldTwice(subject, seed)),
  failover({ protocol }, seed) {
    if (seed > 5) return null;
    const { submit, sim, run, events, leader } = stage({ seed, protocol });
    const old = leader();
    submit((old + 1) % 3, { type: "add", name: "n", by: 1 });
    sim.crash(old);
    run(6_000);
    return events.some(({ type, node }) => type === "lost" && node !== old) ? "a session is lost" : null;
  },
};

/** Runs with slow messages from the leader to a lock holder. At some time the holder is cut off. */
function heldTwice({ protocol }: Subject, seed: number): string | null {
  const session = { leaseMs: 1_000, renewMs: 250, sweepMs: 200, retryMs: 200 };
  const { submit, sim, run, leader } = stage({ seed: 1, protocol, service: { session } });
  const [first, holder, next] = [leader(), (leader() + 1) % 3, (leader() + 2) % 3] as const;
  const rest = { name: "l", wait: 1, mode: "exclusive", permits: 1, capacity: 1, note: "" } as const;
  for (const node of [holder, next]) submit(node, { type: "acquire", ...rest });
  sim.setLink(first, holder, { delay: 600 });
  run(25 * seed);
  for (const other of [first, next]) sim.cut(holder, other);
  const property = protocol({ session }).properties.find(({ name }) => name === "no lock held twice");
  for (let at = 0; at < 4_000; at += 5) {
    run(5);
    if (property?.when === "always" && !property.holds(sim.world)) return property.name;
  }
  return null;
}

function lateExpiry(machine: StateMachine): string | null {
  const { open, propose, data } = oneReplica({}, {}, machine);
  const session = open(0);
  const seen = data.sessions[0]?.seen ?? 0;
  propose(0, { type: "operations", life: 1, round: 2, acknowledged: 1, first: 2, operations: [] });
  propose(1, { type: "expire", session, seen });
  return data.sessions.length === 0 ? "a session that sent a keep-alive expires" : null;
}

function look(subject: Subject, by: ServiceBug["by"], seeds: number): string | null {
  for (let seed = 1; seed <= seeds; seed++) {
    const wrong = looks[by](subject, seed);
    if (wrong !== null) return `seed ${seed}: ${wrong}`;
  }
  return null;
}

describe("seeded bugs of the coordination service", () => {
  it.each(serviceBugs)("$name: $summary", async ({ name, by }) => {
    expect(look(await withBug(name), by, SEEDS)).not.toBeNull();
  });

  it.each(["operations", "failover", "slow link", "adversity"] as const)(
    "finds nothing without a bug, %s",
    async (by) => {
      expect(look(await withoutBug(), by, by === "adversity" ? 10 : SEEDS)).toBeNull();
    },
  );
});

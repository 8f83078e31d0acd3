/**
 * Checks that searches of the state transfer find every seeded bug, and nothing without one.
 *
 * @module-tag long
 */
import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/explore.ts";
import type { Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { random } from "../../src/core/random.ts";
import { type Shape, text } from "../../src/core/shape.ts";
import { isis } from "../../src/protocols/multicast/isis.ts";
import { replica, withReplica } from "../../src/protocols/multicast/parts/state-transfer/replica.ts";
import * as sound from "../../src/protocols/multicast/parts/state-transfer/state-transfer.ts";
import type { Entry } from "../../src/protocols/multicast/parts/state-transfer/vocabulary.ts";
import { befall, recover } from "../protocols/group-adversity.ts";
import { anotherReadsLater, range, sourceCrashes, stateStage } from "../protocols/state-stage.ts";
import { type StateTransferBug, stateTransferBugs } from "./channels.ts";

type Subject = Pick<typeof sound, "isisWithState" | "stateTransfer">;

const withBug = (bug: string): Promise<Subject> =>
  import(/* @vite-ignore */ `../../src/protocols/multicast/parts/state-transfer/state-transfer.ts?bug=${bug}`);

const SEEDS = 60;

/** Creates three members in view 1. None of them reads yet. */
function group({ isisWithState }: Subject) {
  const stage = stateStage(isisWithState, 3, { delayMs: 10 });
  for (const node of range(3)) stage.sim.start(node);
  stage.sim.run(1_000);
  return stage;
}

/** Returns the first violation after the run has ended, or null. */
const wrongIn = ({ sim }: ReturnType<typeof group>): string | null =>
  [...sim.violations, ...sim.verdict()].map(({ property }) => property)[0] ?? null;

const looks: Readonly<Record<StateTransferBug["by"], (subject: Subject) => string | null>> = {
  explored({ stateTransfer }) {
    const order = (payload: Shape<Entry<string>>) => isis({}, payload) as never as Protocol<Vocabulary>;
    const multicast = () => stateTransfer(order, text(100), "inside");
    const system = { parts: { multicast }, wires: {}, algorithm: "multicast" };
    const runs = [
      [["read", "send"], ["read"]],
      [["read", "stop"], ["read"]],
      [
        ["read", "send", "stop"],
        ["read", "send"],
      ],
    ];
    for (const does of runs) {
      const found = explore<Vocabulary>({
        protocol: withReplica(system, () => replica("inside"))(),
        nodes: [0, 1],
        network: "fifo",
        timers: "quiet",
        begin: "idle",
        asks: (node) => (does[node] ?? []).map((type) => ({ type: "replica", body: { type } })) as never,
      });
      if (found.verdict === "violated") return found.property?.name ?? "violated";
    }
    return null;
  },
  "left out"(subject) {
    const stage = group(subject);
    const { sim, use, send } = stage;
    for (const node of range(3)) use(node, "read");
    sim.run(1_200);
    sim.partition([[0], [1, 2]]);
    sim.run(3_000);
    send(1);
    sim.run(3_500);
    sim.heal();
    sim.run(8_000);
    return wrongIn(stage);
  },
  "source crashes"(subject) {
    const stage = group(subject);
    const { sim, use, send } = stage;
    for (const node of [0, 1]) use(node, "read");
    sim.run(1_200);
    send(1);
    sim.run(1_300);
    sim.cut(0, 2);
    use(2, "read");
    sim.run(1_335);
    sim.crash(0);
    sim.run(4_000);
    return wrongIn(stage);
  },
  "another waits"({ isisWithState }) {
    return wrongIn(sourceCrashes(isisWithState, anotherReadsLater));
  },
  "random runs"(subject) {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const wrong = wrongIn(randomRun(subject, seed));
      if (wrong !== null) return `seed ${seed}: ${wrong}`;
    }
    return null;
  },
};

/** Runs members that read and stop reading, send, crash, restart at once or later, and are cut off. */
function randomRun({ isisWithState }: Subject, seed: number): ReturnType<typeof stateStage> {
  const draw = random(seed);
  const nodes = 3 + draw.below(2);
  const all = range(nodes);
  const stage = stateStage(isisWithState, nodes, { seed });
  for (const node of all) stage.start(node);
  stage.sim.run(500);
  for (let n = 4 + draw.below(16); n > 0; n--) {
    const what = draw.pick(["send", "send", "read", "stop", "crash", "start", "part", "heal"] as const);
    const [node, other] = [draw.below(nodes), draw.below(nodes)];
    const afterMs = draw.pick([0, draw.below(10), draw.below(100), draw.below(1_000)]);
    if (what !== "read" && what !== "stop") {
      befall(stage, all, [{ afterMs, what, node, other }]);
      continue;
    }
    stage.sim.run(stage.sim.now + afterMs);
    stage.use(node, what);
  }
  recover(stage, all, 4_000);
  for (const node of all) stage.use(node, "read");
  stage.sim.run(stage.sim.now + 1_500);
  return stage;
}

describe("seeded bugs of the state transfer", () => {
  it.each(stateTransferBugs)("$name: $summary", async ({ name, by }) => {
    expect(looks[by](await withBug(name))).not.toBeNull();
  });

  it.each(Object.keys(looks) as StateTransferBug["by"][])("finds nothing without a bug, %s", (by) => {
    expect(looks[by](sound)).toBeNull();
  });
});

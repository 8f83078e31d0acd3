/** Sending again: what becomes of what a link refuses, and every run of two and of three nodes within bounds. */
import { describe, expect, it } from "vitest";
import { type Effect, step } from "../../../core/step.ts";
import type { Experiment } from "../../../experiment/experiment.ts";
import { explore } from "../../../experiment/explore.ts";
import { type Resending, resending } from "./resending.ts";

function played(options = {}) {
  const protocol = resending(options);
  const node = { self: 0, peers: [1] };
  let state = protocol.init(0, [1]);
  const take = (stimulus: Parameters<typeof step<Resending>>[3]): Effect<Resending>[] => {
    const { state: next, effects } = step<Resending>(protocol, node, state, stimulus);
    state = next;
    return [...effects];
  };
  const command = (body: Resending["command"]) => take({ kind: "command", command: body });
  return { command, again: () => take({ kind: "timeout", timer: "again" }), waiting: () => state.waiting };
}

describe("sending again", () => {
  it("what the link takes at once leaves nothing behind", () => {
    const { command, waiting } = played();
    const offered = command({ type: "insist", to: 1, id: 7, bytes: 10 });
    expect(offered).toEqual([{ kind: "emit", event: { type: "offer", to: 1, ids: [7] } }]);
    expect(command({ type: "taken", to: 1, count: 1 })).toEqual([]);
    expect(waiting()).toEqual({});
  });

  it("what it refuses is offered again, with what has come since behind it", () => {
    const { command, again, waiting } = played({ batch: 2 });
    for (const id of [1, 2, 3]) {
      command({ type: "insist", to: 1, id, bytes: 10 });
      if (id === 1) command({ type: "taken", to: 1, count: 0 });
    }
    expect(again()).toContainEqual({ kind: "emit", event: { type: "offer", to: 1, ids: [1, 2] } });
    expect(command({ type: "taken", to: 1, count: 2 })).toContainEqual({
      kind: "emit",
      event: { type: "offer", to: 1, ids: [3] },
    });
    expect(command({ type: "taken", to: 1, count: 1 })).toEqual([{ kind: "cancelTimer", timer: "again" }]);
    expect(waiting()).toEqual({});
  });
});

const explored = (bounds: Omit<Experiment, "protocol">) =>
  explore({ protocol: "back-pressure", variant: "full-links", ...bounds });

describe("sending again, every run within bounds", () => {
  it.each<[string, Omit<Experiment, "protocol">, number]>([
    ["two nodes, eight time-outs", { nodes: 2, maxTimeouts: 8 }, 2_369],
    ["two nodes, six time-outs, a crash", { nodes: 2, maxTimeouts: 6, crashes: 1 }, 2_566],
    ["three nodes, three time-outs", { nodes: 3, maxTimeouts: 3, options: { workload: { items: 2 } } }, 3_460],
  ])("%s: in order, once, and what is missing was dropped", (_what, bounds, states) => {
    const answer = explored(bounds);
    expect([answer.verdict, answer.property, answer.states]).toEqual(["unknown", null, states]);
    expect(answer.checked.map(({ name }) => name)).toEqual([
      "each once, in order",
      "what is missing was dropped",
      "bounds are kept",
      "nothing is left behind",
    ]);
    expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining(["workload.got", "resending.offer"]));
    if (bounds.nodes === 2) expect(Object.keys(answer.reach.events)).toContain("resending.dropped");
  });

  it("links that change the order of what they have taken: it does not come in order", () => {
    expect(explored({ nodes: 2, network: "bag", property: "each once, in order" }).property?.name).toBe(
      "each once, in order",
    );
  });
});

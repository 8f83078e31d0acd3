import { describe, expect, it } from "vitest";
import type { Property, Protocol, Vocabulary } from "../core/protocol.ts";
import { type ExploreOptions, explore } from "./explore.ts";

/** Creates a protocol with only handlers and properties. */
const toy = <V extends Vocabulary>(
  part: Omit<Protocol<V>, "name" | "shapes" | "source" | "assumes" | "costs" | "view">,
): Protocol<V> =>
  ({
    name: "toy",
    shapes: {},
    source: "none",
    assumes: [],
    costs: [],
    view: () => ({ role: "toy" }),
    ...part,
  }) as never;

/** Node 0 sends a question and waits for the answers of the others. The timers of all nodes fire again and again. */
type Asking = {
  state: { waits: boolean; spins: number };
  message: { type: "question" } | { type: "answer" };
  timer: "spin";
  command: { type: "ask" };
};
const answered: Property<Asking> = {
  name: "answered",
  claim: "every request is eventually answered",
  when: "leadsTo",
  given: ({ state }, node) => state(node).waits,
  holds: ({ state }, node) => !state(node).waits,
};
const asking = (spin: (state: Asking["state"]) => void): Protocol<Asking> =>
  toy<Asking>({
    init: () => ({ waits: false, spins: 0 }),
    start: (_state, ctx) => ctx.setTimer("spin", 1),
    receive: {
      question: (_state, from, _message, ctx) => ctx.send(from, { type: "answer" }),
      answer(state) {
        state.waits = false;
      },
    },
    timeout: {
      spin(state, ctx) {
        spin(state);
        ctx.setTimer("spin", 1);
      },
    },
    command: {
      ask(state, _command, ctx) {
        state.waits = true;
        ctx.send(1, { type: "question" });
      },
    },
    properties: [answered],
  });
const spinning = asking((state) => {
  state.spins = 1 - state.spins;
});
const two = {
  nodes: [0, 1],
  network: "fifo",
  timers: "free",
  begin: "together",
  asks: (node: number) => (node === 0 ? [{ type: "ask" as const }] : []),
} as const;
const kinds = ({ path }: { path: readonly { move: { node: number; kind: string } }[] }) =>
  path.map(({ move }) => `${move.node} ${move.kind}`);

describe("leadsTo", () => {
  it("holds if only a run that is unfair to a link could violate it", () => {
    expect(explore({ ...two, protocol: spinning }).verdict).toBe("holds");
  });

  it("is violated by an infinite run: the stem, and one round with every timer firing", () => {
    const lost = explore({ ...two, protocol: spinning, losses: 1 });
    expect([lost.verdict, lost.property?.name]).toEqual(["violated", "answered"]);
    expect(kinds(lost).slice(0, lost.loop as number)).toEqual(["0 start", "1 start", "0 command", "1 lose"]);
    // Each node spins twice, which returns to the same state.
    expect(
      kinds(lost)
        .slice(lost.loop as number)
        .sort(),
    ).toEqual(["0 timeout", "0 timeout", "1 timeout", "1 timeout"]);
    const end = (at: number) => JSON.stringify(lost.path[at]?.states);
    expect(end(lost.path.length - 1)).toBe(end((lost.loop as number) - 1));
  });

  it("is violated by a run that stops; the loop begins at the end of the path", () => {
    const protocol = { ...spinning, start: () => undefined } as Protocol<Asking>;
    const lost = explore({ ...two, protocol, begin: "idle", losses: 1 });
    expect([kinds(lost), lost.loop]).toEqual([["0 command", "1 lose"], 2]);
    expect(explore({ ...two, protocol, begin: "idle" }).verdict).toBe("holds");
  });

  it("requires nothing of a node that crashes", () => {
    const { verdict, path } = explore({ ...two, protocol: spinning, crashes: 1 });
    expect([verdict, path.filter(({ move }) => move.kind === "crash").map(({ move }) => move.node)]).toEqual([
      "violated",
      [1],
    ]);
  });

  it("is not proved by a part of the states, but may be refuted by one", () => {
    const counting = asking((state) => {
      state.spins += 1;
    });
    expect(explore({ ...two, protocol: counting, maxStates: 500 }).verdict).toBe("unknown");
    const counted = { ...two, protocol: counting, losses: 1, maxStates: 500 };
    expect(explore(counted).verdict).toBe("unknown"); // The counters grow, so no state repeats.
    // Apart from the counters, states repeat.
    const { verdict, path, loop } = explore({ ...counted, counters: ["spins"] });
    expect(verdict).toBe("violated");
    expect(path.slice(loop as number).map(({ states }) => states.map((state) => state?.spins))).toEqual([
      [1, 0],
      [1, 1],
    ]);
  });
});

/** Two timers at one node. The first either rearms the second or leaves it alone. */
type Clocks = { state: { rung: boolean; beats: number }; message: { type: "beat" }; timer: "beat" | "ring" };
const clocks = (rearms: boolean): Protocol<Clocks> =>
  toy<Clocks>({
    init: () => ({ rung: false, beats: 0 }),
    start(_state, ctx) {
      ctx.setTimer("beat", 1);
      ctx.setTimer("ring", 1);
    },
    receive: { beat: () => undefined },
    timeout: {
      beat(state, ctx) {
        state.beats = 1 - state.beats;
        ctx.broadcast({ type: "beat" });
        ctx.setTimer("beat", 1);
        if (rearms) ctx.setTimer("ring", 1);
      },
      ring(state) {
        state.rung = true;
      },
    },
    properties: [
      {
        name: "rings",
        claim: "the bell eventually rings",
        when: "leadsTo",
        given: () => true,
        holds: ({ state }, node) => state(node).rung,
      },
    ],
  });

describe("timeouts", () => {
  it.each(["free", "quiet"] as const)(
    "a timer that stays armed fires, but one that is rearmed may not: %s",
    (timers) => {
      const options: Omit<ExploreOptions<Clocks>, "protocol"> = {
        nodes: [0, 1],
        network: "fifo",
        begin: "together",
        timers,
        maxInFlight: 2,
      };
      const kept = explore({ ...options, protocol: clocks(false) });
      expect(kept.verdict).toBe(timers === "free" ? "unknown" : "holds");
      const { verdict, path, loop } = explore({ ...options, protocol: clocks(true) });
      expect(verdict).toBe("violated");
      expect(path.slice(loop as number).some(({ move }) => move.kind === "timeout" && move.timer === "ring")).toBe(
        false,
      );
    },
  );
});

/**
 * A node that counts from 0 to `length - 1`, one step per timeout. Then it returns to `again`, or stays if that is
 * null.
 */
type Walk = { state: { at: number }; timer: "go" };
const walk = (length: number, again: number | null, properties: readonly Property<Walk>[]): Protocol<Walk> =>
  toy<Walk>({
    init: () => ({ at: 0 }),
    start: (_state, ctx) => ctx.setTimer("go", 1),
    timeout: {
      go(state, ctx) {
        const isLast = state.at === length - 1;
        state.at = isLast ? (again ?? state.at) : state.at + 1;
        if (!isLast || again !== null) ctx.setTimer("go", 1);
      },
    },
    properties,
  });
const about = (when: "sometimes" | "eventually", holds: (at: number) => boolean): Property<Walk> => ({
  name: when,
  claim: "of node 0",
  when,
  holds: ({ alive, state }) => alive.length > 0 && alive.every((node) => holds(state(node).at)),
});
const one = { nodes: [0], network: "fifo", timers: "free", begin: "together" } as const;

describe("eventually", () => {
  it("holds if states that violate it do not recur", () => {
    expect(explore({ ...one, protocol: walk(5, null, [about("eventually", (at) => at === 4)]) }).verdict).toBe("holds");
    expect(explore({ ...one, protocol: walk(5, 3, [about("eventually", (at) => at >= 3)]) }).verdict).toBe("holds");
  });

  it("is violated by a loop through a state that violates it, and by such a state that is never left", () => {
    const looping = explore({ ...one, protocol: walk(5, 1, [about("eventually", (at) => at !== 3)]) });
    expect([looping.verdict, looping.loop, looping.path.length]).toEqual(["violated", 4, 8]);
    const stuck = explore({ ...one, protocol: walk(5, null, [about("eventually", (at) => at !== 4)]) });
    expect([stuck.verdict, stuck.loop, stuck.path.length]).toEqual(["violated", 6, 6]);
  });
});

describe("sometimes", () => {
  it("comes with a shortest run to it", () => {
    const { verdict, witnesses } = explore({ ...one, protocol: walk(5, 0, [about("sometimes", (at) => at === 3)]) });
    expect([verdict, witnesses.map(({ path }) => path.at(-1)?.states)]).toEqual(["holds", [[{ at: 3 }]]]);
    expect(witnesses[0]?.path).toHaveLength(4);
  });

  it("is violated if no state satisfies it, and unknown if not all states were explored", () => {
    const protocol = walk(5, 0, [about("sometimes", (at) => at === 7)]);
    expect(explore({ ...one, protocol })).toMatchObject({ verdict: "violated", path: [], witnesses: [] });
    expect(explore({ ...one, protocol, maxStates: 3 }).verdict).toBe("unknown");
    expect(explore({ ...one, protocol, maxDepth: 3 }).verdict).toBe("unknown");
    expect(explore({ ...one, protocol, maxDepth: 5 }).verdict).toBe("violated");
  });
});

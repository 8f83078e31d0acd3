import { describe, expect, it } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { replay } from "../trace/replay.ts";
import { counterexample } from "./counterexample.ts";
import { type ExploreOptions, explore } from "./explore.ts";
import { walk } from "./search/walks.ts";
import { shrink } from "./shrink/shrink.ts";
import { modelOf, movesOf, shrinkTrace } from "./shrink/trace.ts";

/** On command, a node journals, notifies the others, and journals that it has notified them. */
type Tellers = {
  state: { heard: number; written: string[] };
  message: { type: "news" };
  command: { type: "tell" };
  event: { type: "told" };
  record: { type: "written"; word: string };
};

const tellers: Protocol<Tellers> = {
  name: "tellers",
  init: () => ({ heard: 0, written: [] }),
  receive: {
    news(state) {
      state.heard += 1;
    },
  },
  command: {
    tell(_state, _command, ctx) {
      ctx.persist({ type: "written", word: "begun" });
      ctx.emit({ type: "told" });
      ctx.broadcast({ type: "news" });
      ctx.persist({ type: "written", word: "done" });
    },
  },
  replay: {
    written(state, { word }) {
      state.written.push(word);
    },
  },
  shapes: { message: { news: {} }, command: { tell: {} }, record: {} } as never,
  source: "none",
  assumes: [],
  properties: [
    {
      name: "all or none",
      claim: "when quiescent, all others have received the news, or none has",
      when: "quiescent",
      holds: ({ alive, state }) => new Set(alive.filter((node) => node > 0).map((node) => state(node).heard)).size <= 1,
    },
  ],
  costs: [],
  view: ({ heard }) => ({ role: `has heard ${heard}` }),
};

const telling = {
  protocol: tellers,
  nodes: [0, 1, 2, 3],
  network: "fifo",
  timers: "free",
  begin: "idle",
  asks: (node: number) => (node === 0 ? [{ type: "tell" as const }] : []),
  crashes: 1,
} as const satisfies ExploreOptions<Tellers>;

/** Returns the messages that nodes 1 … 3 have received and the journal of node 0, in every quiescent state. */
function endsOf(options: Partial<ExploreOptions<Tellers>>): string[] {
  const ends = new Set<string>();
  const seen = {
    name: "seen",
    claim: "is looked at",
    when: "quiescent" as const,
    holds({ alive, state }: { alive: readonly number[]; state(node: number): Tellers["state"] }) {
      const written = alive.includes(0) ? state(0).written.join(" ") : "down";
      if ([1, 2, 3].every((node) => alive.includes(node)))
        ends.add(`${[1, 2, 3].map((node) => state(node).heard).join("")} ${written}`);
      return true;
    },
  };
  explore({ ...telling, ...options, properties: [seen] });
  return [...ends].sort();
}

describe("a crash within a step", () => {
  it("happens just before any of its sends: earlier messages are in flight, the rest are never sent", () => {
    expect(endsOf({})).toEqual(["000 ", "000 down", "111 ", "111 down"]);
    expect(endsOf({ withinStep: true })).toEqual(["000 ", "000 down", "100 down", "110 down", "111 ", "111 down"]);
  });

  it("leaves the records in the journal that were written before it", () => {
    const back = endsOf({ withinStep: true, recoveries: 1 }).filter((end) => !end.endsWith("down"));
    expect(back).toContain("000 begun");
    expect(back).toContain("110 begun");
    expect(back).toContain("111 begun done");
    expect(back).not.toContain("110 begun done");
  });

  it("counts against the crash budget and the shared fault budget", () => {
    expect(endsOf({ withinStep: true, crashes: 0 })).toEqual(["000 ", "111 "]);
    const once = { withinStep: true, recoveries: 1, losses: 1, faults: 1 } as const;
    expect(endsOf(once).filter((end) => end.endsWith("begun"))).toEqual([]);
    expect(explore({ ...telling, withinStep: true, faults: 0 }).verdict).toBe("holds");
  });

  it("is found breadth first and by walks, and shrunk to the same two moves", () => {
    expect(explore(telling).verdict).toBe("holds");
    const found = explore({ ...telling, withinStep: true });
    expect(found.property?.name).toBe("all or none");
    expect(found.path.map(({ move, sends }) => [move.kind, move.crashesWithinStep, sends.length])).toEqual([
      ["command", true, 1],
      ["receive", undefined, 0],
    ]);
    for (const strategy of ["random", "pct", "swarm"] as const) {
      const walked = walk({ ...telling, withinStep: true, strategy, seed: 1, runs: 2_000 });
      expect(walked.property?.name, strategy).toBe("all or none");
      const shrunk = shrink({ ...telling, withinStep: true }, walked.path, walked.property as never);
      expect(shrunk?.length, strategy).toBe(2);
    }
  });

  it("appears in the trace, which can be replayed and continued", () => {
    const found = explore({ ...telling, withinStep: true });
    const { entries } = counterexample({ ...telling, withinStep: true }, found);
    expect(entries.filter(({ node, kind }) => node === 0 && kind !== "start")).toMatchObject([
      { kind: "command" },
      { kind: "send", to: 1 },
      { kind: "event" },
      { kind: "crash", withinStep: true },
    ]);
    const { verdict, doubts } = replay(tellers, telling.nodes, entries);
    expect([verdict, doubts]).toEqual(["violated", []]);
    expect(modelOf(entries)).toMatchObject({ crashes: 1, withinStep: true });
    expect(movesOf(entries).map(({ move }) => [move.kind, move.crashesWithinStep])).toEqual([
      ["command", true],
      ["receive", undefined],
    ]);
    const again = shrinkTrace({ protocol: tellers, nodes: telling.nodes }, entries, found.property as never);
    expect(again?.length).toBe(2);
  });

  it("a recording contains the rest of the journal, if the node may recover", () => {
    const bothBack = { ...telling, withinStep: true, recoveries: 1 } as const;
    const { entries } = counterexample(bothBack, explore(bothBack));
    const crash = entries.find(({ kind }) => kind === "crash");
    expect(crash).toMatchObject({ withinStep: true, journal: [{ type: "written", word: "begun" }] });
  });
});

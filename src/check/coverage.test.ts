import { describe, expect, it } from "vitest";
import { bully } from "../protocols/election/bully/bully.ts";
import { extendedChangRoberts } from "../protocols/election/chang-roberts/extended-chang-roberts.ts";
import { mutexWithWorkload } from "../protocols/mutex/family/workload.ts";
import { ricartAgrawala } from "../protocols/mutex/ricart-agrawala/ricart-agrawala.ts";
import { coverage, coverageTogether } from "./coverage.ts";
import { explore } from "./explore.ts";

const ring = { nodes: [0, 1, 2], network: "fifo", timers: "free", begin: "idle" } as const;

describe("coverage", () => {
  it("tells in how many ways each handler ended", () => {
    const seen = coverage(extendedChangRoberts());
    explore({ ...ring, protocol: seen.protocol, asks: () => [{ type: "call" as const }] });
    const { handlers, never } = seen.report();
    expect(never).toEqual(["command suspect", "command restore", "command rank", "command resign", "command stand"]);
    expect(
      Object.fromEntries(handlers.map(({ handler, endings }) => [handler, endings.map(({ what }) => what)])),
    ).toEqual({
      "receive election": expect.arrayContaining([
        "sends election, changes its state",
        "does nothing",
        "says elected, sends elected, changes its state",
      ]),
      "receive elected": expect.arrayContaining(["says elected, sends elected, changes its state", "does nothing"]),
      "command call": expect.arrayContaining(["sends election, changes its state", "does nothing"]),
    });
  });

  it("names the handlers that the search never reached", () => {
    const seen = coverage(bully());
    explore({ ...ring, timers: "quiet", protocol: seen.protocol, asks: () => [{ type: "call" as const }] });
    expect(seen.report().never).toEqual(["start", "timeout answer", "timeout coordinator", "command suspect"]);
  });

  it("looks into the parts of an assembly", () => {
    const seen = coverage(mutexWithWorkload(ricartAgrawala));
    const use = { type: "workload" as const, body: { type: "use" as const, entries: 1 } };
    const explored = explore({ ...ring, protocol: seen.protocol, asks: () => [use] });
    const { handlers, never } = seen.report();
    expect(explored.verdict).toBe("holds");
    expect(handlers.map(({ handler }) => handler)).toContain("receive mutex.reply");
    expect(handlers.map(({ handler }) => handler)).toContain("command workload.use");
    // With one entry each no node rests between two.
    expect(never).toEqual(["timeout workload.rest"]);
  });

  it("of several searches is that of all: each counts, and what none reached stays out", () => {
    const [calls, starts] = [coverage(bully()), coverage(bully())];
    explore({ ...ring, timers: "quiet", protocol: calls.protocol, asks: () => [{ type: "call" as const }] });
    explore({ ...ring, timers: "quiet", protocol: starts.protocol, begin: "together" });
    const reports = [calls.report(), starts.report()];
    const { handlers, never } = coverageTogether(bully(), reports);
    expect(never).toEqual(reports[0]?.never.filter((handler) => reports[1]?.never.includes(handler)));
    expect(handlers.map(({ handler }) => handler)).toEqual([
      "start",
      "receive election",
      "receive answer",
      "receive coordinator",
      "command call",
    ]);
    const runs = reports.map((report) => report.handlers.find(({ handler }) => handler === "receive election")?.runs);
    expect(handlers[1]?.runs).toBe((runs[0] ?? 0) + (runs[1] ?? 0));
    expect(handlers[1]?.endings.reduce((sum, ending) => sum + ending.runs, 0)).toBe(handlers[1]?.runs);
    expect(coverageTogether(bully(), reports.slice(0, 1))).toEqual(reports[0]);
  });

  it("changes nothing: the same states, the same verdict", () => {
    const asks = (): { type: "call" }[] => [{ type: "call" }];
    const bare = explore({ ...ring, protocol: extendedChangRoberts(), asks });
    const watched = explore({ ...ring, protocol: coverage(extendedChangRoberts()).protocol, asks });
    expect([watched.verdict, watched.states, watched.transitions]).toEqual([
      bare.verdict,
      bare.states,
      bare.transitions,
    ]);
  });
});

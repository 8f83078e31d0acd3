/** Epoch-bully in every run within bounds, time-outs at any time. */
import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type Exploration, explore } from "../../../check/explore.ts";
import { type SystemSpec, systemFor } from "../../../check/suite.ts";
import type { Tagged, Vocabulary } from "../../../core/protocol.ts";
import { boundedEpochBully, type EpochBully, epochBully } from "./epoch-bully.ts";

const exploring = (words: Partial<SystemSpec>): Exploration<Vocabulary> =>
  reaching(
    explore(
      systemFor({
        protocol: "epoch-bully",
        variant: "bounded",
        nodes: [0, 1, 2],
        begin: "idle",
        property: "one leader per epoch",
        ...words,
      }),
    ),
    "elected",
  );

const deeds = ({ path }: Exploration<Vocabulary>): string[] =>
  path.map(({ move }) => {
    const said = move.kind === "receive" ? ` ${(move.message as Tagged).type} from ${move.from}` : "";
    const timer = move.kind === "timeout" ? ` ${move.timer}` : "";
    return `${move.node} ${move.kind}${said}${timer}`;
  });

/** The pre-vote and all, but that nobody calls a second time and no round follows the first. */
const { timeout, ...others } = epochBully();
const once = { ...others, timeout: { ...timeout, call: () => undefined, renew: () => undefined } };

describe("epoch-bully: every run", () => {
  const title = "at most one leader per epoch: %s";
  it.each<[string, Partial<SystemSpec>, number]>([
    ["two request votes for the same epoch", { initiators: [0, 2] }, 51_408],
    ["two candidates, one crashes", { initiators: [0, 2], crashes: 1 }, 76_782],
  ])(title, (_what, words, states) => {
    expect(exploring(words)).toMatchObject({ verdict: "holds", states });
  });

  it.each<[string, Partial<SystemSpec>, number]>([
    ["two candidates, a message is lost", { initiators: [0, 2], losses: 1 }, 187_288],
    [
      "one candidate, a node crashes and recovers, a message is lost",
      { initiators: [2], crashes: 1, recoveries: 1, losses: 1 },
      249_028,
    ],
    [
      "all are candidates as they start, a node crashes and recovers, a message is lost",
      { begin: "down", initiators: [], crashes: 1, recoveries: 1, losses: 1 },
      651_735,
    ],
  ])(title, { tags: ["long"] }, (_what, words, states) => {
    expect(exploring(words)).toMatchObject({ verdict: "holds", states });
  });

  it("epochs grow, though a node crashes and recovers", () => {
    const faults = { crashes: 1, recoveries: 1 };
    expect(exploring({ initiators: [2], ...faults, property: "epochs grow" })).toMatchObject({ verdict: "holds" });
  });

  it("epochs grow, though a node crashes and recovers and a message is lost", { tags: ["long"] }, () => {
    const faults = { crashes: 1, recoveries: 1, losses: 1 };
    expect(exploring({ initiators: [2], ...faults, property: "epochs grow" })).toMatchObject({ verdict: "holds" });
  });

  it("the whole protocol, pre-vote included: the middle one calls, and whoever is above it does too", () => {
    const found = explore<EpochBully>({
      protocol: once,
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "idle",
      asks: (node) => (node === 1 ? [{ type: "call" }] : []),
      properties: once.properties.filter(({ name }) => name === "one leader per epoch"),
    });
    expect(found).toMatchObject({ verdict: "holds", states: 379_615 });
  });

  it("an epoch has two leaders if a node comes back without its journal: it has forgotten whom it voted for", () => {
    const found = exploring({ initiators: [0, 2], crashes: 1, recoveries: 1, journal: "lost" });
    expect(found.verdict).toBe("violated");
    expect(deeds(found)).toEqual([
      "0 command",
      "1 receive requestVote from 0",
      "0 receive voteGranted from 1",
      "1 crash",
      "1 start",
      "2 receive requestVote from 1",
      "1 receive voteGranted from 2",
    ]);
  });

  it("an epoch has two leaders if less than a majority is asked for", () => {
    const protocol = epochBully({ preVote: false });
    const found = explore<EpochBully>({
      protocol: { ...protocol, init: (self, peers) => ({ ...protocol.init(self, peers), quorum: 1 }) },
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "never",
      begin: "idle",
      asks: () => [{ type: "call" }],
    });
    expect([found.verdict, found.property?.name, found.path.length]).toEqual(["violated", "one leader per epoch", 2]);
  });

  it("two may lead at a time where timers keep no time: the promise to one runs out before the lease of the other", () => {
    const found = explore<EpochBully>({
      protocol: boundedEpochBully(),
      nodes: [0, 1, 2],
      network: "fifo",
      timers: "free",
      begin: "idle",
      asks: (node) => (node === 1 ? [] : [{ type: "call" }]),
      properties: epochBully().properties.filter(({ name }) => name === "one leader at a time"),
    });
    expect([found.verdict, deeds(found as Exploration<Vocabulary>)]).toEqual([
      "violated",
      [
        "0 command",
        "2 receive requestVote from 0",
        "0 receive voteGranted from 2",
        "2 timeout bound",
        "2 command",
        "1 receive requestVote from 2",
        "2 receive voteGranted from 1",
      ],
    ]);
  });
});

/** What a member of `join()` runs beside its shared parts, explored with them as one system. */
import { describe, expect, test } from "vitest";
import { explore } from "../check/explore.ts";
import { systemFor } from "../check/suite.ts";
import type { Tagged } from "../core/protocol.ts";
import { problem, variants } from "../core/shape.ts";
import { monitored } from "./election/monitored.ts";
import {
  type AnyProtocol,
  type EpochBully,
  embeddedNamed,
  epochBully,
  type Heartbeat,
  heartbeat,
  protocolNames,
} from "./index.ts";
import { stacks } from "./multicast/family/stacks.ts";
import { composed } from "./system.ts";

describe("with the failure detector of the member, whatever it suspects", () => {
  test.each([
    ["elected-server", [0, 1], { maxTimeouts: 1 }, ["tokens are unique", "election: one leader per epoch"]],
    ["elected-server", [0, 1], { maxTimeouts: 1, crashes: 1, recoveries: 1 }, ["election: one leader per epoch"]],
  ] as const)("%s, nodes %j, %j: %j", (protocol, nodes, bounds, names) => {
    const system = systemFor({ protocol, variant: "monitored", nodes, ...bounds });
    const properties = system.properties?.filter(({ name }) => (names as readonly string[]).includes(name)) ?? [];
    expect(properties).toHaveLength(names.length);
    expect(explore({ ...system, properties })).toMatchObject({ verdict: "unknown", property: null });
  });
});

test("epoch-bully, beside the failure detector of the member: one leader per epoch, and epochs grow", () => {
  const protocol = composed<{ detector: Heartbeat; election: EpochBully }>(monitored(epochBully))();
  const properties = protocol.properties.filter(({ name }) => ["one leader per epoch", "epochs grow"].includes(name));
  expect(properties).toHaveLength(2);
  const bounds = { maxTimeouts: 2, crashes: 1, recoveries: 1 };
  const explored = explore({
    protocol,
    properties,
    nodes: [0, 1],
    network: "fifo",
    timers: "free",
    begin: "together",
    ...bounds,
  });
  expect(explored).toMatchObject({ verdict: "unknown", property: null });
});

const shared = { detector: heartbeat(), election: epochBully() } as unknown as Readonly<Record<string, AnyProtocol>>;
const events: Readonly<Record<string, readonly object[]>> = {
  detector: [{ type: "suspected", node: 1 }],
  election: [
    { type: "elected", leader: 1, epoch: 1 },
    { type: "deposed", epoch: 1 },
  ],
};
const shapeOf = ({ shapes }: AnyProtocol) => variants((shapes.command ?? {}) as never);

describe("the wires between an instance and the parts that a member has once", () => {
  const embedded = protocolNames.flatMap((name) => {
    const form = embeddedNamed(name);
    return form === null ? [] : [[name, form] as const];
  });

  test.each([...embedded, ...stacks.map((stack) => [stack.algorithm, stack] as const)])(
    "%s: give commands that are taken",
    (_name, { make, part, wires }) => {
      const parts = { ...shared, [part]: make() };
      const given: string[] = [];
      const give = (to: string, command: Tagged): void => {
        if (to in parts) expect(problem(shapeOf(parts[to] as AnyProtocol), command, to)).toBe(null);
        given.push(to);
      };
      for (const [of, table] of Object.entries(wires({})))
        for (const [type, wire] of Object.entries(table)) {
          const event = events[of]?.find((each) => (each as Tagged).type === type) ?? { type, node: 1 };
          wire(event, give);
        }
      expect(given.every((to) => to in parts)).toBe(true);
    },
  );

  test("an algorithm that may do without who is suspected hears of suspicions only where its options say so", () => {
    const wires = embeddedNamed("ricart-agrawala")?.wires;
    expect(Object.keys(wires?.({}) ?? {})).toEqual([]);
    expect(Object.keys(wires?.({ rejoins: true }) ?? {})).toEqual(["detector"]);
  });
});

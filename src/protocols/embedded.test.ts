/** What a member of `join()` runs beside its shared parts, explored with them as one system. */
import { describe, expect, test } from "vitest";
import { explore } from "../check/explore.ts";
import { systemFor } from "../check/suite.ts";
import type { Tagged } from "../core/protocol.ts";
import { problem, variants } from "../core/shape.ts";
import { type AnyProtocol, embeddedNamed, epochBully, heartbeat, protocolNames } from "./index.ts";
import { stacks } from "./multicast/family/stacks.ts";

describe("with the failure detector of the member, whatever it suspects", () => {
  test.each([
    ["elected-server", [0, 1], { maxTimeouts: 1 }, ["tokens are unique", "election: one leader per epoch"]],
    ["elected-server", [0, 1], { maxTimeouts: 1, crashes: 1, recoveries: 1 }, ["election: one leader per epoch"]],
    ["epoch-bully", [0, 1], { maxTimeouts: 2, crashes: 1, recoveries: 1 }, ["one leader per epoch", "epochs grow"]],
  ] as const)("%s, nodes %j, %j: %j", (protocol, nodes, bounds, names) => {
    const none = protocol === "epoch-bully" ? { initiators: [] } : {}; // Who begins calls by itself.
    const system = systemFor({ protocol, variant: "monitored", nodes, ...bounds, ...none });
    const properties = system.properties?.filter(({ name }) => (names as readonly string[]).includes(name)) ?? [];
    expect(properties).toHaveLength(names.length);
    expect(explore({ ...system, properties })).toMatchObject({ verdict: "unknown", property: null });
  });
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

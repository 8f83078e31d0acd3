/**
 * Checks that Byzantine messages never make an honest node throw. Every algorithm of the registry runs with a node that
 * sends arbitrary messages of a valid shape.
 */
import { expect, it } from "vitest";
import { systemFor } from "../../src/check/index.ts";
import type { NodeId, Vocabulary } from "../../src/core/index.ts";
import { protocolNamed, protocolNames } from "../../src/protocols/index.ts";
import { simulation } from "../../src/sim/index.ts";

const nodes: readonly NodeId[] = [0, 1, 2, 3];
const STEPS = 1_000;

const forms = protocolNames.flatMap((protocol) => [
  { protocol, variant: null },
  ...Object.keys(protocolNamed(protocol).variants).map((variant) => ({ protocol, variant })),
]);

/** @returns the number of executed steps */
function run({ protocol, variant }: (typeof forms)[number], seeds: number): number {
  const system = systemFor({
    protocol,
    variant,
    nodes,
    ...(protocolNamed(protocol).family.name === "election" ? {} : { initiators: nodes }),
    times: 2,
    begin: "together",
  });
  let steps = 0;
  for (const liar of [0, 2])
    for (let seed = 1; seed <= seeds; seed++) {
      const byzantine = new Map([[liar, "adversary"]] as const);
      const options = { nodes, seed, delayMs: [1, 5], properties: "at the end", byzantine } as const;
      const sim = simulation<Vocabulary>({ protocol: system.protocol, ...options });
      for (const node of nodes) sim.start(node);
      for (const node of nodes) for (const command of system.asks?.(node) ?? []) sim.command(node, command);
      if (seed % 2 === 0) {
        sim.run(50);
        sim.crash(1);
        sim.run(100);
        sim.start(1);
      }
      for (let step = 0; step < STEPS && sim.step(); step++) steps += 1;
    }
  return steps;
}

const throwsNothing = (form: (typeof forms)[number]): void => expect(run(form, 2)).toBeGreaterThan(0);

it.each(forms.filter(({ variant }) => variant === null))("$protocol", throwsNothing);
it.each(forms.filter(({ variant }) => variant !== null))("$protocol, $variant", { tags: ["larger"] }, throwsNothing);

/**
 * Explores a log alone in the checker. Two nodes propose one command each. Provides its properties and the events that
 * runs must reach.
 */
import { expect } from "vitest";
import type { ExploreOptions } from "../../../src/check/explore.ts";
import { walk } from "../../../src/check/search/walks.ts";
import type { EventOf, NodeId, Property, Vocabulary } from "../../../src/core/protocol.ts";
import type { ReplicatedLog } from "../../../src/protocols/consensus/family/replicated-log.ts";
import { reaching } from "../reached.ts";

export const proposal = (client: NodeId) =>
  ({ type: "propose", command: { client, sequence: 1, operation: `put k ${client}` } }) as const;

/**
 * For each index: the client whose command was decided. −1 if two different commands were decided, or one that no node
 * proposed.
 */
type Places = Readonly<Record<number, NodeId>>;

/** Compares the decided commands of all nodes, including crashed ones, at each index and over all incarnations. */
export const agreed = <V extends Vocabulary>(proposers: readonly NodeId[]): Property<V> => ({
  name: "agreement, integrity and validity",
  claim: "no two nodes decide differently at an index, no node decides twice, and only proposed commands are decided",
  when: "always",
  history: {
    empty: {},
    after(before, event): Places {
      const known = before as Places;
      const said = event as unknown as EventOf<ReplicatedLog>;
      if (said.type !== "decided") return known;
      const { index, command } = said;
      const isSound = proposers.includes(command.client) && (known[index] ?? command.client) === command.client;
      return { ...known, [index]: isSound ? command.client : -1 };
    },
  },
  holds({ nodes, history }) {
    const places = nodes.map((node) => history<Places>(node));
    return places.every((one) =>
      Object.entries(one).every(
        ([index, client]) => client >= 0 && places.every((other) => (other[Number(index)] ?? client) === client),
      ),
    );
  },
});

const RUNS = 150;

/**
 * Expects random, PCT and swarm runs within these bounds to violate no property, and to reach all of `reached`
 * together.
 */
export function walked<V extends Vocabulary>(options: ExploreOptions<V>, ...reached: string[]): void {
  const { maxStates: _, ...model } = options;
  for (const strategy of ["random", "pct", "swarm"] as const) {
    const found = walk<V>({ ...model, strategy, seed: 1, runs: RUNS });
    expect([strategy, found.property]).toEqual([strategy, null]);
    reaching(found, ...reached);
    const events = Object.entries(found.reach.events).map(([name, times]) => `${name} ${times}`);
    console.log(
      `${options.protocol.name}, ${strategy}: ${found.runs} runs, ${found.transitions} moves: ${events.join(", ")}`,
    );
  }
}

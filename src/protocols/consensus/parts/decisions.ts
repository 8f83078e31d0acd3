/** Properties of consensus on one value. They include the decisions of nodes that have crashed since. */
import type { Property, Vocabulary, World } from "../../../core/protocol.ts";

/** The decisions of a node, including before crashes. Two are enough to detect a violation. */
type Decisions = readonly string[];

const history = {
  empty: [] as Decisions,
  after: (before: Decisions, { value }: { value: string }): Decisions => [...before, value].slice(0, 2),
};

type Deciding = Vocabulary & { event: { type: "decided"; value: string } };

export const decisionProperties = <V extends Deciding>(): Property<V>[] =>
  [
    {
      name: "agreement",
      claim: "no two nodes decide differently, including crashed ones",
      when: "always",
      history,
      holds: ({ nodes, history: of }: World<object>) => new Set(nodes.flatMap((node) => of<Decisions>(node))).size <= 1,
    },
    {
      name: "integrity",
      claim: "a node decides at most once, even across crashes",
      when: "always",
      history,
      holds: ({ nodes, history: of }: World<object>) => nodes.every((node) => of<Decisions>(node).length <= 1),
    },
  ] as never;

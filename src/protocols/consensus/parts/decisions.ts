/** Properties of consensus on a single value. They also cover the decisions of crashed nodes. */
import type { Property, Vocabulary, World } from "../../../core/protocol.ts";

/** A node's decisions, including those from before crashes. Two are enough to detect a violation. */
type Decisions = readonly string[];

const history = {
  empty: [] as Decisions,
  after: (before: Decisions, { value }: { value: string }): Decisions => [...before, value].slice(0, 2),
};

type Deciding = Vocabulary & { event: { type: "decided"; value: string } };

/** Returns the agreement and integrity properties. */
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

/** What Fast Paxos promises by itself, without clients. */
import type { Property } from "../../../core/protocol.ts";
import type { FastPaxos, State, Value } from "./vocabulary.ts";

/** Of the last instances that a node was told of, whose command they hold; "two" if it was told of two. */
type Told = Readonly<Record<number, string>>;

const REMEMBERED = 32;

const textOf = (value: Value): string => (value === null ? "no command" : `${value.client}.${value.sequence}`);

/** Values that a running node has learned. A node emits no event for an instance without a command, so events alone miss it. */
function* learnedBy({ upTo, log, chosen }: State): Iterable<[instance: number, value: string]> {
  const first = Math.max(0, log.length - REMEMBERED);
  for (let at = first; at < log.length; at++) yield [upTo - log.length + 1 + at, textOf(log[at] as Value)];
  for (const [instance, value] of Object.entries(chosen)) yield [Number(instance), textOf(value)];
}

export const agreement: Property<FastPaxos> = {
  name: "agreement",
  claim: "in no instance two nodes, those that have crashed since among them, learn different values",
  when: "always",
  history: {
    empty: {},
    after(before, event) {
      if (event.type !== "decided") return before;
      const { index, command } = event;
      const value = textOf(command);
      const known = (before as Told)[index];
      if (known !== undefined) return known === value ? before : { ...(before as Told), [index]: "two" };
      return Object.fromEntries(Object.entries({ ...(before as Told), [index]: value }).slice(-REMEMBERED));
    },
  },
  holds({ nodes, alive, history, state }) {
    const values = new Map<number, string>();
    const differs = ([instance, value]: [number, string]): boolean => {
      const known = values.get(instance) ?? value;
      values.set(instance, known);
      return value === "two" || value !== known;
    };
    for (const node of nodes)
      for (const [instance, value] of Object.entries(history<Told>(node)))
        if (differs([Number(instance), value])) return false;
    for (const node of alive) for (const each of learnedBy(state(node))) if (differs(each)) return false;
    return true;
  },
};

/** What Fast Paxos promises by itself, without clients. */
import type { Property } from "../../../core/protocol.ts";
import type { FastPaxos } from "./vocabulary.ts";

/** Of the last instances that a node was told of, whose command they hold; "two" if it was told of two. */
type Told = Readonly<Record<number, string>>;

const REMEMBERED = 32;

export const agreement: Property<FastPaxos> = {
  name: "agreement",
  claim: "in no instance two nodes, those that have crashed since among them, learn different commands",
  when: "always",
  history: {
    empty: {},
    after(before, event) {
      if (event.type !== "decided") return before;
      const { index, command } = event;
      const value = `${command.client}.${command.sequence}`;
      const known = (before as Told)[index];
      if (known !== undefined) return known === value ? before : { ...(before as Told), [index]: "two" };
      return Object.fromEntries(Object.entries({ ...(before as Told), [index]: value }).slice(-REMEMBERED));
    },
  },
  holds({ nodes, history }) {
    const chosen = new Map<string, string>();
    for (const node of nodes)
      for (const [instance, value] of Object.entries(history<Told>(node))) {
        if (value === "two" || (chosen.get(instance) ?? value) !== value) return false;
        chosen.set(instance, value);
      }
    return true;
  },
};

/** What multicasts promise, of their users: the orders, and that messages come once, of their senders, and to everybody. */
import type { Property, World } from "../../../core/protocol.ts";
import { groupOf, type Letter, type MulticastUser, senderOf, viewOf } from "./user.ts";

type State = MulticastUser["state"];

/** What comes before each letter in the order that is promised must have been delivered before it. */
const keeps =
  (comesBefore: (earlier: string, later: string) => boolean) =>
  ({ alive, state }: World<State>): boolean =>
    alive.every((node) => {
      const { delivered, groups } = state(node);
      const places = new Map(delivered.map(({ name }, place) => [name, place]));
      return delivered.every(({ name, view, past }, place) =>
        past.every((earlier) => {
          if (!groups.includes(groupOf(earlier)) || !comesBefore(earlier, name)) return true;
          const its = places.get(earlier);
          // With views, who was not a member yet has not delivered it.
          return its === undefined ? view > 0 : its < place;
        }),
      );
    });

export const fifoOrder: Property<MulticastUser> = {
  name: "C4 FIFO order",
  claim: "whoever has delivered a message had delivered before it whatever its sender had sent to that group before",
  when: "always",
  holds: keeps((earlier, later) => senderOf(earlier) === senderOf(later) && groupOf(earlier) === groupOf(later)),
};

export const happenedBeforeOrder: Property<MulticastUser> = {
  name: "C5 happened-before order",
  claim: "whoever has delivered a message had delivered before it whatever its sender had sent or delivered before",
  when: "always",
  holds: keeps(() => true),
};

export const totalOrder: Property<MulticastUser> = {
  name: "C6 total order",
  claim: "if anybody delivers one message before another, whoever delivers the other has delivered the one before",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node, i) => alive.slice(i + 1).every((other) => isSameOrder(state(node), state(other)))),
};

/** Up to the last that both have delivered, they have delivered the same of what concerns both. */
function isSameOrder(one: State, other: State): boolean {
  const [ours, theirs] = [namesFor(one, other), namesFor(other, one)];
  const known = new Set(theirs);
  const count = ours.findLastIndex((name) => known.has(name)) + 1;
  return ours.slice(0, count).join() === theirs.slice(0, count).join();
}

/** What one has delivered of the groups that the other is in too; with views, what both have delivered. */
function namesFor(one: State, other: State): string[] {
  const known = new Set(other.delivered.map(({ name }) => name));
  return one.delivered
    .filter(({ name, view }) => other.groups.includes(groupOf(name)) && (view === 0 || known.has(name)))
    .map(({ name }) => name);
}

export const integrity: Property<MulticastUser> = {
  name: "integrity",
  claim: "nobody delivers a message twice, or one that was not sent",
  when: "always",
  holds: ({ alive, state }) => {
    const isSent = ({ name, view }: Letter): boolean => {
      const from = senderOf(name);
      return view > 0 || !alive.includes(from) || state(from).sent.includes(name);
    };
    return alive.every((node) => {
      const { delivered } = state(node);
      return new Set(delivered.map(({ name }) => name)).size === delivered.length && delivered.every(isSent);
    });
  },
};

export const validity: Property<MulticastUser> = {
  name: "validity",
  claim: "at rest, whoever has sent a message has delivered it",
  when: "atRest",
  restless: ["pause"],
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { sent, delivered, view } = state(node);
      return sent.every((name) => viewOf(name) !== view || delivered.some((letter) => letter.name === name));
    }),
};

export const agreement: Property<MulticastUser> = {
  name: "agreement",
  claim: "at rest, what anybody has delivered everybody has who is in the group",
  when: "atRest",
  restless: ["pause"],
  holds: ({ alive, state }) => alive.every((node) => alive.every((other) => hasAll(state(other), state(node)))),
};

function hasAll(one: State, other: State): boolean {
  if (one.view !== other.view) return true;
  const names = new Set(one.delivered.map(({ name }) => name));
  return other.delivered.every(
    ({ name, view }) => view !== one.view || !one.groups.includes(groupOf(name)) || names.has(name),
  );
}

/** What every multicast promises, whatever its order. */
export const delivery: readonly Property<MulticastUser>[] = [integrity, validity, agreement];

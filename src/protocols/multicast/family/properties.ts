/** Properties of multicasts, as seen by their workload: the orders, integrity, validity and agreement. */
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import { eventually } from "../parts/group.ts";
import { groupOf, type Letter, type MulticastWorkload, pastOf, type State, senderOf, viewOf } from "./workload.ts";

/** Shorter lists are searched again each time, because that is faster than remembering results. */
const SHORT = 32;

/**
 * Checks that a predicate holds for every item of a list that only grows or is replaced, given a second such list. An
 * item that has satisfied the predicate is not checked again, because runs check the properties after every step.
 */
function settles(): <T>(list: readonly T[], light: object, isSo: (item: T, place: number) => boolean) => boolean {
  const settled = new WeakMap<object, WeakMap<object, number>>();
  return (list, light, isSo) => {
    if (list.length < SHORT) return list.every(isSo);
    const known = settled.get(list) ?? new WeakMap<object, number>();
    settled.set(list, known);
    let count = known.get(light) ?? 0;
    while (count < list.length && isSo(list[count] as (typeof list)[number], count)) count++;
    known.set(light, count);
    return count === list.length;
  };
}

interface Names {
  /** For each name, the index of its last delivery. */
  readonly places: Map<string, number>;
  length: number;
}

const indexed = new WeakMap<object, Names>();

/** Deliveries by name. For long lists, the index grows with the list. */
function namesOf({ delivered }: State): Names {
  const names = indexed.get(delivered) ?? { places: new Map<string, number>(), length: 0 };
  if (delivered.length >= SHORT) indexed.set(delivered, names);
  for (; names.length < delivered.length; names.length++)
    names.places.set((delivered[names.length] as Letter).name, names.length);
  return names;
}

/** Every letter must be delivered after all letters that precede it in the promised order. */
const keeps = (comesBefore: (earlier: string, later: string) => boolean) => {
  const everyLetter = settles();
  return ({ alive, state }: World<State>): boolean => {
    const workloads = alive.map(state);
    let found: Found | null = null;
    return workloads.every((workload) => {
      const { delivered, groups } = workload;
      const { places } = namesOf(workload);
      const counts = (earlier: string, { name }: Letter) =>
        groups.includes(groupOf(earlier)) && comesBefore(earlier, name);
      const hasAllBefore = (letter: Letter, place: number): boolean =>
        pastOf(letter).every((earlier) => (places.get(earlier) ?? place) < place || !counts(earlier, letter));
      if (places.size === delivered.length && everyLetter(delivered, delivered, hasAllBefore)) return true;
      return delivered.every((letter, place) =>
        pastOf(letter).every((earlier) => {
          if (!counts(earlier, letter)) return true;
          const its = places.get(earlier);
          if (its !== undefined) return its < place;
          if (viewOf(earlier) >= letter.view) return false;
          found ??= foundAt(workloads);
          return !isOwed(found.get(earlier) ?? [], letter, workload);
        }),
      );
    });
  };
};

/** For each name: the views of its deliveries, and whether a delivering node continued to the next view. */
type Found = ReadonlyMap<string, readonly { view: number; hasGoneOn: boolean }[]>;

function foundAt(workloads: readonly State[]): Found {
  const found = new Map<string, { view: number; hasGoneOn: boolean }[]>();
  for (const workload of workloads)
    for (const { name, view } of workload.delivered) {
      const places = found.get(name) ?? [];
      if (places.length === 0) found.set(name, places);
      places.push({ view, hasGoneOn: wentOn(workload, view) });
    }
  return found;
}

/**
 * Whether a missing letter of an earlier view should have been delivered. It need not be if its sender was ejected before
 * it could be, or if that was before this node joined. All other members of that view have delivered it.
 */
const isOwed = (found: readonly { view: number; hasGoneOn: boolean }[], letter: Letter, { since }: State): boolean =>
  found.some(({ view, hasGoneOn }) => view === letter.view || (hasGoneOn && since > 0 && view >= since));

/** Whether a node was in a view and in the next one. If it was not, other nodes only know that it is gone. */
const wentOn = ({ since, view: last }: State, view: number): boolean => since > 0 && since <= view && view < last;

export const fifoOrder: Property<MulticastWorkload> = {
  name: "C4 FIFO order",
  claim:
    "a node delivers a message only after all messages that its sender sent to that group before; with views, only those sent since the node joined, except messages known only to expelled nodes",
  when: "always",
  holds: keeps((earlier, later) => senderOf(earlier) === senderOf(later) && groupOf(earlier) === groupOf(later)),
};

export const happenedBeforeOrder: Property<MulticastWorkload> = {
  name: "C5 happened-before order",
  claim:
    "a node delivers a message only after all messages that its sender sent or delivered before; with views, only those sent since the node joined, except messages known only to expelled nodes",
  when: "always",
  holds: keeps(() => true),
};

export const totalOrder: Property<MulticastWorkload> = {
  name: "C6 total order",
  claim:
    "if a node delivers one message before another, every node that delivers the second has delivered the first before it; with views, in the views that both nodes are in or completed",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node, i) => alive.slice(i + 1).every((other) => isSameOrder(state(node), state(other)))),
};

const everyPlace = settles();

/** Without views: whether the deliveries of one node are a prefix of the other's, without duplicates. */
function isBehind(one: State, { delivered: theirs }: State): boolean {
  return (
    one.delivered.length <= theirs.length &&
    everyPlace(one.delivered, theirs, ({ name }, i) => theirs[i]?.name === name)
  );
}

const isPlain = (workload: State): boolean =>
  workload.view === 0 && workload.since === 0 && namesOf(workload).places.size === workload.delivered.length;

/** Whether both nodes delivered their common messages in the same order, and neither omitted an earlier one. */
function isSameOrder(one: State, other: State): boolean {
  if (isPlain(one) && isPlain(other) && (isBehind(one, other) || isBehind(other, one))) return true;
  const [ours, theirs] = [namesOf(one).places, namesOf(other).places];
  const inCommon = ({ delivered }: State): string =>
    delivered.flatMap(({ name }) => (ours.has(name) && theirs.has(name) ? [name] : [])).join();
  return inCommon(one) === inCommon(other) && !isLeftOut(one, other, theirs) && !isLeftOut(other, one, ours);
}

/** Within a common view, a message before a common one must not be missing. In views that both nodes completed, none may be. */
function isLeftOut(one: State, other: State, theirs: ReadonlyMap<string, number>): boolean {
  let isBeforeCommon = false;
  for (const { name, view } of one.delivered.toReversed()) {
    if (!other.groups.includes(groupOf(name))) continue;
    if (theirs.has(name)) isBeforeCommon ||= view === one.view;
    else if (view === one.view && view === other.view ? isBeforeCommon : wentOn(one, view) && wentOn(other, view))
      return true;
  }
  return false;
}

const everySent = settles();

export const integrity: Property<MulticastWorkload> = {
  name: "integrity",
  claim:
    "no node delivers a message twice or a message that its sender did not send, as far as the sender remembers its earlier incarnations",
  when: "always",
  holds: ({ alive, state }) => {
    const isSent = ({ name, view }: Letter): boolean => {
      const from = senderOf(name);
      if (!alive.includes(from)) return true;
      const { sent, since } = state(from);
      // With views, it may have been sent in an earlier life that the sender has forgotten.
      return sent.includes(name) || (view > 0 && (since === 0 || viewOf(name) < since));
    };
    return alive.every((node) => {
      const { delivered } = state(node);
      if (namesOf(state(node)).places.size < delivered.length) return false;
      const areIn = (from: NodeId, sent: readonly string[]): boolean =>
        everySent(delivered, sent, ({ name }) => senderOf(name) !== from || sent.includes(name));
      return alive.every((from) => areIn(from, state(from).sent)) || delivered.every(isSent);
    });
  },
};

const everyOwn = settles();

export const validity: Property<MulticastWorkload> = eventually(
  "validity",
  "a node eventually delivers every message that it sends; with views, unless it is expelled",
  ({ state }, node) => {
    const { sent, excused, delivered, view, since } = state(node);
    if (view > 0 && since === 0) return true; // Outside: messages sent now wait until the node is admitted.
    const { places } = namesOf(state(node));
    if (excused > 0) return sent.slice(excused).every((name) => places.has(name));
    return everyOwn(sent, delivered, (name) => places.has(name));
  },
);

export const agreement: Property<MulticastWorkload> = eventually(
  "agreement",
  "a message delivered by a live node is eventually delivered by every live node in the group; with views, by every node in the same view",
  ({ alive, state }, node) => {
    const one = state(node);
    const names = namesOf(one);
    return alive.every((other) => other === node || hasAll(one, names, state(other)));
  },
);

const everyOther = settles();

/** Views only grow, so results for earlier views stay valid. */
const hasAll = (one: State, { places }: Names, other: State): boolean =>
  one.view !== other.view ||
  everyOther(
    other.delivered,
    one.delivered,
    ({ name, view }) => view !== one.view || !one.groups.includes(groupOf(name)) || places.has(name),
  );

type Passed = Extract<MulticastWorkload["event"], { type: "passed" }>;

export const virtualSynchrony: Property<MulticastWorkload> = {
  name: "virtual synchrony",
  claim: "all nodes that went from one view to the next, including crashed ones, delivered the same messages in it",
  when: "always",
  history: {
    empty: [] as readonly Passed[],
    after: (before, event) => (event.type === "passed" ? [...(before as readonly Passed[]), event] : before),
  },
  holds: ({ nodes, history }) => {
    const inView = new Map<number, string>();
    return nodes.every((node) =>
      history<readonly Passed[]>(node).every(({ view, delivered }) => {
        const said = delivered.join();
        if (!inView.has(view)) inView.set(view, said);
        return inView.get(view) === said;
      }),
    );
  },
};

/** Properties of every multicast, in any order. */
export const delivery: readonly Property<MulticastWorkload>[] = [integrity, validity, agreement];

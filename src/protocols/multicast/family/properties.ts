/** Properties of multicasts, as observed by their workload: ordering, integrity, validity and agreement. */
import type { NodeId, Property, World } from "../../../core/protocol.ts";
import { eventually } from "../parts/group.ts";
import { groupOf, type Letter, type MulticastWorkload, pastOf, type State, senderOf, viewOf } from "./workload.ts";

/** Lists shorter than this are checked again each time, because that is faster than remembering results. */
const SHORT = 32;

/**
 * Returns a function that checks whether a predicate holds for every item in a list, given a second list `light` that
 * the predicate reads. Both lists only grow or are replaced. Because properties are checked after every step of a run,
 * an item that has satisfied the predicate is not checked again.
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
  /** The index of each name's last delivery. */
  readonly places: Map<string, number>;
  length: number;
}

const indexed = new WeakMap<object, Names>();

/** Indexes deliveries by name. For long lists, the index is extended as the list grows. */
function namesOf({ delivered }: State): Names {
  const names = indexed.get(delivered) ?? { places: new Map<string, number>(), length: 0 };
  if (delivered.length >= SHORT) indexed.set(delivered, names);
  for (; names.length < delivered.length; names.length++)
    names.places.set((delivered[names.length] as Letter).name, names.length);
  return names;
}

/** Checks that every letter is delivered after all letters that must precede it in the promised order. */
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

/**
 * For each name, the views that it was delivered in, and whether a node that delivered it continued to the next view.
 */
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
 * Whether this node should have delivered a missing message before `letter`, because another node delivered it in the
 * same view, or in an earlier view that the other node completed and this node was in. Otherwise, the sender was
 * ejected before the message reached the members, or this node joined later.
 */
const isOwed = (found: readonly { view: number; hasGoneOn: boolean }[], letter: Letter, { since }: State): boolean =>
  found.some(({ view, hasGoneOn }) => view === letter.view || (hasGoneOn && since > 0 && view >= since));

/** Whether a node was in a view and also in the next one. If not, other nodes know only that it is gone. */
const wentOn = ({ since, view: last }: State, view: number): boolean => since > 0 && since <= view && view < last;

/** Deliveries preserve each sender's order. */
export const fifoOrder: Property<MulticastWorkload> = {
  name: "C4 FIFO order",
  claim:
    "a node delivers a message only after all messages that its sender sent to that group earlier; with views, this excludes messages sent before the node joined and messages known only to expelled nodes",
  when: "always",
  holds: keeps((earlier, later) => senderOf(earlier) === senderOf(later) && groupOf(earlier) === groupOf(later)),
};

/** Deliveries preserve causal order. */
export const happenedBeforeOrder: Property<MulticastWorkload> = {
  name: "C5 happened-before order",
  claim:
    "a node delivers a message only after all messages that its sender sent or delivered earlier; with views, this excludes messages sent before the node joined and messages known only to expelled nodes",
  when: "always",
  holds: keeps(() => true),
};

/** All nodes deliver in the same order. */
export const totalOrder: Property<MulticastWorkload> = {
  name: "C6 total order",
  claim:
    "if a node delivers one message before another, every node that delivers the second has already delivered the first; with views, this applies to the views that both nodes are in or have completed",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node, i) => alive.slice(i + 1).every((other) => isSameOrder(state(node), state(other)))),
};

const everyPlace = settles();

/** Whether one node's deliveries are a prefix of the other's. Only for nodes without views and duplicates. */
function isBehind(one: State, { delivered: theirs }: State): boolean {
  return (
    one.delivered.length <= theirs.length &&
    everyPlace(one.delivered, theirs, ({ name }, i) => theirs[i]?.name === name)
  );
}

const isPlain = (workload: State): boolean =>
  workload.view === 0 && workload.since === 0 && namesOf(workload).places.size === workload.delivered.length;

/**
 * Whether both nodes delivered the messages that they have in common in the same order, and neither skipped an earlier
 * message.
 */
function isSameOrder(one: State, other: State): boolean {
  if (isPlain(one) && isPlain(other) && (isBehind(one, other) || isBehind(other, one))) return true;
  const [ours, theirs] = [namesOf(one).places, namesOf(other).places];
  const inCommon = ({ delivered }: State): string =>
    delivered.flatMap(({ name }) => (ours.has(name) && theirs.has(name) ? [name] : [])).join();
  return inCommon(one) === inCommon(other) && !isLeftOut(one, other, theirs) && !isLeftOut(other, one, ours);
}

/**
 * Whether the other node lacks a message that it should have delivered. In a view that both nodes are in, no message
 * that precedes a common message may be missing. In views that both nodes completed, no message may be missing.
 */
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

/** Every delivered message was sent, and no message is delivered twice. */
export const integrity: Property<MulticastWorkload> = {
  name: "integrity",
  claim:
    "no node delivers a message twice, or one that its sender did not send (as far as the sender remembers its earlier incarnations)",
  when: "always",
  holds: ({ alive, state }) => {
    const isSent = ({ name, view }: Letter): boolean => {
      const from = senderOf(name);
      if (!alive.includes(from)) return true;
      const { sent, since } = state(from);
      // With views, the sender may have sent the message in an earlier incarnation that it has forgotten.
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

/** Senders deliver their own messages. */
export const validity: Property<MulticastWorkload> = eventually(
  "validity",
  "a node eventually delivers every message that it sends; with views, unless it is expelled",
  ({ state }, node) => {
    const { sent, excused, delivered, view, since } = state(node);
    if (view > 0 && since === 0) return true; // The node is outside. Messages sent now wait until it is admitted.
    const { places } = namesOf(state(node));
    if (excused > 0) return sent.slice(excused).every((name) => places.has(name));
    return everyOwn(sent, delivered, (name) => places.has(name));
  },
);

/** All live nodes of a group deliver the same messages. */
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

/**
 * Whether a node has delivered all the messages that another node has delivered. View numbers only grow, so results for
 * earlier views stay valid.
 */
const hasAll = (one: State, { places }: Names, other: State): boolean =>
  one.view !== other.view ||
  everyOther(
    other.delivered,
    one.delivered,
    ({ name, view }) => view !== one.view || !one.groups.includes(groupOf(name)) || places.has(name),
  );

type Passed = Extract<MulticastWorkload["event"], { type: "passed" }>;

/** Nodes that move together from one view to the next have the same deliveries. */
export const virtualSynchrony: Property<MulticastWorkload> = {
  name: "virtual synchrony",
  claim:
    "all nodes that moved from one view to the next, including nodes that later crashed, delivered the same messages in the first",
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

/** Properties of every multicast, regardless of its order. */
export const delivery: readonly Property<MulticastWorkload>[] = [integrity, validity, agreement];

/** What PBFT guarantees of the correct replicas at all times. What crashed ones have executed counts, too. */
import type { EventOf, Property, World } from "../../../core/protocol.ts";
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import type { Pbft } from "./vocabulary.ts";

type State = Pbft["state"];
type Event = EventOf<Pbft>;

/** Of what a replica has executed, the last so many commands. */
const REMEMBERED = 16;

interface Executed {
  readonly index: number;
  readonly command: Command;
}

interface Told {
  readonly executed: readonly Executed[];
  /** In another life it has executed another command in the same place. */
  readonly isTorn: boolean;
  /** It has executed a command in two places. */
  readonly isTwice: boolean;
}

const told = {
  empty: { executed: [], isTorn: false, isTwice: false } as Told,
  after(before: Told, event: Event): Told {
    if (event.type !== "decided") return before;
    const { index, command } = event;
    const known = before.executed.find((each) => each.index === index);
    if (known !== undefined) return isEqual(known.command, command) ? before : { ...before, isTorn: true };
    const isTwice = before.isTwice || before.executed.some((each) => isSameCommand(each.command, command));
    const executed = [...before.executed, { index, command }].sort((a, b) => a.index - b.index);
    return { ...before, isTwice, executed: executed.slice(-REMEMBERED) };
  },
};

const isEqual = (a: Command, b: Command): boolean => isSameCommand(a, b) && a.operation === b.operation;

/** By place: no two values may be there. */
function areUnique(places: Iterable<readonly [place: string, value: string]>): boolean {
  const known = new Map<string, string>();
  for (const [place, value] of places) {
    if ((known.get(place) ?? value) !== value) return false;
    known.set(place, value);
  }
  return true;
}

const certified: Property<Pbft> = {
  name: "prepared certificates",
  claim: "no two correct replicas have prepared different batches for one sequence number in one view",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    areUnique(
      alive.flatMap((node) =>
        Object.values(state(node).slots).flatMap(({ prepared }) => {
          const value = prepared?.prePrepare.value;
          return value === undefined ? [] : [[`${value.view}.${value.sequence}`, value.digest] as const];
        }),
      ),
    ),
};

const totalOrder: Property<Pbft> = {
  name: "total order",
  claim: "no two correct replicas execute different commands in the same place",
  when: "always",
  history: told,
  holds: ({ nodes, history }) =>
    nodes.every((node) => !history<Told>(node).isTorn) &&
    areUnique(
      nodes.flatMap((node) =>
        history<Told>(node).executed.map(
          ({ index, command }) =>
            [String(index), `${command.client}.${command.sequence} ${command.operation}`] as const,
        ),
      ),
    ),
};

const executedOnce: Property<Pbft> = {
  name: "executed once",
  claim: "a correct replica executes a command once",
  when: "always",
  history: told,
  holds: ({ nodes, history }) => nodes.every((node) => !history<Told>(node).isTwice),
};

const stableCheckpoints: Property<Pbft> = {
  name: "stable checkpoints",
  claim: "what is stable at correct replicas at one sequence number is one state",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    areUnique(
      alive.flatMap((node) => {
        const { stable, snapshots } = state(node);
        return [stable, ...snapshots].flatMap(({ sequence, digest }) =>
          digest === "" ? [] : [[String(sequence), digest] as const],
        );
      }),
    ),
};

const watermarks: Property<Pbft> = {
  name: "watermarks",
  claim:
    "a correct replica knows of no sequence number outside its window, and executes none twice or before the one before it",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    alive.every((node) => {
      const { stable, slots, executed } = state(node);
      return executed >= stable.sequence && Object.keys(slots).every((sequence) => Number(sequence) > stable.sequence);
    }),
};

export const properties: readonly Property<Pbft>[] = [
  certified,
  totalOrder,
  executedOnce,
  stableCheckpoints,
  watermarks,
];

/** What PBFT guarantees of the correct replicas at all times. What crashed ones have executed counts, too. */
import type { EventOf, Property, World } from "../../../core/protocol.ts";
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import type { PbftOptions } from "./options.ts";
import { isSame, type Pbft, quorum } from "./vocabulary.ts";

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

/** Looks at many values by their place: two that differ are not to be in one. */
class Places<T> {
  readonly #isSame: (a: T, b: T) => boolean;
  readonly #known = new Map<number, T>();
  constructor(isSame: (a: T, b: T) => boolean) {
    this.#isSame = isSame;
  }
  admit(place: number, value: T): boolean {
    const known = this.#known.get(place);
    if (known !== undefined) return this.#isSame(known, value);
    this.#known.set(place, value);
    return true;
  }
}

/** Sequence numbers in a run are far below this. */
const SEQUENCES = 2 ** 32;

const certified: Property<Pbft> = {
  name: "prepared certificates",
  claim:
    "what a correct replica has prepared 2f backups have agreed to, and it is one batch for each sequence number and view",
  when: "always",
  holds({ alive, state }: World<State>) {
    const digests = new Places<string>((a, b) => a === b);
    for (const node of alive)
      for (const { prepared } of Object.values(state(node).slots)) {
        if (prepared === null) continue;
        const { view, sequence, digest } = prepared.prePrepare.value;
        const matching = prepared.prepares.filter(({ value }) => isSame(value, prepared.prePrepare.value));
        if (matching.length < quorum(state(node)) - 1) return false;
        if (!digests.admit(view * SEQUENCES + sequence, digest)) return false;
      }
    return true;
  },
};

const totalOrder: Property<Pbft> = {
  name: "total order",
  claim: "no two correct replicas execute different commands in the same place",
  when: "always",
  history: told,
  holds({ nodes, history }) {
    const commands = new Places<Command>(isEqual);
    for (const node of nodes) {
      const { executed, isTorn } = history<Told>(node);
      if (isTorn) return false;
      for (const { index, command } of executed) if (!commands.admit(index, command)) return false;
    }
    return true;
  },
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
  claim: "what is stable at a correct replica 2f + 1 vouch for, and it is one state for each sequence number",
  when: "always",
  holds({ alive, state }: World<State>) {
    const digests = new Places<string>((a, b) => a === b);
    for (const node of alive) {
      const { stable, snapshots } = state(node);
      const vouching = stable.proof.filter(({ value }) => value.digest === stable.digest);
      if (stable.sequence > 0 && vouching.length < quorum(state(node))) return false;
      for (const { sequence, digest } of [stable, ...snapshots])
        if (digest !== "" && !digests.admit(sequence, digest)) return false;
    }
    return true;
  },
};

const watermarks = ({ window }: PbftOptions): Property<Pbft> => ({
  name: "watermarks",
  claim: "a correct replica knows of no sequence number outside its window",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    alive.every((node) => {
      const { stable, slots, executed } = state(node);
      const [low, high] = [stable.sequence, stable.sequence + window];
      return executed >= low && Object.keys(slots).every((each) => Number(each) > low && Number(each) <= high);
    }),
});

export const propertiesWith = (options: PbftOptions): readonly Property<Pbft>[] => [
  certified,
  totalOrder,
  executedOnce,
  stableCheckpoints,
  watermarks(options),
];

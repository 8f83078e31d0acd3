/** Properties of correct replicas. They also cover the commands that crashed replicas have executed. */
import { entriesIn } from "../../../core/per-node.ts";
import type { EventOf, Property, World } from "../../../core/protocol.ts";
import type { Signed } from "../../../core/signatures.ts";
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import { areDistinct, NOTHING } from "./certificates.ts";
import {
  type Assignment,
  type Certificate,
  type Checkpoint,
  isSame,
  type NewView,
  type Pbft,
  type PbftOptions,
  primaryOf,
  quorum,
  type Slot,
  type State,
  type ViewChange,
} from "./vocabulary.ts";

type Event = EventOf<Pbft>;

/** The number of recent commands remembered per replica. */
const REMEMBERED = 16;

interface Executed {
  readonly index: number;
  readonly command: Command;
}

interface Told {
  readonly executed: readonly Executed[];
  /** Whether the replica executed a different command at the same index after a restart. */
  readonly isTorn: boolean;
  /** Whether the replica executed a command at two indexes. */
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

/** Checks that each index has only one value. */
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

/** An upper bound on sequence numbers. The sequence numbers of a run are far below it. */
const SEQUENCES = 2 ** 32;

/** Returns whether the primary and 2f distinct backups have signed the same assignment. */
const isCertificate = (state: State, { prePrepare, prepares }: Certificate): boolean =>
  prePrepare.by === primaryOf(state, prePrepare.value.view) &&
  areDistinct([prePrepare.by, ...prepares.map(({ by }) => by)]) &&
  prepares.filter(({ value }) => isSame(value, prePrepare.value)).length >= quorum(state) - 1;

/** Returns whether 2f + 1 distinct replicas have signed the same checkpoint. */
const isVouchedFor = (state: State, sequence: number, proof: readonly Signed<Checkpoint>[]): boolean =>
  new Set(proof.map(({ value }) => `${value.sequence} ${value.digest}`)).size <= 1 &&
  (sequence === 0 || (proof[0]?.value.sequence === sequence && proof.length >= quorum(state))) &&
  areDistinct(proof.map(({ by }) => by));

const certified: Property<Pbft> = {
  name: "prepared certificates",
  claim:
    "2f backups agree to every batch prepared at a correct replica, and each sequence number has only one batch per view",
  when: "always",
  holds({ alive, state }: World<State>) {
    const digests = new Places<string>((a, b) => a === b);
    for (const node of alive)
      for (const { prepared } of Object.values(state(node).slots)) {
        if (prepared === null) continue;
        const { view, sequence, digest } = prepared.prePrepare.value;
        if (!isCertificate(state(node), prepared)) return false;
        if (!digests.admit(view * SEQUENCES + sequence, digest)) return false;
      }
    return true;
  },
};

const isBacked = (state: State, { view, stable, proof, prepared }: ViewChange): boolean =>
  isVouchedFor(state, stable, proof) &&
  prepared.every(
    (certificate) =>
      isCertificate(state, certificate) &&
      certificate.prePrepare.value.view < view &&
      certificate.prePrepare.value.sequence > stable,
  );

const viewChanges: Property<Pbft> = {
  name: "view changes",
  claim: "a correct replica accepts a view change only with certificates for its entire content",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    alive.every((node) =>
      [...Object.values(state(node).viewChanges), ...(state(node).newView?.viewChanges ?? [])].every(({ value }) =>
        isBacked(state(node), value),
      ),
    ),
};

/**
 * Returns whether the new view follows §4.4: for each number, the digest from the certificate of the latest view, or
 * the null request.
 */
function isFollowed(state: State, { view, viewChanges, prePrepares }: NewView): boolean {
  const values = viewChanges.map(({ value }) => value);
  const from = Math.max(...values.map(({ stable }) => stable));
  const latest = new Map<number, Assignment>();
  for (const { prepared } of values)
    for (const { prePrepare } of prepared) {
      const { sequence } = prePrepare.value;
      if (prePrepare.value.view >= (latest.get(sequence)?.view ?? 0)) latest.set(sequence, prePrepare.value);
    }
  const upTo = Math.max(from, ...latest.keys());
  return (
    viewChanges.length >= quorum(state) &&
    areDistinct(viewChanges.map(({ by }) => by)) &&
    values.every((value) => value.view === view) &&
    prePrepares.length === upTo - from &&
    prePrepares.every(
      ({ by, value }, at) =>
        by === primaryOf(state, view) &&
        value.view === view &&
        value.sequence === from + 1 + at &&
        value.digest === (latest.get(value.sequence)?.digest ?? NOTHING),
    )
  );
}

const newViews: Property<Pbft> = {
  name: "new views",
  claim: "a correct replica begins a view with exactly the assignments that follow from 2f + 1 view changes",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    alive.every((node) => {
      const { newView } = state(node);
      return newView === null || isFollowed(state(node), newView);
    }),
};

/** Returns a view with 2f + 1 commits for the committed digest, as far as this replica still has the commits. */
function committedIn(state: State, { committed, commits }: Slot): number | null {
  const values = Object.values(commits).map(({ value }) => value);
  const views = values.filter(({ digest }) => digest === committed).map(({ view }) => view);
  return views.find((view) => views.filter((each) => each === view).length >= quorum(state)) ?? null;
}

/** Compares certificates instead of pre-prepares, because a Byzantine primary can assign the same number twice. */
const carriedOver: Property<Pbft> = {
  name: "committed batches",
  claim:
    "in every later view, correct replicas prepare only the batch that 2f + 1 replicas have committed at that sequence number",
  when: "always",
  holds({ alive, state }: World<State>) {
    const committed = new Map<number, Assignment>();
    for (const node of alive)
      for (const [sequence, slot] of entriesIn(state(node).slots)) {
        const view = slot.committed === null ? null : committedIn(state(node), slot);
        if (view !== null) committed.set(sequence, { view, sequence, digest: slot.committed as string });
      }
    return alive.every((node) =>
      [...committed].every(([sequence, { view, digest }]) => {
        const later = state(node).slots[sequence]?.prepared?.prePrepare.value;
        return later === undefined || later.view < view || later.digest === digest;
      }),
    );
  },
};

/** Checks that other replicas have stored, unaltered, the votes that a correct replica cast in its current view. */
const votes: Property<Pbft> = {
  name: "votes",
  claim: "every vote that a correct replica stores from another correct replica was cast by that replica",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    alive.every((node) =>
      entriesIn(state(node).slots).every(([sequence, slot]) =>
        (["prepares", "commits"] as const).every((kind) =>
          entriesIn(slot[kind]).every(([by, { value }]) => {
            if (by === node || !alive.includes(by)) return true;
            const { view, isChanging, slots, stable } = state(by);
            const own = slots[sequence]?.[kind][by]?.value;
            const isPast = view > value.view || (view === value.view && isChanging) || stable.sequence >= sequence;
            return isPast || (own !== undefined && (own.view > value.view || isSame(own, value)));
          }),
        ),
      ),
    ),
};

const totalOrder: Property<Pbft> = {
  name: "total order",
  claim: "no two correct replicas execute different commands at the same position",
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
  claim: "a correct replica executes each command at most once",
  when: "always",
  history: told,
  holds: ({ nodes, history }) => nodes.every((node) => !history<Told>(node).isTwice),
};

const stableCheckpoints: Property<Pbft> = {
  name: "stable checkpoints",
  claim:
    "every checkpoint that is stable at a correct replica is certified by 2f + 1 replicas, and each sequence number has only one state",
  when: "always",
  holds({ alive, state }: World<State>) {
    const digests = new Places<string>((a, b) => a === b);
    for (const node of alive) {
      const { stable, snapshots, goal } = state(node);
      const vouching = stable.proof.filter(({ value }) => value.digest === stable.digest);
      if (stable.sequence > 0 && vouching.length < quorum(state(node))) return false;
      if (!isVouchedFor(state(node), stable.sequence, stable.proof)) return false;
      if (goal !== null && !isVouchedFor(state(node), goal.sequence, goal.proof)) return false;
      for (const { sequence, digest } of [stable, ...snapshots])
        if (digest !== "" && !digests.admit(sequence, digest)) return false;
    }
    return true;
  },
};

const watermarks = ({ window }: PbftOptions): Property<Pbft> => ({
  name: "watermarks",
  claim: "a correct replica stores no sequence number outside its window",
  when: "always",
  holds: ({ alive, state }: World<State>) =>
    alive.every((node) => {
      const { stable, slots, executed } = state(node);
      const [low, high] = [stable.sequence, stable.sequence + window];
      return executed >= low && Object.keys(slots).every((each) => Number(each) > low && Number(each) <= high);
    }),
});

/** Returns the properties that hold with these options. */
export const propertiesWith = (options: PbftOptions): readonly Property<Pbft>[] => [
  certified,
  viewChanges,
  newViews,
  carriedOver,
  votes,
  totalOrder,
  executedOnce,
  stableCheckpoints,
  watermarks(options),
];

/** Checks watches: each must report every change once, in order, starting with the watch's first revision. */
import type { Change, Entry } from "../../../src/index.ts";

/** A watch, from its first revision until it ended or its process did. */
export class Watched {
  readonly changes: Change<string>[] = [];

  constructor(
    readonly owner: string,
    readonly after: number,
    /** The entries at that revision, if they were read. */
    readonly entries: readonly Entry<string>[] | null,
  ) {}

  get last(): number {
    return this.changes.at(-1)?.revision ?? this.after;
  }
}

const textOf = (change: Change<string>): string => (change.type === "put" ? `= ${change.value}` : "deleted");

export class Watches {
  readonly #all: Watched[] = [];
  /** Acknowledged writes and their revisions. */
  readonly #acknowledged: { readonly key: string; readonly value: string; readonly revision: number }[] = [];
  /** Writes that were reported as never sent. */
  readonly #neverWritten = new Set<string>();

  begin(owner: string, after: number, entries: readonly Entry<string>[] | null): Watched {
    const watched = new Watched(owner, after, entries);
    this.#all.push(watched);
    return watched;
  }

  acknowledge(key: string, value: string, revision: number): void {
    this.#acknowledged.push({ key, value, revision });
  }

  neverWritten(value: string): void {
    this.#neverWritten.add(value);
  }

  get told(): number {
    return this.#all.reduce((sum, { changes }) => sum + changes.length, 0);
  }

  /** The number of watches that began with the current entries because early changes had been compacted. */
  get fromEntries(): number {
    return this.#all.filter(({ entries }) => entries !== null).length;
  }

  latestOf(owner: string): Watched | undefined {
    return this.#all.findLast((each) => each.owner === owner);
  }

  /**
   * @throws Error if the changes reported by a watch differ from another watch's changes or from the acknowledged
   * writes
   */
  judge(): void {
    const all = this.#together();
    const revisions = [...all.keys()].sort((a, b) => a - b);
    for (const watched of this.#all) {
      const told = new Map<number, number>();
      for (const { revision } of watched.changes) told.set(revision, (told.get(revision) ?? 0) + 1);
      for (const revision of revisions) {
        if (revision <= watched.after || revision >= watched.last) continue; // The last revision may be incomplete.
        const keys = all.get(revision) as Map<string, string>;
        const had = told.get(revision) ?? 0;
        if (had !== keys.size)
          throw new Error(
            `${watched.owner} received ${had} of ${keys.size} changes of revision ${revision}, from ${watched.after} to ${watched.last}: ${[...keys]}`,
          );
      }
    }
    this.#holdAcknowledged(all);
    this.#beginAsTold(all, revisions);
  }

  /**
   * Returns the changes that any watch reported, by revision and key. Checks that all watches reported the same
   * changes, once and in order.
   */
  #together(): Map<number, Map<string, string>> {
    const all = new Map<number, Map<string, string>>();
    for (const { owner, after, changes } of this.#all) {
      let last = after;
      let keys = new Set<string>();
      for (const change of changes) {
        const { revision, key } = change;
        if (revision !== last) keys = new Set();
        if (revision <= after || revision < last || keys.has(key))
          throw new Error(`${owner} received ${key} at ${revision} after ${last}`);
        keys.add(key);
        last = revision;
        const text = textOf(change);
        const known = all.get(revision) ?? new Map<string, string>();
        if ((known.get(key) ?? text) !== text)
          throw new Error(`${owner} received ${text} for ${key} at ${revision}, another watch ${known.get(key)}`);
        all.set(revision, known.set(key, text));
        if (change.type === "put" && this.#neverWritten.has(change.value))
          throw new Error(`${owner} received ${change.value}, which was reported as never sent`);
      }
    }
    return all;
  }

  #holdAcknowledged(all: ReadonlyMap<number, ReadonlyMap<string, string>>): void {
    for (const { key, value, revision } of this.#acknowledged) {
      const isCovered = this.#all.some(({ after, last }) => after < revision && revision < last);
      if (isCovered && all.get(revision)?.get(key) !== `= ${value}`)
        throw new Error(
          `${key} = ${value} was acknowledged at ${revision}, where watches were told ${[...(all.get(revision) ?? [])]}`,
        );
    }
  }

  /** Checks that a watch's initial entries are the result of all earlier changes. */
  #beginAsTold(all: ReadonlyMap<number, ReadonlyMap<string, string>>, revisions: readonly number[]): void {
    const whole = Math.max(...this.#all.map(({ after, last }) => (after === 0 ? last : 0)));
    for (const { owner, after, entries } of this.#all) {
      if (entries === null || after >= whole) continue;
      const stood = new Map<string, string>();
      for (const revision of revisions)
        if (revision <= after) for (const [key, text] of all.get(revision) ?? []) stood.set(key, text);
      const expected = [...stood].filter(([, text]) => text !== "deleted").map(([key, text]) => `${key} ${text}`);
      const found = entries.map(({ key, value }) => `${key} = ${value}`);
      if (expected.sort().join() !== found.sort().join())
        throw new Error(`${owner} read ${found} at ${after}, where changes come to ${expected}`);
    }
  }
}

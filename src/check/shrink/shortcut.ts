/** A shorter way on: what leaving out moves cannot find, since it takes other moves. */
import type { Vocabulary } from "../../core/protocol.ts";
import type { Model } from "../model.ts";
import type { Taken } from "../path.ts";
import { StateStore } from "../state-store.ts";

/** A move to be made, how the handler's choices fell, and how much was sent, where that is known and makes a difference. */
export type Wanted<V extends Vocabulary> = Pick<Taken<V>, "move" | "choices"> & {
  readonly sends?: { readonly length: number };
};

export interface ShortcutOptions {
  /** The most moves of the way. */
  readonly maxMoves: number;
  /** After so many states the search is given up. */
  readonly maxStates: number;
}

/** The least moves from a state to one that is wanted; null if there is none within the bounds. */
export function shortcut<V extends Vocabulary>(
  model: Model<V>,
  from: Int32Array,
  isWanted: (tuple: Int32Array) => boolean,
  { maxMoves, maxStates }: ShortcutOptions,
): Wanted<V>[] | null {
  const store = new StateStore(model.width);
  const found: { readonly parent: number; readonly depth: number }[] = [{ parent: -1, depth: 0 }];
  store.add(from);
  const tuple = new Int32Array(model.width);
  let goal = -1;
  for (let id = 0; id < found.length && goal < 0 && found.length < maxStates; id++) {
    const depth = (found[id]?.depth ?? 0) + 1;
    if (depth > maxMoves) return null;
    store.read(id, tuple);
    model.expand(tuple, () => {
      const added = store.add(model.next);
      if (added < 0) return false;
      found.push({ parent: id, depth });
      if (isWanted(model.next)) goal = added;
      return goal >= 0;
    });
  }
  return goal < 0 ? null : wayTo(goal);

  function wayTo(state: number): Wanted<V>[] {
    const parent = found[state]?.parent ?? -1;
    return parent < 0 ? [] : [...wayTo(parent), between(parent, state)];
  }

  function between(before: number, after: number): Wanted<V> {
    const [start, end] = [new Int32Array(model.width), new Int32Array(model.width)];
    store.read(before, start);
    store.read(after, end);
    let way: Wanted<V> | null = null;
    model.expand(start, (move, outcome) => {
      if (!end.every((value, i) => value === model.next[i])) return false;
      way = { move: move(), choices: outcome?.choices ?? [], sends: outcome?.sends ?? [] };
      return true;
    });
    return way as unknown as Wanted<V>;
  }
}

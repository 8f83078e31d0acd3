/** Strongly connected components (Tarjan, SIAM J. Comput. 1972), without recursion: state graphs are deep. */

/**
 * Calls `each` with the members of every component that can be reached from the roots, a component after those that it
 * leads to. `successors` is asked once for each state; false from `each` ends the search.
 *
 * @param size states are 0 … size − 1
 */
export function components(
  size: number,
  roots: Iterable<number>,
  successors: (state: number) => readonly number[],
  each: (members: readonly number[]) => boolean,
): void {
  /** When the state was met, from 1; 0: not yet. */
  const met = new Int32Array(size);
  /** The earliest state, by when it was met, that it is known to lead back to. */
  const low = new Int32Array(size);
  /** Met, and its component is not complete yet. */
  const open: number[] = [];
  const isOpen = new Uint8Array(size);
  /** The way to the state that is being looked at, what each state leads to, and how much of that has been looked at. */
  const way: number[] = [];
  const leads: (readonly number[])[] = [];
  const done: number[] = [];
  let clock = 0;

  function meet(state: number): void {
    met[state] = low[state] = ++clock;
    isOpen[state] = 1;
    open.push(state);
    way.push(state);
    leads.push(successors(state));
    done.push(0);
  }

  /** Looks at the next successor of the last state on the way; leaves the state if there is none. */
  function goOn(): boolean {
    const at = way.length - 1;
    const state = way[at] as number;
    const next = (leads[at] as readonly number[])[done[at] as number];
    if (next === undefined) return leave(state);
    done[at] = (done[at] as number) + 1;
    if (met[next] === 0) meet(next);
    else if (isOpen[next] === 1) low[state] = Math.min(low[state] as number, met[next] as number);
    return true;
  }

  function leave(state: number): boolean {
    way.pop();
    leads.pop();
    done.pop();
    const before = way.at(-1);
    if (before !== undefined) low[before] = Math.min(low[before] as number, low[state] as number);
    if (low[state] !== met[state]) return true;
    const members = open.splice(open.lastIndexOf(state));
    for (const member of members) isOpen[member] = 0;
    return each(members);
  }

  for (const root of roots) {
    if (met[root] !== 0) continue;
    meet(root);
    while (way.length > 0) if (!goOn()) return;
  }
}

/**
 * Command histories, the paper's c-structs: sequences of commands, where two are equal that differ in the order of commuting commands
 * alone. What a command depends on is its cone: those before it with which it interferes, and theirs.
 */
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import type { Interferes } from "./interference.ts";

export type History = readonly Command[];

export const contains = (history: History, command: Command): boolean =>
  history.some((each) => isSameCommand(each, command));

/** The least prefix (⊑) of the history that has the command at this place. */
function cone(history: History, place: number, interferes: Interferes): Command[] {
  const found: Command[] = [history[place] as Command];
  for (let before = place - 1; before >= 0; before--) {
    const command = history[before] as Command;
    if (found.some((later) => interferes(command, later))) found.unshift(command);
  }
  return found;
}

/** Whether they have the same commands, and those that interfere in the same order. */
function isEqual(a: History, b: History, interferes: Interferes): boolean {
  if (a.length !== b.length) return false;
  const places = a.map((command) => b.findIndex((other) => isSameCommand(other, command)));
  return places.every(
    (place, at) =>
      place >= 0 &&
      places.every(
        (other, before) => before >= at || other < place || !interferes(a[before] as Command, a[at] as Command),
      ),
  );
}

/** The history with those that it has not appended, in their order. */
const extended = (history: History, commands: History): Command[] => [
  ...history,
  ...commands.filter((command) => !contains(history, command)),
];

/** How many commands all of them begin with, in one order. */
function sharedStart([first = [], ...others]: readonly History[]): number {
  const isShared = (command: Command, place: number): boolean =>
    others.every((history) => history[place] !== undefined && isSameCommand(history[place], command));
  const end = first.findIndex((command, place) => !isShared(command, place));
  return end < 0 ? first.length : end;
}

/**
 * ⊔ over all sets of `count` histories of the ⊓ of the set: each command that `count` of them have with the same cone. The sets have to
 * meet in pairs, so that what they have in common is compatible.
 */
export function common(histories: readonly History[], count: number, interferes: Interferes): Command[] {
  if (histories.length < count) return [];
  const start = sharedStart(histories); // What is before a command in all of them is the same, and so is its cone.
  let found = histories[0]?.slice(0, start) ?? [];
  for (const history of histories)
    for (const [place, command] of history.entries()) {
      if (place < start || contains(found, command)) continue;
      const own = cone(history, place, interferes);
      const equal = histories.filter((other) => {
        const at = other.findIndex((each) => isSameCommand(each, command));
        return at >= 0 && isEqual(own, cone(other, at, interferes), interferes);
      });
      if (equal.length >= count) found = extended(found, own);
    }
  return found;
}

/** What is done to a run at the cursor makes another run, whose link says what was done and where. */
import type { ShownRun } from "./engine/answers.ts";
import { type Fork, forksOf, forksText, type Words } from "./engine/recipe.ts";

export function afterAct(words: Words, { steps, forks }: ShownRun, step: number, done: Omit<Fork, "entries">): Words {
  const entries = steps[step]?.entries ?? 0;
  // What was done later than this is undone by it.
  const kept = forks.filter((fork) => fork.entries <= entries);
  return { ...withoutCursor(words), fork: forksText([...kept, { entries, ...done }]) };
}

export function withoutLastFork(words: Words): Words {
  const left = forksOf(words.fork ?? "").slice(0, -1);
  const { fork: _fork, ...rest } = withoutCursor(words);
  return left.length === 0 ? rest : { ...rest, fork: forksText(left) };
}

function withoutCursor({ at: _at, ...words }: Words): Words {
  return words;
}

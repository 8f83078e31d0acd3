/**
 * Forks runs. An act at the cursor creates a new run, whose link contains the acts and where they happen. Replaced acts
 * stay in the link as additional branches. Together, the branches form a tree whose root is the original run.
 */
import type { ShownRun } from "./engine/answers.ts";
import { BETWEEN_BRANCHES, type Fork, forksOf, forksText, linkLength, MAX_LINK, type Words } from "./engine/recipe.ts";

/** The maximum number of branches. If there are more, the oldest ones are dropped. */
const MOST_BRANCHES = 12;

export function afterAct(words: Words, { steps, forks }: ShownRun, step: number, done: Omit<Fork, "entries">): Words {
  const entries = steps[step]?.entries ?? 0;
  // Later acts belong to the previous branch.
  const kept = forks.filter((fork) => fork.entries <= entries);
  return onBranch(words, forksText([...kept, { entries, ...done }]));
}

/** A run, with the step that its cursor is at. */
export interface AtStep {
  readonly run: Pick<ShownRun, "steps">;
  readonly step: number;
}

/** Undoes the last act without keeping it as a branch. The cursor returns to the step of that act. */
export function withoutLastFork(words: Words, cursor: AtStep | null = null): Words {
  const left = forksText(forksOf(words.fork ?? "").slice(0, -1));
  return keepingPlace(words, withBranches(words, left, branchesOf(words)), cursor);
}

/** Undoes one of the acts and keeps the others. The run that includes the act is kept as a branch. */
export function withoutFork(words: Words, place: number, cursor: AtStep | null = null): Words {
  const left = forksText(forksOf(words.fork ?? "").filter((_fork, index) => index !== place));
  return keepingPlace(words, onBranch(words, left), cursor);
}

/** Selects the branch with these acts, and keeps the current one as a branch. */
export function onBranch(words: Words, fork: string, cursor: AtStep | null = null): Words {
  const there = withBranches(words, fork, [...branchesOf(words), forksText(forksOf(words.fork ?? ""))]);
  // A branch with acts of its own begins at its last act.
  const isEarlier = isWithin(forksText(forksOf(fork)), forksText(forksOf(words.fork ?? "")));
  return isEarlier ? keepingPlace(words, there, cursor) : there;
}

/**
 * Moves the cursor to the first act that differs. Keeps the cursor if it is before that act, because both runs are
 * equal up to there.
 */
function keepingPlace(before: Words, after: Words, cursor: AtStep | null): Words {
  if (cursor === null) return after;
  const { run, step } = cursor;
  const [old, left] = [forksOf(before.fork ?? ""), forksOf(after.fork ?? "")];
  const changed = old.find((act, place) => forksText([act]) !== forksText(left.slice(place, place + 1)));
  if (changed === undefined) return { ...after, at: String(step) };
  const done = run.steps.findLastIndex(({ entries }) => entries <= changed.entries);
  return { ...after, at: String(Math.min(step, done)) };
}

const branchesOf = ({ branches = "" }: Words): string[] =>
  branches.split(BETWEEN_BRANCHES).map((text) => forksText(forksOf(text)));

const isWithin = (inner: string, outer: string): boolean =>
  outer === inner || inner === "" || outer.startsWith(`${inner};`);

/** Adds as many branches as fit, leaving out those that are contained in others. */
function withBranches(words: Words, fork: string, branches: readonly string[]): Words {
  const { at: _at, fork: _fork, branches: _branches, ...rest } = words;
  const kept = branches.filter(
    (each, place) =>
      !isWithin(each, fork) && !branches.some((other, at) => isWithin(each, other) && (each !== other || at > place)),
  );
  const made = (some: readonly string[]): Words => ({
    ...rest,
    ...(fork === "" ? {} : { fork }),
    ...(some.length === 0 ? {} : { branches: some.join(BETWEEN_BRANCHES) }),
  });
  let some = kept.slice(-MOST_BRANCHES);
  while (some.length > 0 && linkLength(made(some)) > MAX_LINK) some = some.slice(1);
  return made(some);
}

/** One run in the tree: the result of an act after the acts above it. */
export interface ForkNode {
  /** All acts so far, in the format used in links. Empty for the original run. */
  readonly fork: string;
  /** The last act. Null for the original run. */
  readonly act: Fork | null;
  readonly stand: "shown" | "above" | "aside";
  readonly children: readonly ForkNode[];
}

export function forkTreeOf(words: Words): ForkNode {
  const shown = forksText(forksOf(words.fork ?? ""));
  const all = [...branchesOf(words), shown].filter((text) => text !== "");
  const made = (fork: string, act: Fork | null): ForkNode => {
    const next = new Map<string, Fork>();
    for (const text of all.filter((each) => isWithin(fork, each))) {
      const acts = forksOf(text);
      const own = fork === "" ? 0 : forksOf(fork).length;
      const further = acts[own];
      if (further !== undefined) next.set(forksText(acts.slice(0, own + 1)), further);
    }
    const stand = fork === shown ? "shown" : isWithin(fork, shown) ? "above" : "aside";
    return { fork, act, stand, children: [...next].map(([text, each]) => made(text, each)) };
  };
  return made("", null);
}

/** The maximum indentation. It is limited because the column is narrow. */
const MAX_DEPTH = 4;

interface ListedRun {
  readonly node: ForkNode;
  /** The indentation. Only alternatives are indented; successive acts are listed below each other. */
  readonly depth: number;
  /** Whether this run continues the run above it at the same depth. */
  readonly continues: boolean;
}

/** Returns all runs in a tree, in the order they are listed. */
export function listed(node: ForkNode, depth = 0, continues = false): ListedRun[] {
  const hasAlternatives = node.act === null || node.children.length > 1;
  const below = hasAlternatives ? Math.min(depth + 1, MAX_DEPTH) : depth;
  return [{ node, depth, continues }, ...node.children.flatMap((child) => listed(child, below, below === depth))];
}

export function actText({ act, node, what }: Fork): string {
  switch (act) {
    case "start":
      return `recover node ${node}`;
    case "timer":
      return `fire ${what} on node ${node}`;
    case "command":
      return `command node ${node}: ${what}`;
    case "lose":
    case "duplicate":
    case "delay":
      return `${act} a message to ${node}`;
    case "cut":
    case "slow":
      return `${act} the link ${node} – ${what}`;
    case "isolate":
      return `isolate node ${node}`;
    case "heal":
      return "heal all cuts";
    default:
      return `${act} node ${node}`;
  }
}

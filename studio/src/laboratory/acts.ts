/** Describes the actions available at the cursor, for menus and for the palette. */
import type { Look, ShownRun } from "./engine/answers.ts";
import { isCutText } from "./engine/network-turns.ts";
import type { Fork } from "./engine/recipe.ts";

export interface Act {
  readonly label: string;
  /** The target node. Null if the target is a message or the network. */
  readonly node: number | null;
  /** The id of the target message. Null if the target is not a message. */
  readonly message: string | null;
  readonly done: Omit<Fork, "entries">;
}

/**
 * Returns the actions available at the cursor. Empty if the states are unknown, because such a run cannot be forked.
 */
export function actsAt(
  { step, nodes, inFlight, hasStates }: Look,
  { verb, drawing }: Pick<ShownRun, "verb" | "drawing">,
): Act[] {
  if (!hasStates) return [];
  const ids = nodes.map(({ node }) => node);
  const { steps, networks } = drawing.axes.time;
  const now = steps[step] ?? 0;
  // Use the conditions at the cursor, because a fork continues with them.
  const network = networks.findLast(({ since }) => since <= now)?.words ?? "";
  return [
    ...nodes.flatMap((node) => actsOn(node, ids, verb)),
    ...inFlight.flatMap(({ id, from, to, text }): Act[] => {
      const what = `${text}, ${from} → ${to}`;
      const act = (label: string, name: Fork["act"]): Act => ({
        label: `${label}: ${what}`,
        node: null,
        message: id,
        done: { act: name, node: to, what: id },
      });
      return [act("Lose", "lose"), act("Duplicate", "duplicate"), act("Delay by 100 ms", "delay")];
    }),
    ...(network.split("; ").some(isCutText)
      ? [
          {
            label: "Heal all cuts",
            node: null,
            message: null,
            done: { act: "heal" as const, node: ids[0] ?? 0, what: "" },
          },
        ]
      : []),
  ];
}

function actsOn(
  { node, condition, timers }: Look["nodes"][number],
  ids: readonly number[],
  verb: string | null,
): Act[] {
  const act = (label: string, name: Fork["act"], what = ""): Act => ({
    label,
    node,
    message: null,
    done: { act: name, node, what },
  });
  if (condition === "down") return [act(`Recover node ${node}`, "start")];
  const others = ids.filter((other) => other !== node);
  return [
    act(`Crash node ${node}`, "crash"),
    condition === "paused" ? act(`Resume node ${node}`, "resume") : act(`Pause node ${node}`, "pause"),
    ...(condition === "paused" ? [] : timers.map((timer) => act(`Fire ${timer} on node ${node} now`, "timer", timer))),
    ...(verb === null || condition === "paused" ? [] : [act(`Command node ${node}: ${verb}`, "command", verb)]),
    act(`Isolate node ${node}`, "isolate"),
    ...others.map((other) => act(`Cut the link ${node} – ${other}`, "cut", String(other))),
    ...others.map((other) => act(`Slow the link ${node} – ${other} to 100 ms`, "slow", String(other))),
  ];
}

/** Returns the items whose labels contain all words in the text, in any order. */
export function matching<T extends { readonly label: string }>(items: readonly T[], written: string): T[] {
  const words = written.toLowerCase().split(/\s+/);
  return items.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word)));
}

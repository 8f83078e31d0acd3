/** The commands that the studio offers: those that a member accepts and that need no input beyond a button. */
import { groupCommandShapes } from "../../protocols/multicast/parts/layers.ts";

/** Fields with content: the payload of a multicast, and a proposed value. */
const SAID = ["payload", "value"];
/** Fields that say how much work a workload does. */
const COUNTS = ["entries", "messages", "commands", "transactions"];
/** Fields with a key to look up. */
const KEYS = ["key"];
/** The distance between consecutive keys. */
const KEYS_APART = 97;

/** Commands in a member's status: by name, with the names of their fields. */
type Commands = Readonly<Record<string, readonly string[]>>;

export function offeredCommands(commands: Commands): string[] {
  const isOffered = (name: string): boolean =>
    ["", ...SAID, ...COUNTS, ...KEYS].includes(commands[name]?.join() ?? "none");
  return Object.keys(commands).filter((name) => isOffered(name) && !Object.hasOwn(groupCommandShapes, name));
}

/**
 * A command as the member accepts it, with made-up content. Workloads run once.
 * @param turn the number of the command, from 1
 */
export function commandNamed(commands: Commands, name: string, turn: number): object {
  const [first = "", ...rest] = name.split(".");
  const content = (field: string): string | number =>
    COUNTS.includes(field) ? 1 : KEYS.includes(field) ? turn * KEYS_APART : `greeting ${turn}`;
  const said = Object.fromEntries((commands[name] ?? []).map((field) => [field, content(field)]));
  return rest.length === 0 ? { type: first, ...said } : { type: first, body: { type: rest.join("."), ...said } };
}

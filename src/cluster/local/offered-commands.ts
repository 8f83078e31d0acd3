/** The commands that the studio offers: those that a member accepts and that need no input. */
import { groupCommandShapes } from "../../protocols/multicast/parts/layers.ts";

/** Fields for content: the payload of a multicast, or a proposed value. */
const SAID = ["payload", "value"];
/** Fields for the amount of work in a workload. */
const COUNTS = ["entries", "messages", "commands", "transactions"];
/** Fields for a key to look up. */
const KEYS = ["key"];
/** The distance between consecutive generated keys. */
const KEYS_APART = 97;

/** The commands in a member's status, with the names of their fields. */
type Commands = Readonly<Record<string, readonly string[]>>;

/** Returns the names of the commands that the studio can build. */
export function offeredCommands(commands: Commands): string[] {
  const isOffered = (name: string): boolean =>
    ["", ...SAID, ...COUNTS, ...KEYS].includes(commands[name]?.join() ?? "none");
  return Object.keys(commands).filter((name) => isOffered(name) && !Object.hasOwn(groupCommandShapes, name));
}

/**
 * Returns the command with generated content, in the form that the member accepts. Workloads run only once.
 * @param turn the number of the command, counted from 1
 */
export function commandNamed(commands: Commands, name: string, turn: number): object {
  const [first = "", ...rest] = name.split(".");
  const content = (field: string): string | number =>
    COUNTS.includes(field) ? 1 : KEYS.includes(field) ? turn * KEYS_APART : `greeting ${turn}`;
  const said = Object.fromEntries((commands[name] ?? []).map((field) => [field, content(field)]));
  return rest.length === 0 ? { type: first, ...said } : { type: first, body: { type: rest.join("."), ...said } };
}

/** The commands that the studio offers: what a member takes and a press of a button can say. */
import { groupCommandShapes } from "../../protocols/multicast/parts/layers.ts";

/** The fields that hold what is said: what a multicast carries, and what is proposed. */
const SAID = ["payload", "value"];
/** How often a workload is to do its work. */
const COUNTS = ["entries", "messages", "commands", "transactions"];
/** What is looked for. */
const KEYS = ["key"];
/** So far apart are the keys of two that follow each other. */
const KEYS_APART = 97;

/** As a member's status has them: by name, with the names of their fields. */
type Commands = Readonly<Record<string, readonly string[]>>;

export function offeredCommands(commands: Commands): string[] {
  const isOffered = (name: string): boolean =>
    ["", ...SAID, ...COUNTS, ...KEYS].includes(commands[name]?.join() ?? "none");
  return Object.keys(commands).filter((name) => isOffered(name) && !Object.hasOwn(groupCommandShapes, name));
}

/**
 * One of them as the member takes it. What there is to say is made up: it matters to nobody. Work is done once.
 * @param turn how many there have been, with this one
 */
export function commandNamed(commands: Commands, name: string, turn: number): object {
  const [first = "", ...rest] = name.split(".");
  const content = (field: string): string | number =>
    COUNTS.includes(field) ? 1 : KEYS.includes(field) ? turn * KEYS_APART : `greeting ${turn}`;
  const said = Object.fromEntries((commands[name] ?? []).map((field) => [field, content(field)]));
  return rest.length === 0 ? { type: first, ...said } : { type: first, body: { type: rest.join("."), ...said } };
}

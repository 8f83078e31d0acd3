/**
 * The wires of a system of which a member has some parts once for all names, such as the failure detector. They are those that the
 * algorithm declares, and that the checker explores; only who is at their other end is the driver's.
 */
import type { Tagged } from "../../core/protocol.ts";
import type { WireTable } from "../../protocols/system.ts";

/** An event of an algorithm: whatever else it carries is looked at by name. */
export type AlgorithmEvent = Tagged & Readonly<Record<string, unknown>>;

type Give = (part: string, command: Tagged) => void;

export interface Wired {
  /** A shared part has emitted it. What that gives to other shared parts is given once, by the member that has them. */
  onShared(event: AlgorithmEvent): void;
  /** Its own part has. */
  onOwn(event: AlgorithmEvent): void;
}

/**
 * @param own the part that is not shared.
 * @param take does what it is given.
 * @param share has what it gives to shared parts.
 */
export function wired(own: string, wires: WireTable, take: (command: Tagged) => void, share: Give = () => {}): Wired {
  const shared = Object.entries(wires).filter(([part]) => part !== own);
  // No two parts that a member shares emit events of one name.
  const fromShared: WireTable[string] = Object.assign({}, ...shared.map(([, table]) => table));
  const only: Give = (part, command) => (part === own ? take(command) : undefined);
  const give: Give = (part, command) => (part === own ? take(command) : share(part, command));
  return {
    onShared: (event) => fromShared[event.type]?.(event, only),
    onOwn: (event) => wires[own]?.[event.type]?.(event, give),
  };
}

/** Does what stands under the type of a command. */
export const by =
  // biome-ignore lint/suspicious/noExplicitAny: the part that gives a command says what is in it
    (commands: Readonly<Record<string, (command: any) => void>>) =>
    (command: Tagged): void =>
      commands[command.type]?.(command);

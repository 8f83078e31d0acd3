/**
 * The wires of an assembly whose parts a member partly shares among all names, such as the failure detector. They are the
 * ones that the algorithm declares and the checker explores; only the shared parts are provided by the driver.
 */
import type { Tagged } from "../../core/protocol.ts";
import type { WireTable } from "../../protocols/system.ts";

/** An event of an algorithm; its other fields are read by name. */
export type AlgorithmEvent = Tagged & Readonly<Record<string, unknown>>;

type Give = (part: string, command: Tagged) => void;

export interface Wired {
  /** A shared part has emitted the event. Its effects on other shared parts happen once, in the member that owns them. */
  onShared(event: AlgorithmEvent): void;
  /** The part that is not shared has emitted the event. */
  onOwn(event: AlgorithmEvent): void;
}

/**
 * @param own the part that is not shared.
 * @param take receives commands for it.
 * @param share receives commands for shared parts.
 */
export function wired(own: string, wires: WireTable, take: (command: Tagged) => void, share: Give = () => {}): Wired {
  const shared = Object.entries(wires).filter(([part]) => part !== own);
  // No two shared parts emit events of the same name.
  const fromShared: WireTable[string] = Object.assign({}, ...shared.map(([, table]) => table));
  const only: Give = (part, command) => (part === own ? take(command) : undefined);
  const give: Give = (part, command) => (part === own ? take(command) : share(part, command));
  return {
    onShared: (event) => fromShared[event.type]?.(event, only),
    onOwn: (event) => wires[own]?.[event.type]?.(event, give),
  };
}

/** Calls the handler for the type of a command. */
export const by =
  // biome-ignore lint/suspicious/noExplicitAny: the part that sends a command knows its fields
    (commands: Readonly<Record<string, (command: any) => void>>) =>
    (command: Tagged): void =>
      commands[command.type]?.(command);

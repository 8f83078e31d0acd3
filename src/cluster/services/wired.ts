/**
 * The wires between the parts of a protocol, for a host whose names all share some parts, such as the failure detector.
 * The algorithm declares these wires, and the checker explores them. Only the shared parts are provided by the driver.
 */
import type { Tagged } from "../../core/protocol.ts";
import type { WireTable } from "../../protocols/system.ts";

/** An event from an algorithm. Its other fields are read by name. */
export type AlgorithmEvent = Tagged & Readonly<Record<string, unknown>>;

type Give = (part: string, command: Tagged) => void;

/** Receives the events of shared parts. */
export interface Wired {
  /**
   * Called when a shared part has emitted an event. The event's effects on other shared parts happen only once, in the
   * member that owns these parts.
   */
  onShared(event: AlgorithmEvent): void;
  /** Called when the part that is not shared has emitted an event. */
  onOwn(event: AlgorithmEvent): void;
}

/**
 * @param own the part that is not shared
 * @param take receives commands for that part
 * @param share receives commands for shared parts
 */
export function wired(own: string, wires: WireTable, take: (command: Tagged) => void, share: Give = () => {}): Wired {
  const shared = Object.entries(wires).filter(([part]) => part !== own);
  // No two shared parts emit events with the same name.
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

/**
 * The wires of a system of which a member has some parts once for all names, such as the failure detector. They are those that the
 * algorithm declares, and that the checker explores; only who is at their other end is the driver's.
 */
import type { Tagged } from "../../core/protocol.ts";
import type { WireTable } from "../../protocols/system.ts";
import type { AlgorithmEvent } from "./engine.ts";

/** By type, what a command does. */
// biome-ignore lint/suspicious/noExplicitAny: the part that gives a command says what is in it
export type Commands = Readonly<Record<string, (command: any) => void>>;

export const by =
  (commands: Commands) =>
  (command: Tagged): void =>
    commands[command.type]?.(command);

export class Wired {
  readonly #wires: WireTable;
  /** By event: no two parts that a member shares emit one of the same name. */
  readonly #fromShared: WireTable[string];
  readonly #takeOnly: (part: string, command: Tagged) => void;
  readonly #give: (part: string, command: Tagged) => void;

  /**
   * @param own the part that is not shared.
   * @param take what it is given.
   * @param share what it gives to shared parts.
   */
  constructor(
    private readonly own: string,
    wires: WireTable,
    take: (command: Tagged) => void,
    share: (part: string, command: Tagged) => void = () => {},
  ) {
    this.#wires = wires;
    this.#fromShared = Object.assign({}, ...Object.keys(wires).map((part) => (part === own ? {} : wires[part])));
    this.#takeOnly = (part, command) => {
      if (part === own) take(command);
    };
    this.#give = (part, command) => (part === own ? take(command) : share(part, command));
  }

  /** Whether that shared part tells it anything. */
  listensTo(part: string): boolean {
    return part !== this.own && Object.hasOwn(this.#wires, part);
  }

  /** A shared part has emitted it. What that gives to other shared parts is given once, by the member that has them. */
  onShared(event: AlgorithmEvent): void {
    this.#fromShared?.[event.type]?.(event, this.#takeOnly);
  }

  /** Its own part has. */
  onOwn(event: AlgorithmEvent): void {
    this.#wires[this.own]?.[event.type]?.(event, this.#give);
  }
}

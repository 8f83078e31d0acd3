/** Registry entries for protocols that are defined outside this package, in a user's own file. */
import type { CommandOf, NodeId, Protocol, Vocabulary } from "../core/protocol.ts";
import { type AnyProtocol, type Declaration, entry, type RegistryEntry } from "./entry.ts";
import { consensus, custom, election, type Family, membership, multicast, mutualExclusion } from "./family.ts";
import { requireNoOptions } from "./options.ts";

const families = { election, "mutual exclusion": mutualExclusion, multicast, consensus, membership, custom };

/** A protocol with the information that the tools need to run and show it. */
export interface DefinedProtocol<V extends Vocabulary, O extends object>
  extends Pick<Declaration, "mustStart" | "onRing" | "check" | "shown"> {
  /** The protocol, or a function from its options to the protocol. Every option must have a default. */
  readonly protocol: Protocol<V> | ((options?: O) => Protocol<V>);
  /** A one-line description for lists. Default: the protocol's source. */
  readonly summary?: string;
  /**
   * The problem that the protocol solves. The family provides the workload, the commands and the result of a run, and
   * determines the commands and events that the protocol must have. Default: `custom`, which has no requirements.
   */
  readonly family?: keyof typeof families;
  /**
   * For `custom`: the command that starts a node's work, or a function from a node to its command. `--request` selects
   * the nodes that are given the command. Default: none, because nodes work from their start.
   */
  readonly command?: CommandOf<V> | ((node: NodeId) => CommandOf<V>);
  /** For `custom`: the nodes that are given the command by default. Default: `all`. */
  readonly initiators?: Family["initiators"];
  /** For `custom`: the type of the event that a node emits when its work is done. */
  readonly done?: string;
}

/**
 * Creates the registry entry for a protocol in a file of your own. Export it by default, and pass the file to the
 * command line instead of a protocol's name.
 *
 * @example
 * export default defineProtocol({ protocol: lamport, family: "mutual exclusion" });
 */
export function defineProtocol<V extends Vocabulary, O extends object = Record<never, never>>({
  protocol,
  summary,
  family = "custom",
  command,
  initiators = "all",
  done,
  ...declared
}: DefinedProtocol<V, O>): RegistryEntry {
  const make = typeof protocol === "function" ? protocol : withoutOptions(protocol);
  return entry(
    family === "custom" ? customFamily(command, initiators, done) : families[family],
    summary ?? (make() as AnyProtocol).source,
    make,
    { mustStart: family === "custom" && command === undefined, ...declared },
  );
}

function withoutOptions<V extends Vocabulary>(protocol: Protocol<V>): (options?: object) => Protocol<V> {
  return (options) => {
    requireNoOptions(protocol.name, options);
    return protocol;
  };
}

function customFamily<V extends Vocabulary>(
  command: DefinedProtocol<V, object>["command"],
  initiators: Family["initiators"],
  done: string | undefined,
): Family {
  const end = done === undefined ? null : { event: done, none: `no node emitted ${done}` };
  if (command === undefined) return { ...custom, done: end };
  const ask = typeof command === "function" ? command : (): CommandOf<V> => command;
  return { ...custom, verb: "request", initiators, done: end, ask };
}

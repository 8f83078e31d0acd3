/**
 * An experiment as a value: this system, so many nodes, this workload, this network, these faults, these properties. It is
 * plain data whose fields are the options of the command line. `simulate` plays one run of it, with the network and the
 * faults as they are given; `explore` looks at every run within bounds, or at many random ones. Each refuses options that only the
 * other has.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { type Family, protocolNamed, type RegistryEntry } from "../protocols/index.ts";
import { type ExperimentOption, type experimentOptions, optionsFor } from "./options.ts";
import { flagOf } from "./written-values.ts";

type Options = typeof experimentOptions;

/** Options that are left out have their defaults. */
export type Experiment = { readonly protocol: string } & {
  readonly [K in keyof Options]?: Options[K] extends ExperimentOption<infer T> ? T : never;
};

/** What initiators do, in the verb of each family, and how often. */
const verbs = ["call", "request", "send", "propose"] as const;
const counts = ["entries", "messages", "commands", "transactions"] as const;
/** Options of replicated logs only. */
const ofLogs = ["machine"] as const;

/** Refuses an option of another family, and names the right one. */
export function requireFamilyOptions(experiment: Experiment): void {
  const { protocol } = experiment;
  const { name, verb, count, refuse: veto } = protocolNamed(protocol).family;
  const refuse = (word: string, right: string | null): never => {
    const instead = right === null ? "there is no such option" : `the option is --${right}`;
    throw new UsageError(
      "bad-argument",
      `expected --${word} to be absent: ${protocol} is a protocol for ${name}, where ${instead}`,
    );
  };
  for (const word of verbs) if (experiment[word] !== undefined && word !== verb) refuse(word, verb);
  for (const word of counts) if (experiment[word] !== undefined && word !== count) refuse(word, count);
  for (const word of ofLogs) if (experiment[word] !== undefined && count !== "commands") refuse(word, null);
  if (experiment.voteNo !== undefined && veto === undefined) refuse("vote-no", null);
}

/** Refuses options that only the other of the two uses: they would be ignored. */
export function requireOptionsFor(use: keyof typeof optionsFor, experiment: Experiment): void {
  const [name, other] =
    use === "simulate" ? ["a simulated run", "an exploration"] : ["an exploration", "a simulated run"];
  for (const [word, value] of Object.entries(experiment))
    if (word !== "protocol" && value !== undefined && !Object.hasOwn(optionsFor[use], word))
      throw new UsageError(
        "bad-argument",
        `expected ${flagOf(word)} to be absent: it is an option of ${other}, and this is ${name}`,
      );
}

/** The protocol's own options, and those that have an option of the command line. */
export function optionsOf({
  machine,
  order,
  options,
}: Omit<Experiment, "protocol">): Readonly<Record<string, unknown>> {
  const given: Record<string, unknown> = { ...(order === undefined ? {} : { order }), ...options };
  return machine === undefined ? given : { ...given, machine: { ...(given.machine as object), kind: machine } };
}

/** The Byzantine nodes, with their behavior. */
export const liarsOf = ({
  byzantine,
  traitors,
}: Omit<Experiment, "protocol">): NonNullable<Experiment["byzantine"]> => ({
  ...byzantine,
  ...traitors,
});

/** How often initiators do it; undefined: once. */
export function timesOf({ count }: Family, experiment: Omit<Experiment, "protocol">): number | undefined {
  return count === null ? undefined : experiment[count];
}

/** The ids of the nodes, in the order of the ring. */
export function idsOf(
  { protocol, nodes, ring }: Experiment,
  { onRing }: RegistryEntry,
  many: number,
): readonly NodeId[] {
  if (ring === undefined) return Array.from({ length: nodes ?? many }, (_, id) => id);
  if (onRing === null)
    throw new UsageError("bad-argument", `expected --ring to be absent: ${protocol} does not run on a ring`);
  if (nodes !== undefined && nodes !== ring.length)
    throw new UsageError("bad-argument", unexpected("--nodes", `${ring.length}, as in --ring, or absent`, nodes));
  if (new Set(ring).size < ring.length)
    throw new UsageError("bad-argument", unexpected("--ring", "every node once", ring.join(",")));
  return ring;
}

export function requireKnown(word: string, ids: readonly NodeId[], node: NodeId): void {
  if (ids.includes(node)) return;
  const known = ids.every((id, place) => id === place) ? `from 0 to ${ids.length - 1}` : `among ${ids.join(", ")}`;
  throw new UsageError("bad-argument", unexpected(word, `nodes ${known}`, node));
}

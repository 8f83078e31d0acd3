/**
 * Experiments as values: the protocol, the nodes, the workload, the network, the faults and the properties to check.
 * The fields of an experiment are the options of the command line. Command-line flags, the form of the laboratory and
 * campaign files are derived from them.
 */

import { choices } from "../check/model-options.ts";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { type BehaviourName, behaviourNamed, behaviours } from "../protocols/byzantine.ts";
import { type Family, machineKinds, protocolNamed, type RegistryEntry } from "../protocols/index.ts";
import {
  delay,
  flagOf,
  jsonObject,
  milliseconds,
  nodeList,
  nodesOrAll,
  oneOf,
  type Read,
  rate,
  refuse,
  wholeNumber,
} from "./written-values.ts";

/** An option of an experiment: its help text, the notation for its value, and the function that parses it. */
export interface ExperimentOption<T> {
  /** The help text, or an object with two help texts if simulations and explorations need different ones. */
  readonly help: string | { readonly simulate: string; readonly explore: string };
  /** The placeholder for the value in the help text, such as `<n>`. Null for a switch, whose value is `true`. */
  readonly value: string | null;
  /** The allowed values, if there are only a few. */
  readonly values?: readonly string[];
  /** The value when the flag is given without an argument. */
  readonly preset?: string;
  /** Parses the value. @throws UsageError that names the option */
  readonly read: Read<T>;
}

/** Parses Byzantine nodes and their behaviors, such as `2` or `2,4=mute`. The default behavior is `adversary`. */
export const liars: Read<Readonly<Record<NodeId, BehaviourName>>> = (text, option) =>
  Object.fromEntries(
    text.split(",").map((part): [NodeId, BehaviourName] => {
      const [id = "", how = "adversary"] = part.split("=").map((each) => each.trim());
      const behaviour = behaviourNamed(how);
      if (behaviour === undefined || !/^\d{1,15}$/.test(id))
        refuse(
          option,
          `node ids, each with a behavior (${behaviours.join(", ")}) or without one, such as 2,4=mute`,
          text,
        );
      return [Number(id), behaviour];
    }),
  );

/** Parses the behavior of one Byzantine node. */
export const behaviour: Read<BehaviourName> = (text, option) =>
  behaviourNamed(text) ?? refuse(option, `one of ${behaviours.join(", ")}`, text);

/** Parses a list of traitors, such as `7` or `1,15,9`. A traitor is a Byzantine node that sends arbitrary messages. */
const traitors: Read<Readonly<Record<NodeId, BehaviourName>>> = (text, option) =>
  Object.fromEntries(nodeList(text, option).map((node) => [node, "adversary"]));

type Help = ExperimentOption<unknown>["help"];

/** The largest seed that a simulation can have. */
export const MAX_SEED = 2 ** 32 - 1;
const MANY = 1_000_000_000;

const written = <T>(value: string, read: Read<T>, help: Help): ExperimentOption<T> => ({ help, value, read });
const whole = (help: Help, min = 0, value = "<n>", max = MANY): ExperimentOption<number> =>
  written(value, wholeNumber(min, max), help);
const count = (help: Help, min = 0): ExperimentOption<number> => whole(help, min, "<k>");
const choice = <T extends string>(value: string, values: readonly T[], help: Help): ExperimentOption<T> => ({
  ...written(value, oneOf(...values), help),
  values,
});
const text = (value: string, help: Help): ExperimentOption<string> => written(value, (given) => given, help);
const on = (help: string): ExperimentOption<true> => ({ help, value: null, read: () => true });

/** Options for the nodes and the protocol that they run. */
const systemOptions = {
  nodes: whole(
    {
      simulate: "number of nodes, with ids from 0 (default: 5)",
      explore: "number of nodes, with ids from 0 (default: 3)",
    },
    1,
    "<n>",
    10_000_000,
  ),
  ring: written("<list>", nodeList, "ids in ring order, such as 1,15,9,4"),
  variant: text("<name>", "a variant of the protocol"),
  options: written("<json>", jsonObject, "options of the protocol: see `coterie protocols NAME`"),
  byzantine: written(
    "<list>",
    liars,
    `Byzantine nodes: 2, or 2,4=mute (${behaviours.join(", ")}; default: ${behaviours.at(-1)})`,
  ),
};

/**
 * Options that select the initiators, each named after the verb of its family. In an exploration, each request may come
 * at any time or never.
 */
export const workloadOptions = {
  call: written("<list|all>", nodesOrAll, {
    simulate: "election: which nodes call it (default: the lowest)",
    explore: "election: which nodes may call it (default: the lowest; none if starting is enough)",
  }),
  request: written("<list|all>", nodesOrAll, "mutual exclusion: which nodes request to enter (default: all)"),
  entries: count("mutual exclusion: entries per node (default: 1)", 1),
  send: written("<list|all>", nodesOrAll, "multicast: which nodes send (default: all)"),
  traitors: written("<list>", traitors, "generals: traitors, which send arbitrary messages; the same as --byzantine"),
  order: text("<text>", "generals: the commander's order (default: attack)"),
  messages: count("multicast: messages per node (default: 1)", 1),
  propose: written("<list|all>", nodesOrAll, "consensus: which nodes propose (default: the lowest)"),
  commands: count("replicated logs: commands per node (default: 1)", 1),
  machine: choice("<kind>", machineKinds, "replicated logs: state machine, one of log, map and counter (default: log)"),
  voteNo: written("<list|all>", nodesOrAll, {
    simulate: "atomic commit: which nodes vote no (default: none)",
    explore: "atomic commit: which nodes may vote no (default: none)",
  }),
  transactions: count("atomic commit: transactions per node, one after the other (default: 1)", 1),
};

/** The help text of `until` for a simulated run. */
export const UNTIL = "end the run at this virtual time (default: when idle, at most 600000; 10000 if nodes start)";

/** Options for the network and faults of a simulated run. */
const simulationOptions = {
  crash: written("<list>", nodeList, "nodes that are down at the start"),
  started: on("start all nodes at time 0, instead of beginning with idle nodes"),
  delay: written("<ms>", delay, {
    simulate: "message delay: 10, 1..10, normal:10,2 or lognormal:10,0.5 (default: 10)",
    explore: "with --timers timed: message delay, such as 10 or 1..10",
  }),
  loss: written("<rate>", rate, "fraction of lost messages, 0 to 1"),
  duplicate: written("<rate>", rate, "fraction of duplicated messages, 0 to 1"),
  reorder: on("let messages on the same link overtake each other"),
  until: written("<ms>", milliseconds, UNTIL),
  processing: written("<ms>", delay, "processing time per message"),
  for: written("<ms>", milliseconds, "with --from: how long the run continues (default: 10000)"),
};

/** Options for the orders and faults that an exploration covers. */
const faultOptions = {
  timers: choice(
    "<when>",
    choices.timers,
    "free: at any time; quiet: only when no message is in transit; rounds: as quiet, but on all nodes at once; timed: when due, see --delay; never (default: free)",
  ),
  unit: written("<ms>", milliseconds, "with --timers timed: unit of the clock (default: the longest delay)"),
  drift: written("<rate>", rate, "with --timers timed: maximum drift of clocks, 0 to 1 (default: 0)"),
  begin: choice(
    "<how>",
    choices.begin,
    "idle: all nodes run and are idle; down: each starts at any time; together: all start first",
  ),
  network: choice(
    "<kind>",
    choices.network,
    "fifo: links keep their order; inbox: one queue per node; bag: no order (default: fifo)",
  ),
  crashes: count("maximum number of crashes (default: 0)"),
  withinStep: on("let nodes also crash within a step, before its later messages are sent"),
  recoveries: count("maximum number of restarts after a crash (default: 0)"),
  losses: count("maximum number of lost messages (default: 0)"),
  duplications: count("maximum number of duplicated messages (default: 0)"),
  pauses: count("with --timers timed: maximum number of pauses (default: 0)"),
  pause: written("<ms>", milliseconds, "with --pauses: how long a pause lasts at most"),
  journal: choice("<fate>", choices.journal, "whether a journal is kept or lost in a crash (default: kept)"),
  fewestFaults: on("try without faults, then with one fault, two faults and so on, until a property is violated"),
  failureDetector: {
    ...choice(
      "[when]",
      choices.crashNotifications,
      "notify all alive nodes of a crash, if the protocol handles that: any time, or last, after all messages from the crashed node (default without a value: any)",
    ),
    preset: "any",
  },
};

/** Options for the strategy and bounds of an exploration. */
export const searchOptions = {
  property: text("<name>", "check only this property"),
  strategy: choice(
    "<name>",
    ["bfs", "dfs", ...choices.strategy],
    "bfs and dfs search every run; random, pct and swarm search some (default: bfs)",
  ),
  seed: whole(
    {
      simulate: "equal seeds give equal runs (default: 1)",
      explore: "random strategies: equal seeds give equal runs (default: 1)",
    },
    0,
    "<n>",
    MAX_SEED,
  ),
  runs: count(
    {
      simulate: "number of runs, each with the next seed",
      explore: "random strategies: number of runs (default: 10,000)",
    },
    1,
  ),
  steps: count("random strategies: maximum number of moves per run (default: 500)", 1),
  workers: whole("random strategies: number of threads (default: number of cores, at most 8)", 1, "<n>", 64),
  maxStates: whole("stop after this number of states", 1),
  maxDepth: whole("skip runs with more than this number of moves", 1),
  maxInFlight: whole("skip runs with more than this number of messages in transit"),
  maxTimeouts: whole("skip runs with more than this number of timeouts"),
  maxMemory: whole("stop when the process uses more than this amount of memory", 1, "<MB>"),
};

/** The options that apply to a simulated run and the options that apply to an exploration. */
export const optionsFor = {
  simulate: { ...systemOptions, ...workloadOptions, ...simulationOptions, seed: searchOptions.seed },
  explore: {
    ...systemOptions,
    ...workloadOptions,
    ...faultOptions,
    delay: simulationOptions.delay,
    ...searchOptions,
  },
};

/** All options of an experiment, by name. */
export const experimentOptions = {
  ...systemOptions,
  ...workloadOptions,
  ...simulationOptions,
  ...faultOptions,
  ...searchOptions,
};

type Options = typeof experimentOptions;

/** An experiment: the name of a protocol, and options with values other than their defaults. */
export type Experiment = { readonly protocol: string } & {
  readonly [K in keyof Options]?: Options[K] extends ExperimentOption<infer T> ? T : never;
};

/** The options that select the initiators, named after each family's verb. */
const verbs = ["call", "request", "send", "propose"] as const;
const counts = ["entries", "messages", "commands", "transactions"] as const;
/** Options that only replicated logs have. */
const ofLogs = ["machine"] as const;

/**
 * Rejects options that belong to other families.
 * @throws UsageError for an option that belongs to another family; the message names the correct option
 */
export function requireFamilyOptions(experiment: Experiment): void {
  const { protocol } = experiment;
  const { name, verb, count, refuse: veto } = protocolNamed(protocol).family;
  const refuse = (word: string, right: string | null): never => {
    const instead = right === null ? "no such option" : `--${right} instead`;
    throw new UsageError(
      "bad-argument",
      `expected --${word} to be absent: ${protocol} is a protocol for ${name}, which has ${instead}`,
    );
  };
  for (const word of verbs) if (experiment[word] !== undefined && word !== verb) refuse(word, verb);
  for (const word of counts) if (experiment[word] !== undefined && word !== count) refuse(word, count);
  for (const word of ofLogs) if (experiment[word] !== undefined && count !== "commands") refuse(word, null);
  if (experiment.voteNo !== undefined && veto === undefined) refuse("vote-no", null);
}

/** Rejects options that would be ignored. @throws UsageError for an option that applies only to the other use */
export function requireOptionsFor(use: keyof typeof optionsFor, experiment: Experiment): void {
  const [name, other] = use === "simulate" ? ["simulated runs", "explorations"] : ["explorations", "simulated runs"];
  for (const [word, value] of Object.entries(experiment))
    if (word !== "protocol" && value !== undefined && !Object.hasOwn(optionsFor[use], word))
      throw new UsageError(
        "bad-argument",
        `expected ${flagOf(word)} to be absent: it applies to ${other}, not to ${name}`,
      );
}

/**
 * Returns the options for creating the protocol: `options`, plus those that have their own command-line option
 * (`order`, `machine`).
 */
export function optionsOf({
  machine,
  order,
  options,
}: Omit<Experiment, "protocol">): Readonly<Record<string, unknown>> {
  const given: Record<string, unknown> = { ...(order === undefined ? {} : { order }), ...options };
  return machine === undefined ? given : { ...given, machine: { ...(given.machine as object), kind: machine } };
}

/** Returns the behavior of each Byzantine node, as specified by `byzantine` and `traitors`. */
export const liarsOf = ({
  byzantine,
  traitors,
}: Omit<Experiment, "protocol">): NonNullable<Experiment["byzantine"]> => ({
  ...byzantine,
  ...traitors,
});

/** Returns how often each initiator acts. Undefined means once. */
export function timesOf({ count }: Family, experiment: Omit<Experiment, "protocol">): number | undefined {
  return count === null ? undefined : experiment[count];
}

/**
 * Returns the node ids, in ring order.
 * @throws UsageError if `ring` and `nodes` contradict each other, or if the protocol does not use a ring
 */
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

/** Checks that a node exists. @throws UsageError if `ids` does not contain the node */
export function requireKnown(word: string, ids: readonly NodeId[], node: NodeId): void {
  if (ids.includes(node)) return;
  const known = ids.every((id, place) => id === place) ? `from 0 to ${ids.length - 1}` : `among ${ids.join(", ")}`;
  throw new UsageError("bad-argument", unexpected(word, `nodes ${known}`, node));
}

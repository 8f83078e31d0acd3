/**
 * The words of an experiment, each once: what it means, and how its value is written and read. Commands and forms are made
 * of them.
 */
import type { CrashNotificationTime, TimerMode } from "../check/model.ts";
import { behaviours } from "../protocols/byzantine.ts";
import { machineKinds } from "../protocols/index.ts";
import { delay } from "./written-delay.ts";
import { liars, traitors } from "./written-liars.ts";
import {
  jsonObject,
  milliseconds,
  nodeList,
  nodesOrAll,
  oneOf,
  type Read,
  rate,
  wholeNumber,
} from "./written-values.ts";

export interface Word<T> {
  /** What it means; in a simulation and in an exploration, where that differs. */
  readonly about: string | { readonly simulate: string; readonly explore: string };
  /** How its value is written, such as `<n>`; null for a switch, whose value is `true`. */
  readonly value: string | null;
  /** What is meant where the value is left out. */
  readonly preset?: string;
  /** @throws UsageError that names the word */
  readonly read: Read<T>;
}

export const MAX_SEED = 2 ** 32 - 1;
const MANY = 1_000_000_000;

const word = <T>(value: string, read: Read<T>, about: Word<T>["about"]): Word<T> => ({ about, value, read });
const count = (about: Word<number>["about"], min = 0, max = MANY): Word<number> =>
  word("<k>", wholeNumber(min, max), about);
const on = (about: string): Word<true> => ({ about, value: null, read: () => true });

/** Which nodes run what. */
export const systemWords = {
  nodes: word("<n>", wholeNumber(1, 10_000_000), {
    simulate: "how many nodes, with ids from 0 (default: 5)",
    explore: "how many nodes, with ids from 0 (default: 3)",
  }),
  ring: word("<list>", nodeList, "ids in the order of the ring, such as 1,15,9,4"),
  variant: word("<name>", (text) => text, "another form of the protocol"),
  options: word("<json>", jsonObject, "the protocol's own options"),
  byzantine: word(
    "<list>",
    liars,
    `nodes that lie: 2, or 2,4=mute (${behaviours.join(", ")}; default: ${behaviours.at(-1)})`,
  ),
};

/** What initiators do, in the word of each family. In an exploration they do it at any time, or never. */
export const workloadWords = {
  call: word("<list|all>", nodesOrAll, {
    simulate: "election: who calls it (default: the lowest)",
    explore: "election: who may call it (default: the lowest; nobody where starting is enough)",
  }),
  request: word("<list|all>", nodesOrAll, "mutual exclusion: who asks to enter (default: all)"),
  entries: count("mutual exclusion: how often each enters (default: 1)", 1),
  send: word("<list|all>", nodesOrAll, "multicast: who sends (default: all)"),
  traitors: word("<list>", traitors, "generals: who says anything to anybody; the same as --byzantine"),
  order: word("<text>", (text) => text, "generals: what the commander orders (default: attack)"),
  messages: count("multicast: how many messages each (default: 1)", 1),
  propose: word("<list|all>", nodesOrAll, "consensus: who proposes (default: the lowest)"),
  commands: count("replicated logs: how many commands each (default: 1)", 1),
  machine: word(
    "<kind>",
    oneOf(...machineKinds),
    "replicated logs: the state machine: log, map or counter (default: log)",
  ),
  voteNo: word("<list|all>", nodesOrAll, {
    simulate: "atomic commit: who votes no (default: nobody)",
    explore: "atomic commit: who may come to vote no (default: nobody)",
  }),
  transactions: count("atomic commit: how many transactions each proposes, one after the other (default: 1)", 1),
};

/** What the word `until` does in a simulated run. */
export const UNTIL = "end the run at this virtual time (default: at rest, by 600000; 10000 where nodes start)";

/** The network and the faults of a simulated run. */
export const simulationWords = {
  crash: word("<list>", nodeList, "nodes that are down from the beginning"),
  started: on("nodes start at time 0, instead of having run quietly for long"),
  delay: word("<ms>", delay, "10, 1..10, normal:10,2 or lognormal:10,0.5 (default: 10)"),
  loss: word("<rate>", rate, "the share of messages that get lost, 0 to 1"),
  duplicate: word("<rate>", rate, "the share of messages that arrive twice, 0 to 1"),
  reorder: on("messages of one link may overtake each other"),
  until: word("<ms>", milliseconds, UNTIL),
  processing: word("<ms>", delay, "how long a node is busy with one message"),
  for: word("<ms>", milliseconds, "with --from: for so long (default: 10000)"),
};

/** What an exploration takes every order of, and with how many faults at most. */
export const faultWords = {
  timers: word<TimerMode>(
    "<when>",
    oneOf<TimerMode>("free", "quiet", "rounds", "never"),
    "free: at any time; quiet: when no message is on its way; rounds: so, and all nodes' together; never (default: free)",
  ),
  begin: word(
    "<how>",
    oneOf("idle", "down", "together"),
    "idle: running quietly; down: each starts when it likes; together: all start first",
  ),
  network: word(
    "<kind>",
    oneOf("fifo", "inbox", "bag"),
    "fifo: links keep their order; inbox: one queue per node; bag: no order (default: fifo)",
  ),
  crashes: count("maximum number of crashes (default: 0)"),
  withinStep: on("crashes strike within a step, too: what it was still to send is never sent"),
  recoveries: count("at most this many of them start again (default: 0)"),
  losses: count("maximum number of lost messages (default: 0)"),
  duplications: count("maximum number of duplicated messages (default: 0)"),
  journal: word("<fate>", oneOf("kept", "lost"), "what a crash leaves of it: kept or lost (default: kept)"),
  fewestFaults: on("try none, then one, then two of these faults, until something breaks"),
  failureDetector: {
    ...word(
      "[when]",
      oneOf<CrashNotificationTime>("any", "last"),
      "every alive node is notified of a crash, if the protocol handles that: at any time, or last, after all messages of the crashed node have arrived (default without a word: any)",
    ),
    preset: "any",
  },
};

/** How runs are looked for, and how many. */
export const searchWords = {
  property: word("<name>", (text) => text, "check this one only"),
  strategy: word(
    "<name>",
    oneOf("bfs", "dfs", "random", "pct", "swarm"),
    "bfs and dfs see every run; random, pct and swarm see some (default: bfs)",
  ),
  seed: word("<n>", wholeNumber(0, MAX_SEED), {
    simulate: "equal seeds give equal runs (default: 1)",
    explore: "random strategies: equal seeds give equal runs (default: 1)",
  }),
  runs: count(
    {
      simulate: "so many runs, each with the next seed",
      explore: "random strategies: how many runs (default: 10,000)",
    },
    1,
  ),
  steps: count("random strategies: how many moves per run at most (default: 500)", 1),
  workers: word(
    "<n>",
    wholeNumber(1, 64),
    "random strategies: how many threads share out the runs (default: the number of cores, at most 8)",
  ),
  maxStates: word("<n>", wholeNumber(1, MANY), "stop after so many states"),
  maxDepth: word("<n>", wholeNumber(1, MANY), "look at runs of so many moves at most"),
  maxInFlight: word("<n>", wholeNumber(0, MANY), "leave out runs with more messages on their way"),
  maxTimeouts: word("<n>", wholeNumber(0, MANY), "leave out runs with more time-outs"),
  maxMemory: word("<MB>", wholeNumber(1, MANY), "stop when the process has grown so large"),
  coverage: on("say which handlers ran, and in how many ways they ended"),
};

/** Which words a run is made of that is simulated, and which an exploration of every run. */
export const wordsOf = {
  simulate: { ...systemWords, ...workloadWords, ...simulationWords, seed: searchWords.seed },
  explore: { ...systemWords, ...workloadWords, ...faultWords, ...searchWords },
};

export const words = { ...systemWords, ...workloadWords, ...simulationWords, ...faultWords, ...searchWords };

/** `--max-states`, as the word stands on a command line. */
export const flagOf = (name: string): string =>
  `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

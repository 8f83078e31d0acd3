/** What the calls of the checker may be given. A misspelt bound or fault would be passed over, and a proof be of something else. */

import type { Vocabulary } from "../core/protocol.ts";
import { callback, flag, isObject, natural, needed, oneOf, type Rule, type Rules } from "../protocols/known-options.ts";
import type { ModelOptions } from "./model-options.ts";

const isId = (value: unknown): boolean => natural.accepts(value);
const isText = (value: unknown): boolean => typeof value === "string";
export const orNull = ({ wanted, accepts }: Rule): Rule => ({
  wanted: `${wanted} or null`,
  accepts: (value) => value === null || accepts(value),
});

export const ids: Rule = {
  wanted: "whole numbers of 0 or more",
  accepts: (value) => Array.isArray(value) && value.every(isId),
};
export const nodes: Rule = {
  wanted: "different whole numbers of 0 or more, at least one",
  accepts: (value) => Array.isArray(value) && value.length > 0 && value.every(isId) && areDifferent(value),
};
const names: Rule = { wanted: "a list of names", accepts: (value) => Array.isArray(value) && value.every(isText) };
export const name: Rule = { wanted: "a name", accepts: isText };
const protocol: Rule = {
  wanted: "a protocol: an object with a name, init() and properties",
  accepts: (value) => isObject(value) && isText((value as { name?: unknown }).name) && "init" in value,
};
const properties: Rule = {
  wanted: "a list of properties",
  accepts: (value) => Array.isArray(value) && value.every(isObject),
};
/** Infinity is no limit. */
const faults: Rule = {
  wanted: `${natural.wanted}, or Infinity`,
  accepts: (value) => value === Number.POSITIVE_INFINITY || natural.accepts(value),
};

const areDifferent = (values: readonly unknown[]): boolean => new Set(values).size === values.length;

export const words = {
  network: oneOf("fifo", "inbox", "bag"),
  timers: oneOf("free", "quiet", "rounds", "never"),
  begin: oneOf("idle", "down", "together"),
  crashNotifications: oneOf("any", "last"),
  journal: oneOf("kept", "lost"),
};

export const modelLimits = {
  crashes: natural,
  recoveries: natural,
  losses: natural,
  duplications: natural,
  faults,
  journal: words.journal,
  withinStep: flag,
  maxInFlight: natural,
  maxTimeouts: natural,
};

export const modelRules: Rules<ModelOptions<Vocabulary>> = {
  protocol: needed(protocol),
  properties,
  nodes: needed(nodes),
  network: needed(words.network),
  timers: needed(words.timers),
  begin: needed(words.begin),
  asks: callback,
  commands: callback,
  accepts: callback,
  crashNotification: callback,
  crashNotifications: words.crashNotifications,
  ...modelLimits,
  delays: natural,
  counters: names,
  rounds: names,
  symmetry: callback,
};

export const strategies = ["random", "pct", "swarm"] as const;
/** Of random runs; an exploration and the shrinking of a run leave them aside, so that one system serves all. */
export const walkRules = {
  strategy: oneOf(...strategies),
  seed: { wanted: "a whole number", accepts: Number.isSafeInteger },
  runs: natural,
  firstRun: natural,
  numbers: {
    wanted: "numbers of runs that can be gone through",
    accepts: (value: unknown) => typeof value === "object" && value !== null && Symbol.iterator in value,
  },
  stepsPerRun: natural,
  bugDepth: natural,
};

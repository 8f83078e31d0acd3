/** The messages exchanged between the page and the worker, as plain data. */
import type { Arrangement, Topology } from "../../../../src/protocols/index.ts";
import type { Flight } from "../../diagram/topology/facts.ts";
import type { Work } from "../../work.ts";
import type { ShownDrawing } from "./drawing.ts";
import type { Fork, Words } from "./recipe.ts";

/** A method call on the laboratory, which runs in the worker. */
export interface Request {
  readonly id: number;
  readonly method: "form" | "run" | "look" | "open" | "export" | "compare" | "looks" | "check";
  /** The arguments, except the last one, `onProgress`. */
  readonly args: readonly unknown[];
}

export type Response = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly progress: Progress }
  | { readonly error: string }
);

/** The fields of a form, each with its meaning. */
export interface Form {
  readonly run: readonly Field[];
  readonly check: readonly Field[];
  readonly variants: readonly { readonly name: string; readonly summary: string }[];
  /** The options declared by this variant of the algorithm and by its enclosing parts. */
  readonly options: readonly OptionField[];
}

export interface OptionField {
  /** The path of the option: its parts, followed by its name. */
  readonly path: readonly string[];
  readonly kind: "whole" | "number" | "switch" | "choice" | "text" | "nodes" | "json";
  /** The possible values of a choice. Otherwise empty. */
  readonly values: readonly string[];
  readonly preset: unknown;
  /** The meaning of the option. Names of options are Markdown code spans. */
  readonly help: string;
  /** The lower bound of a number. Null if there is none. The next field is the upper bound. */
  readonly min: number | null;
  readonly max: number | null;
}

export interface Field {
  readonly word: string;
  readonly help: string;
  /** The format of the value. Null for a switch. */
  readonly value: string | null;
  /** The possible values of a choice. Otherwise empty. */
  readonly values: readonly string[];
}

export interface ShownStep {
  readonly node: number;
  /** The time in milliseconds, or in moves for a run from the checker. */
  readonly at: number;
  readonly lines: readonly string[];
  /** The number of entries in the run up to and including this step. */
  readonly entries: number;
}

export interface ShownProperty {
  readonly name: string;
  readonly claim: string;
  readonly verdict: "holds" | "violated" | "unknown";
  readonly why: string;
  /** The step at which the property broke. Null if it did not break. */
  readonly step: number | null;
}

export interface ShownRun {
  readonly title: string;
  readonly about: string;
  readonly protocol: string;
  readonly family: string;
  readonly topology: Topology;
  /** A command that a node accepts, such as `request`. Null if there is none. */
  readonly verb: string | null;
  readonly unit: "ms" | "move";
  readonly drawing: ShownDrawing;
  readonly steps: readonly ShownStep[];
  readonly properties: readonly ShownProperty[];
  readonly cost: {
    readonly total: number;
    readonly byType: Readonly<Record<string, number>>;
    readonly formulas: readonly { readonly when: string; readonly count: number }[];
  };
  readonly entries: number;
  /** The number of hidden periodic entries. */
  readonly folded: number;
  /** The number of entries after those that are drawn. */
  readonly beyond: number;
  readonly forks: readonly Fork[];
  /** Sentences about omitted parts. */
  readonly omissions: readonly string[];
  /** The part that is shown, if the recording was opened in parts. Otherwise null. */
  readonly part: Part | null;
  /** The words that were given, plus those that were added. */
  readonly words: Words;
}

/** The part of a recording that is shown. */
export interface Part {
  /** The number of the part, counting from 1. */
  readonly number: number;
  readonly of: number;
}

/** A run that takes the same steps under one of several protocols. */
export interface Compared {
  /** The name of the protocol, followed by a colon and the variant if there is one. */
  readonly name: string;
  /** The run. Null if the protocol cannot take these steps. */
  readonly run: ShownRun | null;
  readonly problem: string;
}

/** The complete state at one moment. */
export interface Look {
  readonly step: number;
  readonly headline: string;
  readonly messages: number;
  readonly work: Work | null;
  readonly nodes: readonly LookNode[];
  /** The nodes and their positions in the topology. */
  readonly arrangement: Arrangement;
  readonly inFlight: readonly Flight[];
  /** Whether the nodes' states are known, rather than only their views in the trace. */
  readonly hasStates: boolean;
}

export interface LookNode {
  readonly node: number;
  readonly condition: "up" | "down" | "paused";
  readonly role: string;
  readonly fields: readonly { readonly path: string; readonly text: string; readonly changed: boolean }[];
  readonly timers: readonly string[];
}

export interface Progress {
  readonly phase: string;
  readonly states: number;
  readonly transitions: number;
  readonly depth: number;
  /** The number of events in a simulated run. 0 during an exploration. */
  readonly events: number;
}

export type OnProgress = (progress: Progress) => void;

export interface CheckShown {
  readonly verdict: "holds" | "violated" | "unknown";
  readonly property: string | null;
  readonly claim: string | null;
  readonly why: string | null;
  readonly states: number;
  readonly transitions: number;
  readonly depth: number;
  readonly steps: readonly string[];
  readonly checked: readonly { readonly name: string; readonly claim: string }[];
  readonly hasTrace: boolean;
  /**
   * The result of a search for the fewest faults: the smallest number that breaks the property, or null if none does;
   * and the largest number proven harmless, or −1 if there is none. Null for any other search.
   */
  readonly faults: { readonly breaking: number | null; readonly harmless: number } | null;
}

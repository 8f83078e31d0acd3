/** The messages between page and worker: plain data. */
import type { Arrangement, Topology } from "../../../../src/protocols/index.ts";
import type { Flight } from "../../diagram/topology/facts.ts";
import type { Work } from "../../work.ts";
import type { ShownDrawing } from "./drawing.ts";
import type { Fork, Words } from "./recipe.ts";

/** A method call on the laboratory, which runs in the worker. */
export interface Request {
  readonly id: number;
  readonly method: "form" | "run" | "look" | "open" | "export" | "compare" | "looks" | "check";
  /** Without the last parameter, `onProgress`. */
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
  /** The options that this variant of the algorithm, and the parts around it, declare. */
  readonly options: readonly OptionField[];
}

export interface OptionField {
  /** The option's path: parts, and its name. */
  readonly path: readonly string[];
  readonly kind: "whole" | "number" | "switch" | "choice" | "text" | "nodes" | "json";
  /** For a choice. */
  readonly values: readonly string[];
  readonly preset: unknown;
  /** The meaning of the option. Names of options are code spans of Markdown. */
  readonly help: string;
  /** For a number. */
  readonly min: number | null;
  readonly max: number | null;
}

export interface Field {
  readonly word: string;
  readonly help: string;
  /** How its value is written; null for a switch. */
  readonly value: string | null;
  /** For a choice; otherwise empty. */
  readonly values: readonly string[];
}

export interface ShownStep {
  readonly node: number;
  /** In milliseconds, or moves of the checker. */
  readonly at: number;
  readonly lines: readonly string[];
  /** How many entries of the run have happened after this step. */
  readonly entries: number;
}

export interface ShownProperty {
  readonly name: string;
  readonly claim: string;
  readonly verdict: "holds" | "violated" | "unknown";
  readonly why: string;
  /** The step that broke it. */
  readonly step: number | null;
}

export interface ShownRun {
  readonly title: string;
  readonly about: string;
  readonly protocol: string;
  readonly family: string;
  readonly topology: Topology;
  /** A command that a node accepts, such as `request`; null if there is none. */
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
  /** Periodic entries that are hidden. */
  readonly folded: number;
  /** Entries after the drawn ones. */
  readonly beyond: number;
  readonly forks: readonly Fork[];
  /** Omissions, in sentences. */
  readonly omissions: readonly string[];
  /** For a recording that is opened in parts. */
  readonly part: Part | null;
  /** The given words, and the added ones. */
  readonly words: Words;
}

/** The part of a recording that is shown. */
export interface Part {
  /** From 1. */
  readonly number: number;
  readonly of: number;
}

/** The same steps under one of several protocols. */
export interface Compared {
  /** With the variant after a colon. */
  readonly name: string;
  /** Null if the protocol cannot take the steps. */
  readonly run: ShownRun | null;
  readonly problem: string;
}

/** The whole state at one moment. */
export interface Look {
  readonly step: number;
  readonly headline: string;
  /** Messages sent so far. */
  readonly messages: number;
  readonly work: Work | null;
  readonly nodes: readonly LookNode[];
  /** The topology of the nodes. */
  readonly arrangement: Arrangement;
  readonly inFlight: readonly Flight[];
  /** Whether states are known; otherwise only their views in the trace. */
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
  /** Events of a simulated run; 0 during an exploration. */
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
  /** For a search for the fewest faults: the least count that breaks it, or null; the greatest harmless count, or −1. */
  readonly faults: { readonly breaking: number | null; readonly harmless: number } | null;
}

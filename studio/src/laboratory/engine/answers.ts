/** What page and worker send each other: plain data. */
import type { Arrangement, Topology } from "../../../../src/protocols/index.ts";
import type { Flight } from "../../diagram/topology/facts.ts";
import type { Work } from "../../work.ts";
import type { ShownDrawing } from "./drawing.ts";
import type { Fork, Words } from "./recipe.ts";

/** A call of a method of the laboratory, which runs in the worker. */
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

/** Words that a form offers, each with what it means. */
export interface Form {
  readonly run: readonly Field[];
  readonly check: readonly Field[];
  readonly variants: readonly { readonly name: string; readonly summary: string }[];
  /** Those that the algorithm, in this form of it, and the parts beside it declare. */
  readonly options: readonly OptionField[];
}

export interface OptionField {
  /** Where it stands among the options: parts, and its name. */
  readonly path: readonly string[];
  readonly kind: "whole" | "number" | "switch" | "choice" | "text" | "nodes" | "json";
  /** Of a choice. */
  readonly values: readonly string[];
  readonly preset: unknown;
  /** What it sets; names of options are code spans of Markdown. */
  readonly help: string;
  /** Of a number. */
  readonly min: number | null;
  readonly max: number | null;
}

export interface Field {
  readonly word: string;
  readonly help: string;
  /** How its value is written; null for a switch. */
  readonly value: string | null;
  /** Of a choice; otherwise empty. */
  readonly values: readonly string[];
}

export interface ShownStep {
  readonly node: number;
  /** In milliseconds, or moves of the checker. */
  readonly at: number;
  readonly lines: readonly string[];
  /** How many entries of the run are past after it. */
  readonly entries: number;
}

export interface ShownProperty {
  readonly name: string;
  readonly claim: string;
  readonly verdict: "holds" | "violated" | "unknown";
  readonly why: string;
  /** The step after which it was broken. */
  readonly step: number | null;
}

export interface ShownRun {
  readonly title: string;
  readonly about: string;
  readonly protocol: string;
  readonly family: string;
  readonly topology: Topology;
  /** What a node can be asked to do, such as `request`; null where there is nothing. */
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
  /** Entries that were folded, since they only keep coming. */
  readonly folded: number;
  /** Entries that come after what is drawn. */
  readonly beyond: number;
  readonly forks: readonly Fork[];
  /** What is left out, in sentences. */
  readonly omissions: readonly string[];
  /** Of a recording that is opened in parts. */
  readonly part: Part | null;
  /** Those that were given, and what was added. */
  readonly words: Words;
}

/** Which part of a recording is shown. */
export interface Part {
  /** From 1. */
  readonly number: number;
  readonly of: number;
}

/** The same steps under one of several protocols. */
export interface Compared {
  /** Its variant after a colon. */
  readonly name: string;
  /** Null where the steps cannot be taken under it. */
  readonly run: ShownRun | null;
  readonly problem: string;
}

/** Everything at one moment. */
export interface Look {
  readonly step: number;
  readonly headline: string;
  /** Messages sent up to here. */
  readonly messages: number;
  readonly work: Work | null;
  readonly nodes: readonly LookNode[];
  /** How the nodes stand to each other. */
  readonly arrangement: Arrangement;
  readonly inFlight: readonly Flight[];
  /** Whether states are known; otherwise only what pictures show of them. */
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
  /** Of a run that is made; 0 while states are explored. */
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
  /** Where the fewest were asked for: so many break it, or null, and so many are proven not to, −1 if not even none. */
  readonly faults: { readonly breaking: number | null; readonly harmless: number } | null;
}

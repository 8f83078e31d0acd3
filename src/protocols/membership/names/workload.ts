/**
 * The workload of names: a program at every node that uses one name now and then, and says a word to the others each time. It stands
 * for what a driver has beside names: programs, what runs under a name, and a journal.
 */
import type { Assembly } from "../../../core/assemble.ts";
import type { Protocol, World } from "../../../core/protocol.ts";
import { type AnyMaker, composed, joined, type System } from "../../system.ts";
import type { NamesOptions } from "./names.ts";
import { NAME, type Program, type ProgramOptions, program, programWires } from "./program.ts";
import type { Admission, Names } from "./vocabulary.ts";
import { nameWires } from "./wires.ts";
import { settledWords, type Words, type WordsOptions, words } from "./words.ts";

type NamesParts = { names: Names; words: Words; workload: Program };

export type NamesModel = Assembly<NamesParts>;

export interface NamesModelOptions {
  workload?: Partial<ProgramOptions>;
  names?: Partial<NamesOptions>;
  words?: Partial<WordsOptions>;
}

/** The system with a program at every node. */
export function withNamesWorkload({ parts, wires: own, algorithm }: System): AnyMaker {
  return (options?: NamesModelOptions): Protocol<NamesModel> => {
    const { forgotten } = settledWords(options?.words);
    const system: System = {
      parts: { ...parts, words, workload: program }, // Names say hello before what was run is run again.
      wires: joined(
        nameWires({ instance: "words", early: "words", program: "workload" }),
        programWires("words", forgotten),
        own,
      ),
      algorithm,
    };
    const assembly = composed<NamesParts>(system)(options);
    return { ...assembly, properties: [...assembly.properties, inUseIsKept, wordsAreMeant, idleIsPutAway] };
  };
}

interface Said {
  readonly type: string;
  readonly body: { readonly type: string; readonly setting?: string; readonly word?: string; readonly how?: Admission };
}

/** What a node's program has done with the name, and what has become of that. */
interface Use {
  readonly isUsing: boolean;
  /** Whether the node has agreed to put it away, since it was last put away. */
  readonly hasAgreed: boolean;
  readonly wrongly: boolean;
}

function used(before: Use, { body: { type } }: Said): Use {
  switch (type) {
    case "uses":
      return { ...before, isUsing: true };
    case "started":
    case "rests":
    case "gaveWay":
      return { ...before, isUsing: false };
    case "agreed":
      return { ...before, hasAgreed: true, wrongly: before.wrongly || before.isUsing };
    case "putAway":
      return { ...before, hasAgreed: false, wrongly: before.wrongly || before.isUsing };
    case "renewed":
      return { ...before, hasAgreed: false, wrongly: before.wrongly || !before.hasAgreed };
    default:
      return before;
  }
}

type Whole = World<{ workload: Program["state"]; names: Names["state"] }>;

export const inUseIsKept = {
  name: "a name in use is not put away",
  claim: "nobody agrees to put away what its program uses, and what is begun anew had been agreed on",
  when: "always",
  history: { empty: { isUsing: false, hasAgreed: false, wrongly: false } as Use, after: used },
  holds: ({ alive, nodes, state, history }: Whole): boolean =>
    nodes.every((node) => !history<Use>(node).wrongly) &&
    alive.every((node) => {
      const { workload, names } = state(node);
      return workload.doing === "outside" || names.running[NAME]?.setting === workload.runs;
    }),
} as const;

/** How a node runs the name, and whether it has taken what was said under another setting. */
interface Taken {
  readonly runs: string | null;
  readonly wrongly: boolean;
}

const wordsAreMeant = {
  name: "words are meant",
  claim: "what is said of a name under one setting is taken by nobody who runs it under another",
  when: "always",
  history: {
    empty: { runs: null, wrongly: false } as Taken,
    after(before: Taken, { body: { type, setting, word, how } }: Said): Taken {
      if (type === "ran") return { ...before, runs: setting ?? null };
      if (type === "gaveWay" || type === "putAway" || type === "started") return { ...before, runs: null };
      return type === "admitted" && how === "take" && word !== before.runs ? { ...before, wrongly: true } : before;
    },
  },
  holds: ({ nodes, history }: Whole): boolean => nodes.every((node) => !history<Taken>(node).wrongly),
} as const;

export const idleIsPutAway = {
  name: "idle names are put away",
  claim: "in the end, a name that nobody uses any more is run nowhere, unless a node is down or suspected",
  when: "eventually",
  holds: ({ alive, nodes, state }: Whole): boolean =>
    alive.length < nodes.length ||
    alive.some((node) => state(node).workload.left > 0 || state(node).names.suspected.length > 0) ||
    alive.every((node) => Object.keys(state(node).names.running).length === 0),
} as const;

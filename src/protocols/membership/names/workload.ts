/**
 * The workload of names: a program at every node that uses one name now and then, says a word to the others each time, and keeps what
 * its node runs over a crash. It stands for what a driver has beside names: programs, what runs under a name, and a journal.
 */
import type { Assembly, Wires } from "../../../core/assemble.ts";
import type { Context, NodeId, Protocol, World } from "../../../core/protocol.ts";
import { boolean, list, natural, oneOf, real, struct, text } from "../../../core/shape.ts";
import { settle } from "../../options.ts";
import { type AnyMaker, composed, joined, type System } from "../../system.ts";
import type { NamesOptions } from "./names.ts";
import type { Admission, Names } from "./vocabulary.ts";

/** The only one that they use. */
export const NAME = "report";

export type NamesWorkload = {
  state: {
    /** How often the program wants to use the name yet. */
    left: number;
    /** How it would have it, until it has it or is refused. */
    wanted: string | null;
    isUsing: boolean;
    /** How the node runs it, as the program was told. */
    runs: string | null;
    isEstablished: boolean;
    /** What waits until its sender has said how it runs the name. */
    held: Word[];
  };
  message: { type: "word"; word: string };
  timer: "begin" | "end";
  command:
    | { type: "begin" }
    /** From names. */
    | { type: "ran"; setting: string }
    | { type: "established" }
    | { type: "gone" }
    | { type: "joined"; node: NodeId }
    | { type: "parted"; node: NodeId }
    | { type: "admitted"; from: NodeId; word: string; how: Admission };
  event:
    | { type: "started" }
    | { type: "resumes"; setting: string; isEstablished: boolean }
    | { type: "wants"; setting: string }
    | { type: "uses" }
    | { type: "rests" }
    | { type: "heard"; from: NodeId; word: string };
  record: { type: "runs"; setting: string; isEstablished: boolean } | { type: "forgot" };
};

interface Word {
  from: NodeId;
  word: string;
}

export interface NamesWorkloadOptions {
  /** How often each node uses the name. */
  uses: number;
  /** How a program would have it: one of these. */
  settings: string[];
  /** Between two uses, and how long one lasts: up to so long. */
  restMs: number;
  useMs: number;
  /** Whether nodes put the name away together, or each by itself. */
  isShared: boolean;
}

const defaults: NamesWorkloadOptions = { uses: 1, settings: ["one"], restMs: 2_000, useMs: 500, isShared: true };

const optionShape = struct<NamesWorkloadOptions>({
  uses: natural,
  settings: list(text(100), 10),
  restMs: real,
  useMs: real,
  isShared: boolean,
});

type State = NamesWorkload["state"];
type Ctx = Context<NamesWorkload>;

function namesWorkload(given?: Partial<NamesWorkloadOptions>): Protocol<NamesWorkload> {
  const options = settle(defaults, optionShape, given, "workload");

  function keep({ runs, isEstablished }: State, ctx: Ctx): void {
    if (runs === null) ctx.compact([{ type: "forgot" }]);
    else ctx.compact([{ type: "runs", setting: runs, isEstablished }]);
  }

  function rest(state: State, ctx: Ctx): void {
    state.isUsing = false;
    if (state.left > 0) ctx.setTimer("begin", [1, options.restMs]);
  }

  return {
    name: "workload",
    init: () => ({ left: options.uses, wanted: null, isUsing: false, runs: null, isEstablished: false, held: [] }),
    start(state, ctx) {
      ctx.emit({ type: "started" });
      const { runs: setting, isEstablished } = state;
      if (setting !== null) ctx.emit({ type: "resumes", setting, isEstablished });
      rest(state, ctx);
    },
    receive: { word: (_state, from, { word }, ctx) => ctx.emit({ type: "heard", from, word }) },
    timeout: {
      begin(state, ctx) {
        state.left -= 1;
        state.wanted = ctx.choose("setting", options.settings);
        ctx.emit({ type: "wants", setting: state.wanted });
      },
      end(state, ctx) {
        ctx.emit({ type: "rests" });
        rest(state, ctx);
      },
    },
    command: {
      begin(state, _command, ctx) {
        const { wanted } = state;
        state.wanted = null;
        if (wanted === null || wanted !== state.runs) return rest(state, ctx); // It is in use otherwise.
        state.isUsing = true;
        ctx.emit({ type: "uses" });
        ctx.broadcast({ type: "word", word: wanted });
        ctx.setTimer("end", [1, options.useMs]);
      },
      ran(state, { setting }, ctx) {
        state.runs = setting;
        keep(state, ctx);
      },
      established(state, _command, ctx) {
        state.isEstablished = true;
        keep(state, ctx);
      },
      gone(state, _command, ctx) {
        Object.assign(state, { runs: null, isEstablished: false });
        keep(state, ctx);
        if (!state.isUsing) return;
        ctx.cancelTimer("end");
        rest(state, ctx);
      },
      joined(state, { node }, ctx) {
        const held = state.held.filter(({ from }) => from === node);
        state.held = state.held.filter(({ from }) => from !== node);
        for (const word of held) ctx.emit({ type: "heard", ...word });
      },
      parted(state, { node }) {
        state.held = state.held.filter(({ from }) => from !== node);
      },
      admitted(state, { how, from, word }) {
        if (how === "hold") state.held.push({ from, word });
      },
    },
    replay: {
      runs: (state, { setting, isEstablished }) => void Object.assign(state, { runs: setting, isEstablished }),
      forgot: (state) => void Object.assign(state, { runs: null, isEstablished: false }),
    },
    shapes: {
      message: { word: { word: text(100) } },
      command: {
        begin: {},
        ran: { setting: text(100) },
        established: {},
        gone: {},
        joined: { node: natural },
        parted: { node: natural },
        admitted: { from: natural, word: text(100), how: oneOf<Admission>("take", "hold", "drop") },
      },
      record: { runs: { setting: text(100), isEstablished: boolean }, forgot: {} },
    },
    source: "programs, what runs under a name, and a journal",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ isUsing }) => ({ role: isUsing ? "using" : "resting" }),
  };
}

type Pair = { workload: NamesWorkload; names: Names };

/** Of a program with names, apart from what is said under the name. */
export const programWires = (isShared: boolean): Wires<Pair> => {
  const run = (setting: string, isEstablished: boolean, by: NodeId | null) =>
    ({ type: "run", name: NAME, setting, isShared, isEstablished, by }) as const;
  return {
    workload: {
      resumes: ({ setting, isEstablished }, give) => give("names", run(setting, isEstablished, null)),
      wants({ setting }, give) {
        give("names", run(setting, false, null));
        give("workload", { type: "begin" });
      },
      uses: (_event, give) => give("names", { type: "use", name: NAME }),
      rests: (_event, give) => give("names", { type: "rest", name: NAME }),
    },
    names: {
      wanted: ({ setting, from }, give) => give("names", run(setting, false, from)),
      ran: ({ setting }, give) => give("workload", { type: "ran", setting }),
      established: (_event, give) => give("workload", { type: "established" }),
      differs: ({ name, setting, from }, give) =>
        give("names", { type: "refuse", name, setting, why: "it is run otherwise", to: from }),
      gaveWay: (_event, give) => give("workload", { type: "gone" }),
      putAway: (_event, give) => give("workload", { type: "gone" }),
    },
  };
};

/** Of what is said under the name: it waits at the program until its sender has said how it runs it. */
const wordWires: Wires<Pair> = {
  workload: { heard: ({ from, word }, give) => give("names", { type: "arrived", name: NAME, from, word }) },
  names: {
    joined: ({ node }, give) => give("workload", { type: "joined", node }),
    parted: ({ node }, give) => give("workload", { type: "parted", node }),
    met: ({ node }, give) => give("workload", { type: "parted", node }),
    admitted: ({ from, word, how }, give) => give("workload", { type: "admitted", from, word, how }),
  },
};

export type NamesModel = Assembly<Pair>;

export interface NamesModelOptions {
  workload?: Partial<NamesWorkloadOptions>;
  names?: Partial<NamesOptions>;
}

/** The system with a program at every node. */
export function withNamesWorkload({ parts, wires: own, algorithm }: System): AnyMaker {
  return (options?: NamesModelOptions): Protocol<NamesModel> => {
    const isShared = options?.workload?.isShared ?? defaults.isShared;
    const system: System = {
      parts: { ...parts, workload: namesWorkload }, // Names say hello before what was run is run again.
      wires: joined(programWires(isShared) as never, wordWires as never, own),
      algorithm,
    };
    const assembly = composed<Pair>(system)(options);
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

type Whole = World<{ workload: State; names: Names["state"] }>;

export const inUseIsKept = {
  name: "a name in use is not put away",
  claim: "nobody agrees to put away what its program uses, and what is begun anew had been agreed on",
  when: "always",
  history: { empty: { isUsing: false, hasAgreed: false, wrongly: false } as Use, after: used },
  holds: ({ alive, nodes, state, history }: Whole): boolean =>
    nodes.every((node) => !history<Use>(node).wrongly) &&
    alive.every((node) => {
      const { workload, names } = state(node);
      return !workload.isUsing || names.running[NAME]?.setting === workload.runs;
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

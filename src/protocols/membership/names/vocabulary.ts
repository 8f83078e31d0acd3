/** The words of names: what a node knows of each name, what is sent, commanded and said. */
import type { NodeId } from "../../../core/protocol.ts";

/**
 * How a name that nobody uses is put away: by each node alone; by all at once, where nodes rely on each other; or never, in which
 * case it is in use wherever it is run.
 */
export type Forgotten = "alone" | "together" | "never";

/** A name that this node runs. */
export interface Running {
  /** How it runs it: the algorithm with its options. Compared, and otherwise not looked into. */
  setting: string;
  /** Those that run it likewise, as far as is known; this node is one of them. Ascending. */
  fellows: NodeId[];
  /** Those that run it otherwise, or cannot run it. Ascending. */
  strangers: NodeId[];
  /** Whether a majority has been known to run it likewise. */
  isEstablished: boolean;
  forgotten: Forgotten;
  /** Whether the program uses it, or what it runs has something to do. */
  isUsed: boolean;
  /** How many sweeps it has not been used for, counted up to what makes it idle. */
  idle: number;
  /** Who has answered this node that nobody uses it there. */
  asking: Asking | null;
}

export interface Asking {
  round: number;
  /** In sweeps. */
  age: number;
  answered: NodeId[];
}

export type Names = {
  state: {
    running: Record<string, Running>;
    /** What has been put away by all together: for how many sweeps. */
    over: Record<string, number>;
    /** For which there was no room here. */
    declined: Record<string, true>;
    /** Ascending. */
    suspected: NodeId[];
    /** The number of the last round. */
    round: number;
    /** The program is about to end: nothing begins any more. */
    isClosed: boolean;
    isSweeping: boolean;
  };
  message: /** The sender has just started: it does not know which names there are. */
    | { type: "hello" }
    /** The sender does not know how the receiver runs it. */
    | { type: "inquire"; name: string }
    /** The sender runs it so. */
    | { type: "open"; name: string; setting: string }
    /** The sender runs it otherwise, or cannot run it so. */
    | { type: "refuse"; name: string; setting: string; why: string }
    /** The sender has no room for it, and does without. */
    | { type: "full"; name: string }
    /** Does anybody use it at the receiver? Answered if not. */
    | { type: "ask"; name: string; round: number }
    | { type: "idle"; name: string; round: number }
    /** Nobody uses it anywhere: it is put away. */
    | { type: "over"; name: string };
  timer: "sweep";
  command: /** `by`: on the announcement of that node; null: for the program. `isEstablished`: as an earlier run of this node knew. */
    | { type: "run"; name: string; setting: string; forgotten: Forgotten; isEstablished: boolean; by: NodeId | null }
    /** What `wanted` or `differs` told of does not go here. */
    | { type: "refuse"; name: string; setting: string; why: string; to: NodeId }
    | { type: "decline"; name: string; to: NodeId }
    /** Something came of it from a node that has not said how it runs it. */
    | { type: "inquire"; name: string; of: NodeId }
    /** The program uses it from now on; does not any more. */
    | { type: "use"; name: string }
    | { type: "rest"; name: string }
    /** Nobody uses it here, and there is need of room. Only of what a node may forget alone. */
    | { type: "forget"; name: string }
    /** Something that another node said of it has arrived: see `admission`. */
    | { type: "arrived"; name: string; from: NodeId; word: string }
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    | { type: "close" };
  event: /** Another runs it so: if that goes here, it is to be run. */
    | { type: "wanted"; name: string; setting: string; from: NodeId }
    | { type: "ran"; name: string; setting: string }
    | { type: "established"; name: string }
    /** Runs it likewise: what it says of it is taken from now on. */
    | { type: "joined"; name: string; node: NodeId }
    /** Runs it otherwise, or not any more: what it has said before and still waits here is for nobody. */
    | { type: "parted"; name: string; node: NodeId }
    /** It has started again: the same is true of all that it has said before. */
    | { type: "met"; node: NodeId }
    /** Runs it in another way, and is to be refused. */
    | { type: "differs"; name: string; setting: string; from: NodeId }
    | { type: "refused"; name: string; by: NodeId; why: string }
    /** Not run here any more: `by` refuses it, and says why; or it is the last of a majority that runs it otherwise. */
    | { type: "gaveWay"; name: string; by: NodeId; why: string | null; wasEstablished: boolean; isOutvoted: boolean }
    | { type: "noRoom"; name: string; by: NodeId }
    /** As far as this node is concerned, it may be put away. */
    | { type: "agreed"; name: string }
    | { type: "putAway"; name: string }
    /** Put away by all, while the program uses it again: it has begun anew. */
    | { type: "renewed"; name: string; setting: string }
    | { type: "admitted"; name: string; from: NodeId; word: string; how: Admission };
};

/** What becomes of something that another node said of a name: it waits for an announcement of its sender, or is for others. */
export type Admission = "take" | "hold" | "drop";

export type State = Names["state"];

export const runningOf = ({ running }: State, name: string): Running | undefined =>
  Object.hasOwn(running, name) ? running[name] : undefined;

/**
 * Links keep their order, so a node's announcement comes before what it says: who runs a name otherwise is a stranger by then. Who
 * has announced nothing since this node runs it may run it either way.
 */
export function admission(state: State, name: string, from: NodeId): Admission {
  const known = runningOf(state, name);
  if (known === undefined) {
    const isLost = state.isClosed || Object.hasOwn(state.declined, name) || Object.hasOwn(state.over, name);
    return isLost ? "drop" : "hold";
  }
  if (known.strangers.includes(from)) return "drop";
  return known.fellows.includes(from) ? "take" : "hold";
}

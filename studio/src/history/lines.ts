/**
 * Merges entries into lines of the event log. If several nodes have the same event at nearly the same time, the events
 * become one line at the time of the last one. Lines about the same nodes keep their order, so the last line about a
 * node shows its latest state.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Topic } from "./phrase-book.ts";

export interface Saying {
  readonly key: number;
  readonly at: number;
  readonly topic: Topic;
  /** The timer or event behind the entry, which may become chatter. Null for all other entries. */
  readonly by: string | null;
  /** The nodes that the entry is about. Empty if it is about the network as a whole. */
  readonly nodes: readonly NodeId[];
  /** The other node that is mentioned, if any, such as node 4 in "node 1 follows node 4". */
  readonly whom: NodeId | null;
  /** A key. Entries with equal keys may share a line. */
  readonly same: string;
  /** Returns the text of the line. `nodes` are in ascending order. */
  readonly tell: (nodes: readonly NodeId[], times: number) => string;
}

export interface Line {
  readonly key: number;
  /** When the first event happened. The next field is the time of the last event. */
  readonly since: number;
  readonly at: number;
  readonly topic: Topic;
  readonly nodes: readonly NodeId[];
  readonly text: string;
}

interface Draft {
  readonly first: Saying;
  readonly last: Saying;
  readonly nodes: readonly NodeId[];
  readonly times: number;
}

/** Equal entries less than this far apart share a line. */
const TOGETHER_MS = 1_000;

/** How many of the previous lines to search. In a burst, earlier entries already have their own lines. */
const LOOKED_THROUGH = 48;

/** Returns the last `most` lines. Both `sayings` and the result are in chronological order. */
export function linesOf(sayings: readonly Saying[], most: number): Line[] {
  const drafts: Draft[] = [];
  for (const saying of sayings) {
    const index = partnerOf(saying, drafts);
    const [partner] = index === -1 ? [] : drafts.splice(index, 1);
    const nodes = new Set([...(partner?.nodes ?? []), ...saying.nodes]);
    drafts.push({
      first: partner?.first ?? saying,
      last: saying,
      nodes: [...nodes].sort((a, b) => a - b),
      times: (partner?.times ?? 0) + 1,
    });
  }
  return drafts.slice(-most).map(({ first, last, nodes, times }) => {
    const { key, topic } = first;
    // The text is created on demand, because most lines are never drawn.
    const text = () => last.tell(nodes, times);
    return {
      key,
      since: first.at,
      at: last.at,
      topic,
      nodes,
      get text() {
        return text();
      },
    };
  });
}

/** Returns the index of the line that `saying` may share, or −1 if there is none. */
function partnerOf(saying: Saying, drafts: readonly Draft[]): number {
  for (let index = drafts.length - 1; index >= 0; index -= 1) {
    const draft = drafts[index] as Draft;
    if (saying.at - draft.last.at > TOGETHER_MS || index < drafts.length - LOOKED_THROUGH) return -1;
    if (draft.first.same !== saying.same) continue;
    if (saying.at - draft.first.at > TOGETHER_MS) return -1;
    for (let after = index + 1; after < drafts.length; after += 1) if (bars(drafts[after] as Draft, draft)) return -1;
    return index;
  }
  return -1;
}

/** Returns whether the order of the two lines matters. If so, `moved` may not be moved past `between`. */
function bars(between: Draft, moved: Draft): boolean {
  const topics = [between.first.topic, moved.first.topic];
  if (topics.includes("network")) return topics[0] === topics[1] && between.nodes.length === 0;
  if (topics.every((topic) => topic === "suspicion") && between.first.whom !== moved.first.whom) return false;
  // If a node starts or ends, each line about it belongs to one of its lives.
  const isTurn = topics.some((topic) => topic === "process" || topic === "crash");
  const [ones, others] = isTurn ? [concerned(between), concerned(moved)] : [between.nodes, moved.nodes];
  return ones.some((node) => others.includes(node));
}

function concerned({ nodes, first }: Draft): readonly NodeId[] {
  return first.whom === null ? nodes : [...nodes, first.whom];
}

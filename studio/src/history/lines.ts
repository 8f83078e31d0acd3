/**
 * From single sayings to the lines of the event log. What several nodes say at nearly the same time becomes one line,
 * which stands where the last of them said it. No line passes another one about the same nodes on its way there, so the
 * last word about every node is its own last word.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Topic } from "./phrase-book.ts";

export interface Saying {
  readonly key: number;
  readonly at: number;
  readonly topic: Topic;
  /** The timer or event that it tells of, which may turn out to be chatter; null for all else. */
  readonly by: string | null;
  /** The nodes that it is said of; none for what concerns the network as a whole. */
  readonly nodes: readonly NodeId[];
  /** The other node that it mentions, if any: in "node 1 follows node 4", node 4. */
  readonly whom: NodeId | null;
  /** Equal for what may share a line. */
  readonly same: string;
  /** `nodes` ascend. */
  readonly tell: (nodes: readonly NodeId[], times: number) => string;
}

export interface Line {
  readonly key: number;
  /** When it happened first, and last. */
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

/** What is the same within this time shares a line. */
const TOGETHER_MS = 1_000;

/** In a burst, what stands further back has a line of its own already. */
const LOOKED_THROUGH = 48;

/** The last `most` lines, in order of time, as `sayings` must be. */
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
    // Worded when it is drawn: most lines never are.
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

/** Where the line is that `saying` may share; −1 if nowhere. */
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

/** Whether the order of the two lines matters, so that `moved` may not pass `between`. */
function bars(between: Draft, moved: Draft): boolean {
  const topics = [between.first.topic, moved.first.topic];
  if (topics.includes("network")) return topics[0] === topics[1] && between.nodes.length === 0;
  if (topics.every((topic) => topic === "suspicion") && between.first.whom !== moved.first.whom) return false;
  // What is said of a node that starts or ends belongs to one of its lives.
  const isTurn = topics.some((topic) => topic === "process" || topic === "crash");
  const [ones, others] = isTurn ? [concerned(between), concerned(moved)] : [between.nodes, moved.nodes];
  return ones.some((node) => others.includes(node));
}

function concerned({ nodes, first }: Draft): readonly NodeId[] {
  return first.whom === null ? nodes : [...nodes, first.whom];
}

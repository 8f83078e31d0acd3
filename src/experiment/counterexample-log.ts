/** Describes a counterexample as text: one line per move with its consequences, and the final states. */
import type { Taken } from "../check/index.ts";
import type { NodeId, Protocol, Vocabulary } from "../core/protocol.ts";
import type { Emitted, Family } from "../protocols/index.ts";
import { phrase } from "../trace/log.ts";

export interface LogStep {
  /** The move as text, such as `node 1 receives election from 0`. */
  readonly deed: string;
  /** The effects of the move on the node, such as `sends answer to 0` or `is now campaigning`. */
  readonly consequences: readonly string[];
}

export interface CounterexampleLog {
  readonly steps: readonly LogStep[];
  /** Each node's role and state at the end. */
  readonly standing: readonly { readonly node: NodeId; readonly role: string; readonly state: object | null }[];
  /**
   * For mutual exclusion: the nodes waiting to enter, each with the nodes that have not replied to its last message.
   */
  readonly waits: readonly { readonly node: NodeId; readonly unanswered: readonly NodeId[] }[];
}

/** Describes a path as text. */
export function logOf<V extends Vocabulary>(
  { protocol, family }: { readonly protocol: Pick<Protocol<V>, "view">; readonly family: Family },
  nodes: readonly NodeId[],
  path: readonly Taken<V>[],
): CounterexampleLog {
  const role = (step: Taken<V> | undefined, i: number): string => {
    const state = step?.states[i];
    return state === undefined || state === null ? "down" : roleIn(protocol, state as never, nodes[i] as NodeId);
  };
  const steps = path.map((taken, at): LogStep => {
    const i = nodes.indexOf(taken.move.node);
    const [before, after] = [role(path[at - 1], i), role(taken, i)];
    const isNews = before !== after && after !== "down" && (at > 0 || taken.move.kind !== "start");
    return { deed: deedOf(taken), consequences: [...saidIn(taken), ...(isNews ? [`is now ${after}`] : [])] };
  });
  const last = path.at(-1);
  const standing = nodes.map((node, i) => ({ node, role: role(last, i), state: last?.states[i] ?? null }));
  return { steps, standing, waits: waitsIn(family, nodes, path) };
}

function waitsIn<V extends Vocabulary>(
  family: Family,
  nodes: readonly NodeId[],
  path: readonly Taken<V>[],
): CounterexampleLog["waits"] {
  if (family.name !== "mutual exclusion") return [];
  const unanswered = new Map(nodes.map((node) => [node, new Set<NodeId>()]));
  const events: Emitted[] = [];
  for (const [at, { move, sends, events: emitted }] of path.entries()) {
    for (const { to } of sends) {
      unanswered.get(move.node)?.add(to);
      unanswered.get(to)?.delete(move.node);
    }
    events.push(...emitted.map((event) => ({ at, node: move.node, event })));
  }
  const states = path.at(-1)?.states ?? [];
  const alive = nodes.filter((_node, i) => (states[i] ?? null) !== null);
  const outcome = family.outcome({ alive, view: () => ({ role: "" }), events });
  const waiting = "entries" in outcome ? outcome.entries.filter(({ enteredAt }) => enteredAt === null) : [];
  return waiting
    .filter(({ node }) => alive.includes(node))
    .map(({ node }) => ({ node, unanswered: [...(unanswered.get(node) ?? [])].sort((a, b) => a - b) }));
}

/**
 * Returns a cycle of nodes: each node waits for the next one, and the last node waits for the first. Null if there is
 * none.
 */
export function waitCycle(waits: CounterexampleLog["waits"]): readonly NodeId[] | null {
  const awaited = new Map(waits.map(({ node, unanswered }) => [node, unanswered]));
  const from = (path: readonly NodeId[]): readonly NodeId[] | null => {
    for (const next of awaited.get(path.at(-1) as NodeId) ?? []) {
      if (next === path[0]) return path;
      const found = path.includes(next) ? null : from([...path, next]);
      if (found !== null) return found;
    }
    return null;
  };
  for (const { node } of waits) {
    const found = from([node]);
    if (found !== null) return found;
  }
  return null;
}

/** Describes a node's role, such as `candidate, has no leader, term 3`. */
export function roleIn<V extends Vocabulary>(protocol: Pick<Protocol<V>, "view">, state: never, node: NodeId): string {
  const { role, leader, term } = protocol.view(state, node);
  const words = [role];
  if (leader === null) words.push("has no leader");
  else if (leader !== undefined && leader !== node) words.push(`follows ${leader}`);
  if (term !== undefined) words.push(`term ${term}`);
  return words.join(", ");
}

const deedOf = <V extends Vocabulary>({ move }: Taken<V>): string =>
  `${move.afterMs === undefined ? "" : `after ${move.afterMs} ms, `}${wholeDeedOf(move)}${move.crashesWithinStep === true ? ", and crashes within this step" : ""}`;

function wholeDeedOf<V extends Vocabulary>(move: Taken<V>["move"]): string {
  switch (move.kind) {
    case "receive":
      return `node ${move.node} receives ${phrase(move.message)} from ${move.from}`;
    case "duplicate":
      return `node ${move.node} receives ${phrase(move.message)} from ${move.from}, and a copy stays in transit`;
    case "lose":
      return `${phrase(move.message)} from ${move.from} to ${move.node} is lost`;
    case "command":
      return `node ${move.node} receives command ${phrase(move.command)}`;
    case "timeout":
      return `node ${move.node} times out: ${move.timer}`;
    case "start":
      return `node ${move.node} starts`;
    case "crash":
      return `node ${move.node} crashes`;
    case "pause":
      return `node ${move.node} is paused`;
    case "resume":
      return `node ${move.node} resumes`;
  }
}

/** Describes the consequences of a move. Equal messages to several nodes are combined into one phrase. */
function saidIn<V extends Vocabulary>({ sends, events, replies, choices }: Taken<V>): string[] {
  const receivers = new Map<string, NodeId[]>();
  for (const { to, message } of sends) {
    const words = phrase(message);
    receivers.set(words, [...(receivers.get(words) ?? []), to]);
  }
  return [
    ...choices.map(({ label, option }) => `chooses ${label}: ${JSON.stringify(option)}`),
    ...[...receivers].map(([words, to]) => `sends ${words} to ${to.join(", ")}`),
    ...events.map((event) => `emits ${phrase(event)}`),
    ...replies.map(({ reply }) => `replies ${phrase(reply)}`),
  ];
}

/** One-sentence summaries of a run's current state, with one function per family. */
import type { NodeId } from "../core/protocol.ts";
import { unwrapped } from "../core/wrapping.ts";
import { type Presentation, type Scene, type ShownNode, type Spans, spanOf } from "./presentation.ts";

/** Formats a list, such as `0`, `0 and 1` or `0, 1 and 2`. */
function list(items: readonly (NodeId | string)[]): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

const nodesIn = (ids: readonly NodeId[]): string => `${ids.length === 1 ? "node" : "nodes"} ${list(ids)}`;
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
/** Picks the singular or plural verb form. */
const verb = (ids: readonly unknown[], one: string, more: string): string => (ids.length === 1 ? one : more);

const upIn = ({ nodes }: Scene): readonly ShownNode[] => nodes.filter(({ condition }) => condition !== "down");
/**
 * Returns the running nodes. A paused node's view has no effect until the node resumes, unless the node is inside a
 * critical section.
 */
const runningIn = ({ nodes }: Scene): readonly ShownNode[] => nodes.filter(({ condition }) => condition === "up");
const idsOf = (nodes: readonly ShownNode[]): NodeId[] => nodes.map(({ node }) => node);

function among(nodes: readonly ShownNode[], words: Spans, kind: string): NodeId[] {
  return idsOf(nodes.filter(({ view, node }) => view !== null && spanOf(words, view, node)?.kind === kind));
}

/** Returns a suffix that lists the crashed and paused nodes. */
function absentIn({ nodes }: Scene): string {
  const parts = (["down", "paused"] as const).map((word) => {
    const absent = idsOf(nodes.filter(({ condition }) => condition === word));
    return absent.length === 0 ? "" : `; ${list(absent)} ${verb(absent, "is", "are")} ${word}`;
  });
  return parts.join("");
}

const sentence = (scene: Scene, text: string): string =>
  upIn(scene).length === 0 ? "All nodes are down." : `${capital(text)}${absentIn(scene)}.`;

function electionHeadline(words: Spans): Presentation["headline"] {
  return (scene) => {
    const up = runningIn(scene);
    const leaders = idsOf(up.filter(({ node, view }) => view?.leader === node));
    const electing = among(up, words, "electing");
    if (leaders.length > 1) return sentence(scene, `${nodesIn(leaders)} ${leaders.length === 2 ? "both" : "all"} lead`);
    if (electing.length > 0) {
      const who = `${nodesIn(electing)} ${verb(electing, "holds", "hold")} an election`;
      return sentence(scene, leaders.length === 0 ? who : `${who}, while ${leaders[0]} leads`);
    }
    if (leaders.length === 0) return sentence(scene, isFresh(scene) ? "no election has started yet" : leaderless(up));
    const [leader] = leaders;
    const strays = idsOf(up.filter(({ view }) => view?.leader !== leader));
    const rest = strays.length === 0 ? "" : `; ${list(strays)} ${verb(strays, "does", "do")} not follow it`;
    return sentence(scene, `${termOf(words, up, leader)}node ${leader} leads${rest}`);
  };
}

/**
 * Whether nothing has happened yet: failure detectors are the only source of events, all nodes are up and without a
 * leader, and all terms are 0.
 */
function isFresh({ nodes, events }: Scene): boolean {
  const isUntouched = ({ condition, view }: ShownNode) =>
    condition !== "down" && view !== null && view.leader === null && (view.term ?? 0) === 0;
  const saysAnything = events.some(({ event }) => !["suspected", "restored"].includes(unwrapped(event).type));
  return !saysAnything && nodes.every(isUntouched);
}

function leaderless(up: readonly ShownNode[]): string {
  const followed = [...new Set(up.flatMap(({ view }) => (typeof view?.leader === "number" ? [view.leader] : [])))];
  if (followed.length === 0) return "no node leads yet";
  return `no node leads, but ${list(followed)} ${verb(followed, "is", "are")} still followed`;
}

/** Returns a prefix with the given node's term, such as `term 3: `. Empty if the node is not up. */
function termOf({ term }: Spans, up: readonly ShownNode[], node: NodeId | undefined): string {
  const own = up.find((each) => each.node === node)?.view?.term;
  return own === undefined ? "" : `${term} ${own}: `;
}

function mutexHeadline(words: Spans): Presentation["headline"] {
  return (scene) => {
    const inside = among(upIn(scene), words, "inside");
    const waiting = among(upIn(scene), words, "waiting");
    const who = inside.length === 0 ? "no node is inside" : `${nodesIn(inside)} ${verb(inside, "is", "are")} inside`;
    const waits = waiting.length === 0 ? "" : `; ${list(waiting)} ${verb(waiting, "waits", "wait")}`;
    const nobody = inside.length === 0 && waiting.length === 0 ? ", and no node waits" : "";
    return sentence(scene, `${who}${waits}${nobody}`);
  };
}

const multicastHeadline: Presentation["headline"] = (scene) => {
  const delivered = new Map<NodeId, number>(idsOf(upIn(scene)).map((node) => [node, 0]));
  let sent = 0;
  for (const { node, event, times = 1 } of scene.events) {
    const { type } = unwrapped(event);
    if (type === "said") sent += times;
    if (type === "delivered" && delivered.has(node)) delivered.set(node, (delivered.get(node) ?? 0) + times);
  }
  const counts = [...delivered.values()];
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const holding = idsOf(upIn(scene).filter(({ view }) => (view?.held?.length ?? 0) > 0));
  const holders = holding.length === counts.length && holding.length > 2 ? "all" : list(holding);
  const held = holding.length === 0 ? "" : `; ${holders} ${verb(holding, "holds", "hold")} back messages`;
  if (sent === 0 && most <= 0) return sentence(scene, `nothing is delivered yet${held}`);
  const many = least === most ? `each node has delivered ${most}` : `the nodes have delivered ${least} to ${most}`;
  const of = sent === 0 ? "" : ` of ${sent}`; // Without a workload, the number of messages sent may be unknown.
  const what = (sent === 0 ? most : sent) === 1 ? "message" : "messages";
  return sentence(scene, `${many}${of} ${what}${held}`);
};

function consensusHeadline(words: Spans): Presentation["headline"] {
  return (scene) => {
    const values = new Map<string, Set<NodeId>>();
    for (const { node, event } of scene.events) {
      const { type, value } = unwrapped(event);
      if (type !== "decided" || value === undefined) continue;
      // In repeated consensus, only the latest decision of a node counts.
      for (const others of values.values()) others.delete(node);
      const text = typeof value === "string" ? value : JSON.stringify(value);
      values.set(text, (values.get(text) ?? new Set()).add(node));
    }
    const doubt = among(upIn(scene), words, "waiting");
    const waits = doubt.length === 0 ? "" : `; ${list(doubt)} ${verb(doubt, "is", "are")} in doubt`;
    const decided = [...values].filter(([, nodes]) => nodes.size > 0);
    if (decided.length === 0) return sentence(scene, `no node has decided yet${waits}`);
    const parts = decided.map(([value, nodes]) => {
      const who = nodes.size === scene.nodes.length ? "all nodes" : nodesIn([...nodes].toSorted((a, b) => a - b));
      return `${who} ${nodes.size === 1 ? "has" : "have"} decided “${value}”`;
    });
    return sentence(scene, `${parts.join(", but ")}${waits}`);
  };
}

const logHeadline = (words: Spans): Presentation["headline"] => logHeadlineWith(words, decidedIn);

/** Summarizes logs that tolerate Byzantine nodes. An entry counts as committed once 2f + 1 nodes have committed it. */
export const byzantineLogHeadline = (words: Spans): Presentation["headline"] => logHeadlineWith(words, committedIn);

function logHeadlineWith(words: Spans, progress: (scene: Scene) => string): Presentation["headline"] {
  return (scene) => {
    const up = runningIn(scene);
    const leaders = up.filter(({ node, view }) => view?.leader === node);
    const electing = among(up, words, "electing");
    const [leader] = leaders.toSorted((a, b) => (b.view?.term ?? 0) - (a.view?.term ?? 0));
    const others = idsOf(leaders.filter((each) => each !== leader));
    const stale =
      others.length === 0 ? "" : `, and ${list(others)} still ${verb(others, "thinks it does", "think they do")}`;
    const who =
      leader !== undefined
        ? `${termOf(words, up, leader.node)}node ${leader.node} leads${stale}`
        : electing.length > 0
          ? `${nodesIn(electing)} ${verb(electing, "holds", "hold")} an election`
          : "no node leads";
    return sentence(scene, `${who}; ${progress(scene)}`);
  };
}

function decidedIn({ nodes }: Scene): string {
  const known = decidedAt(nodes);
  const byMajority = known[Math.floor(known.length / 2)] ?? 0;
  return byMajority > 0 ? `entry ${byMajority} is decided on a majority of nodes` : hardlyDecided(known);
}

function committedIn({ nodes }: Scene): string {
  const known = decidedAt(nodes);
  const byQuorum = known[2 * Math.floor((known.length - 1) / 3)] ?? 0;
  return byQuorum > 0 ? `entry ${byQuorum} is committed by a quorum (2f + 1)` : hardlyDecided(known);
}

/** Returns the index of each node's last decided entry, highest first. */
const decidedAt = (nodes: Scene["nodes"]): number[] =>
  nodes.map(({ view }) => view?.log?.decided ?? 0).toSorted((a, b) => b - a);

function hardlyDecided([most = 0]: readonly number[]): string {
  return most > 0
    ? `${most === 1 ? "an entry is" : `${most} entries are`} decided, but few nodes know it`
    : "nothing is decided yet";
}

const membershipHeadline: Presentation["headline"] = (scene) => {
  const suspects = new Map<NodeId, Set<NodeId>>();
  for (const { node, event } of scene.events) {
    const { type, node: other } = unwrapped(event);
    const by = suspects.get(Number(other)) ?? new Set();
    if (type === "suspected") suspects.set(Number(other), by.add(node));
    if (type === "restored") by.delete(node);
  }
  const up = new Set(idsOf(upIn(scene)));
  const parts = [...suspects]
    .map(([node, by]) => [node, [...by].filter((each) => up.has(each)).toSorted((a, b) => a - b)] as const)
    .filter(([, by]) => by.length > 0)
    .map(([node, by]) => `node ${node} is suspected by ${list(by)}`);
  return sentence(scene, parts.length === 0 ? "no node is suspected" : parts.join("; "));
};

/** Summarizes elections with several leaders, each with its own followers. */
export const superPeersHeadline: Presentation["headline"] = (scene) => {
  const up = upIn(scene);
  const peers = idsOf(up.filter(({ node, view }) => view?.leader === node));
  const without = idsOf(up.filter(({ view }) => view?.leader == null));
  if (peers.length === 0) return sentence(scene, "no node is a super-peer yet");
  const rest = without.length === 0 ? "every node has one" : `${list(without)} ${verb(without, "has", "have")} none`;
  return sentence(scene, `${nodesIn(peers)} ${verb(peers, "is a super-peer", "are super-peers")}; ${rest}`);
};

/** The parts of its family's presentation that an algorithm overrides. */
export type DeclaredPresentation = Partial<Presentation>;

const bare = {
  topology: "complete",
  position: () => ({}),
  carriers: [],
  withheld: {},
  untilMs: 1_000,
  labels: {},
  periodic: [],
} as const;

/** Builds a family's presentation. If an algorithm overrides `term` or `spans`, the headline uses the new values. */
const family = (plain: Spans, headline: (words: Spans) => Presentation["headline"]) => {
  return (declared: DeclaredPresentation = {}): Presentation => {
    const own = { term: declared.term ?? plain.term, spans: declared.spans ?? plain.spans };
    return { ...bare, headline: headline(own), ...declared, ...own };
  };
};

/** Groups the nodes by role, such as `Nodes 0 and 2: waiting; node 1: inside.` */
const customHeadline: Presentation["headline"] = (scene) => {
  const roles = new Map<string, NodeId[]>();
  for (const { node, view } of runningIn(scene))
    if (view !== null) roles.set(view.role, [...(roles.get(view.role) ?? []), node]);
  return sentence(scene, [...roles].map(([role, nodes]) => `${nodesIn(nodes)}: ${role}`).join("; "));
};

export const electionShown = family({ term: "term", spans: "leadership" }, electionHeadline);
export const mutexShown = family({ term: "epoch", spans: "section" }, mutexHeadline);
export const multicastShown = family({ term: "view", spans: "views" }, () => multicastHeadline);
export const consensusShown = family({ term: "round", spans: "doubt" }, consensusHeadline);
export const logShown = family({ term: "term", spans: "leadership" }, logHeadline);
/** The presentation of protocols that run on the coordination service: the labels and periodic messages of its log. */
export const serviceShown: DeclaredPresentation = {
  labels: {
    appendEntries: ["term", "commitIndex"],
    appended: ["matchIndex"],
    forward: [],
    committed: ["commitIndex"],
  },
  periodic: ["heartbeat", "heartbeatAnswered", "quorum", "renew", "sweep", "idle", "committed"],
};
export const membershipShown = family({ term: "view", spans: "views" }, () => membershipHeadline);
export const customShown = family({ term: "term", spans: "leadership" }, () => customHeadline);

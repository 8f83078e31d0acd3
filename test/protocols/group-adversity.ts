/**
 * Applies random faults to a group: lost, duplicated and reordered messages, crashes, restarts, pauses, cuts,
 * partitions, joins and leaves. On a stage with reliable channels, message faults affect only broadcasts.
 */
import fc from "fast-check";
import type { CommandOf, NodeId, Vocabulary } from "../../src/core/protocol.ts";
import type { LinkModel } from "../../src/trace/link-model.ts";
import type { GroupStage } from "./group-stage.ts";

export interface Act {
  readonly afterMs: number;
  readonly what: (typeof kinds)[number];
  readonly node: NodeId;
  readonly other: NodeId;
}

const kinds = [
  ...([
    "send",
    "send",
    "send",
    "send",
    "send",
    "send",
    "crash",
    "start",
    "start",
    "pause",
    "resume",
    "cut",
    "mend",
  ] as const),
  ...([
    "last words",
    "last words",
    "answer",
    "answer",
    "answer",
    "calm",
    "calm",
    "part",
    "heal",
    "heal",
    "lose",
    "double",
    "lose and double nothing",
    "lose and double nothing",
    "overtake",
    "in order",
    "leave",
    "join",
    "join",
  ] as const),
] as const;

export const adversity = (nodes: number, acts: number): fc.Arbitrary<Act[]> =>
  fc.array(
    fc.record({
      afterMs: fc.oneof(fc.constant(0), fc.nat(10), fc.nat(30), fc.nat(300), fc.nat(3_000)),
      what: fc.constantFrom(...kinds),
      node: fc.nat(nodes - 1),
      other: fc.nat(nodes - 1),
    }),
    { maxLength: acts, size: "max" },
  );

/** Applies the acts. Impossible acts, such as a crash of a stopped node, are skipped. */
export function befall<M extends Vocabulary>(
  group: GroupStage<M>,
  nodes: readonly NodeId[],
  acts: readonly Act[],
): void {
  const { sim } = group;
  const paused = new Set<NodeId>();
  const isUpAndAbout = (node: NodeId): boolean => sim.world.alive.includes(node) && !paused.has(node);
  for (const { afterMs, what, ...act } of acts) {
    const [node, other] = [act.node % nodes.length, act.other % nodes.length];
    sim.run(sim.now + afterMs);
    const isUp = sim.world.alive.includes(node);
    if (what === "start" && !isUp) group.start(node);
    else if (what === "cut" && node !== other) sim.cut(node, other);
    else if (what === "mend" && node !== other) sim.mend(node, other);
    else if (what === "part") sim.partition([nodes.filter((each) => (each * 7 + other) % (node + 2) === 0)]);
    else if (what === "heal") sim.heal();
    else if (what === "lose") setLinks(group, nodes, { lossRate: 0.1 * (1 + other) });
    else if (what === "double") setLinks(group, nodes, { duplicateRate: 0.1 * (1 + other) });
    else if (what === "lose and double nothing") setLinks(group, nodes, plainly);
    else if (what === "overtake") setLinks(group, nodes, { order: "none" });
    else if (what === "in order") setLinks(group, nodes, { order: "fifo" });
    else if (what === "calm") {
      for (const each of paused) sim.resume(each);
      paused.clear();
      recover(group, nodes, 1_500);
    }
    if (!isUp) continue;
    if (what === "crash") {
      paused.delete(node);
      sim.crash(node);
    } else if (what === "pause" && !paused.has(node)) {
      paused.add(node);
      sim.pause(node);
    } else if (what === "resume" && paused.delete(node)) sim.resume(node);
    else if (what === "send") for (let n = 0; n <= other; n++) group.send(node);
    else if (what === "last words" && isUpAndAbout(node)) lastWords(group, nodes, node, other);
    else if (what === "answer" && node !== other && isUpAndAbout(node) && isUpAndAbout(other))
      answer(group, nodes, { node, other, afterMs });
    else if (what === "leave" || what === "join") group.tell(node, { type: what } as unknown as CommandOf<M>);
  }
  for (const node of paused) sim.resume(node);
}

/** Makes the last messages of a node before it leaves, crashes or restarts reach only one other node. */
function lastWords<M extends Vocabulary>(
  group: GroupStage<M>,
  nodes: readonly NodeId[],
  node: NodeId,
  to: NodeId,
): void {
  const { sim } = group;
  const deaf = nodes.filter((each) => each !== node && each !== to);
  for (const each of deaf) sim.cut(node, each);
  for (let n = 0; n <= to; n++) group.send(node);
  sim.run(sim.now + 12);
  if (to % 3 === 0) group.tell(node, { type: "leave" } as unknown as CommandOf<M>);
  else sim.crash(node);
  if (to % 3 === 1) group.start(node);
  for (const each of deaf) sim.mend(node, each);
}

/**
 * Makes the messages of a node, or their consequences a little later, reach only one other node, which answers.
 * Sometimes both nodes then crash.
 */
function answer<M extends Vocabulary>(
  group: GroupStage<M>,
  nodes: readonly NodeId[],
  { node, other, afterMs }: Pick<Act, "node" | "other" | "afterMs">,
): void {
  const { sim } = group;
  const deaf = nodes.filter((each) => each !== node && each !== other);
  const hushMs = afterMs % 2 === 0 ? 0 : afterMs % 25;
  const hush = (): void => {
    for (const each of deaf) sim.cut(node, each);
  };
  if (hushMs === 0) hush();
  group.send(node);
  sim.run(sim.now + hushMs);
  hush();
  sim.run(sim.now + 30 - hushMs);
  group.send(other);
  if (afterMs % 3 === 1) for (const each of [node, other]) sim.crash(each);
  sim.run(sim.now + 12);
  for (const each of deaf) sim.mend(node, each);
}

/** Ends all faults except reordering, and makes all nodes join. */
export function recover<M extends Vocabulary>(group: GroupStage<M>, nodes: readonly NodeId[], forMs = 10_000): void {
  const { sim } = group;
  sim.heal();
  setLinks(group, nodes, plainly);
  for (const node of nodes) {
    if (!sim.world.alive.includes(node)) group.start(node);
    group.tell(node, { type: "join" } as unknown as CommandOf<M>);
  }
  sim.run(sim.now + forMs);
}

const plainly = { lossRate: 0, duplicateRate: 0 };

function setLinks<M extends Vocabulary>(
  { sim }: GroupStage<M>,
  nodes: readonly NodeId[],
  model: Partial<LinkModel>,
): void {
  for (const from of nodes) for (const to of nodes) if (from !== to) sim.setLink(from, to, model);
}

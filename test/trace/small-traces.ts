/** Small traces for tests. */
import type { NodeId } from "../../src/core/protocol.ts";
import type { TraceEntry, TraceHeader } from "../../src/trace/entry.ts";
import type { Trace } from "../../src/trace/file.ts";
import { vectorClocks } from "../../src/trace/steps.ts";

export function headerFor(nodes: readonly NodeId[], more: Partial<TraceHeader> = {}): TraceHeader {
  return {
    kind: "trace",
    version: 1,
    madeBy: "simulator",
    protocol: "bully",
    form: "model",
    variant: null,
    options: {},
    nodes,
    seed: 1,
    violation: null,
    ...more,
  };
}

export function traceOf(nodes: readonly NodeId[], entries: readonly TraceEntry[], more?: Partial<TraceHeader>): Trace {
  return { header: headerFor(nodes, more), entries, clocks: vectorClocks(entries) };
}

export const send = (at: number, node: NodeId, to: NodeId, id: string, type = "hello"): TraceEntry => ({
  at,
  node,
  kind: "send",
  id,
  to,
  message: { type },
});

export const receive = (at: number, node: NodeId, from: NodeId, id: string, type = "hello"): TraceEntry => ({
  at,
  node,
  kind: "receive",
  id,
  from,
  message: { type },
});

/** Contains every kind of entry. */
export const everyKind: Trace = traceOf(
  [0, 1, 2],
  [
    { at: 0, node: 0, kind: "start" },
    { at: 0, node: 0, kind: "view", view: { role: "follower", leader: null, term: 1 }, state: {} },
    { at: 0, node: 1, kind: "start" },
    { at: 2, node: 2, kind: "receive", id: "early", from: 1, message: { type: "older" } },
    { at: 5, node: 0, kind: "command", command: { type: "call" } },
    send(5, 0, 1, "a", "election"),
    send(5, 0, 2, "b", "election"),
    { at: 5, node: 0, kind: "lost", id: "b", to: 2, why: "cut" },
    { at: 12, node: 1, kind: "receive", id: "a", from: 0, message: { type: "election" } },
    { at: 12, node: 1, kind: "choice", label: "vote", option: "yes" },
    send(12, 1, 0, "c", "answer"),
    send(12, 1, 1, "self", "note"),
    { at: 14, node: 1, kind: "receive", id: "self", from: 1, message: { type: "note" } },
    { at: 18, node: 2, kind: "fault", what: "link to 0 cut" },
    receive(20, 0, 1, "c", "answer"),
    { at: 20, node: 0, kind: "event", event: { type: "elected", leader: 0 } as { type: string } },
    { at: 20, node: 0, kind: "view", view: { role: "leader", leader: 0, term: 2 }, state: {} },
    send(20, 0, 1, "d", "beat"),
    { at: 27, node: 1, kind: "pause" },
    { at: 30, node: 2, kind: "timeout", timer: "election.answer" },
    { at: 34, node: 0, kind: "crash" },
    send(36, 2, 0, "e", "election"),
    { at: 45, node: 0, kind: "lost", id: "e", to: 0, why: "crashed" },
    { at: 50, node: 1, kind: "resume" },
    { at: 51, node: 1, kind: "gap", dropped: 12 },
    { at: 1_000, node: 0, kind: "start" },
    { at: 1_000, node: 0, kind: "view", view: { role: 'follower <&> "quoted"', leader: null, term: 2 }, state: {} },
  ],
);

const views = (at: number, node: NodeId, held: readonly string[]): TraceEntry => ({
  at,
  node,
  kind: "view",
  view: { role: "member", held },
  state: {},
});

const delivers = (at: number, node: NodeId, id: string): TraceEntry => ({
  at,
  node,
  kind: "event",
  event: { type: "multicast", body: { type: "delivered", from: 0, payload: "", id } } as { type: string },
});

/**
 * Six messages from one sender. The first one is slow. Its receiver holds back the others, which are more than there
 * are rows for, and crashes while it still holds one.
 */
export const holdBack: Trace = traceOf(
  [0, 1],
  [
    { at: 0, node: 0, kind: "start" },
    { at: 0, node: 1, kind: "start" },
    views(0, 1, []),
    ...[1, 2, 3, 4, 5, 6, 8].flatMap((number) => [
      { at: 5 * number, node: 0, kind: "command" as const, command: { type: "send" } },
      send(5 * number, 0, 1, `m${number}`, "multicast"),
      delivers(5 * number, 0, `0.${number}`),
    ]),
    ...[2, 3, 4, 5, 6].flatMap((number) => [
      receive(50 + 10 * number, 1, 0, `m${number}`, "multicast"),
      views(
        50 + 10 * number,
        1,
        Array.from({ length: number - 1 }, (_, place) => `0.${place + 2}`),
      ),
    ]),
    receive(150, 1, 0, "m1", "multicast"),
    ...[1, 2, 3, 4, 5, 6].map((number) => delivers(150, 1, `0.${number}`)),
    views(150, 1, []),
    receive(200, 1, 0, "m8", "multicast"),
    views(200, 1, ["0.8"]),
    { at: 240, node: 1, kind: "crash" },
    { at: 260, node: 1, kind: "start" },
    views(260, 1, []),
  ],
  { protocol: "fifo" },
);

/** A repeating counterexample of the checker. Time is counted in steps. */
export const lasso: Trace = traceOf(
  [0, 1, 2],
  [
    { at: 0, node: 0, kind: "command", command: { type: "propose", value: "a" } as { type: string } },
    send(0, 0, 1, "1", "prepare"),
    receive(1, 1, 0, "1", "prepare"),
    send(1, 1, 0, "2", "promise"),
    { at: 2, node: 2, kind: "timeout", timer: "retry" },
    send(2, 2, 1, "3", "prepare"),
    receive(3, 1, 2, "3", "prepare"),
    send(3, 1, 2, "4", "promise"),
    receive(4, 0, 1, "2", "promise"),
    receive(5, 2, 1, "4", "promise"),
  ],
  {
    madeBy: "checker",
    protocol: "paxos",
    seed: null,
    violation: {
      property: "termination",
      claim: "every proposer eventually decides as long as a majority of acceptors is alive and messages arrive",
      loopFrom: 4,
    },
  },
);

/** Checks that folding never hides anything of interest, and that the remaining trace is consistent. */
import { describe, expect, it } from "vitest";
import { traceOf } from "../../test/trace/small-traces.ts";
import type { TraceEntry } from "./entry.ts";
import { presented } from "./presented.ts";

const beat = { type: "heartbeat", term: 3, round: 1, history: [1, 2, 3] };
const view = (at: number, node: number): TraceEntry => ({
  at,
  node,
  kind: "view",
  view: { role: "follower", leader: 0 },
});
const sent = (at: number, id: string, message: object = beat): TraceEntry => ({
  at,
  node: 0,
  kind: "send",
  id,
  to: 1,
  message: message as typeof beat,
});
const got = (at: number, id: string, message: object = beat): TraceEntry => ({
  at,
  node: 1,
  kind: "receive",
  id,
  from: 0,
  message: message as typeof beat,
});
const fired = (at: number): TraceEntry => ({ at, node: 0, kind: "timeout", timer: "log.beat" });
const showing = { rows: [1, 0], labels: {}, periodic: ["heartbeat", "beat"] };

const kindsOf = (entries: readonly TraceEntry[]) => entries.map(({ at, kind }) => `${at} ${kind}`);

describe("a presented trace", () => {
  it("keeps a heartbeat that makes a follower, and folds the next one with its timeout", () => {
    const entries = [fired(0), sent(0, "a"), got(5, "a"), view(5, 1), fired(10), sent(10, "b"), got(15, "b")];
    const small = presented(traceOf([0, 1], entries), showing);
    expect(kindsOf(small.entries)).toEqual(["0 timeout", "0 send", "5 receive", "5 view"]);
    expect(small.kept).toEqual([0, 1, 2, 3]);
    expect(small.header.nodes).toEqual([1, 0]);
  });

  it("keeps a timeout that also had another effect", () => {
    const entries = [
      fired(0),
      sent(0, "a"),
      sent(0, "b", { type: "vote" }),
      got(5, "a"),
      got(6, "b", { type: "vote" }),
    ];
    expect(kindsOf(presented(traceOf([0, 1], entries), showing).entries)).toEqual(["0 timeout", "0 send", "6 receive"]);
  });

  it("folds a lost periodic message with its loss", () => {
    const lost: TraceEntry = { at: 3, node: 1, kind: "lost", id: "a", to: 1, why: "crashed" };
    expect(presented(traceOf([0, 1], [fired(0), sent(0, "a"), lost]), showing).entries).toEqual([]);
  });

  it("labels messages with two short fields, or with the declared ones", () => {
    const messageIn = (labels: Record<string, readonly string[]>) =>
      presented(traceOf([0, 1], [sent(0, "a"), view(0, 0)]), { ...showing, periodic: [], labels }).entries[0];
    expect(messageIn({})).toMatchObject({ message: { type: "heartbeat", term: 3, round: 1 } });
    expect(Object.keys((messageIn({ heartbeat: ["round"] }) as { message: object }).message)).toEqual([
      "type",
      "round",
    ]);
  });

  it.each(["constructor", "toString", "__proto__"])("labels a message called %s like any other", (type) => {
    const { entries } = presented(traceOf([0, 1], [sent(0, "a", { type, term: 3 })]), showing);
    expect(entries).toEqual([sent(0, "a", { type, term: 3 })]);
  });

  it("keeps everything if nothing is periodic", () => {
    const entries = [fired(0), sent(0, "a"), got(5, "a")];
    expect(presented(traceOf([0, 1], entries), { ...showing, periodic: [] }).kept).toEqual([0, 1, 2]);
  });
});

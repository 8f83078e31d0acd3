import { describe, expect, it } from "vitest";
import { protocolNamed } from "./index.ts";
import { spanOf } from "./presentation.ts";

const shownBy = (protocol: string) => protocolNamed(protocol).presentation;

describe("what a node is in for some time", () => {
  it("is a ballot of its own in Paxos, also where it has heard of higher ones", () => {
    const paxos = shownBy("paxos");
    expect(spanOf(paxos, { role: "preparing", term: 1 }, 4)).toEqual({ kind: "preparing", words: "ballot 1.4" });
    expect(spanOf(paxos, { role: "proposing", term: 2 }, 0)).toEqual({ kind: "proposing", words: "ballot 2.0" });
    expect(spanOf(paxos, { role: "acceptor", term: 2 }, 0)).toBeNull();
    const { init, view } = protocolNamed("paxos").model();
    const heard = { ...init(4, [0, 1]), round: 7, proposer: { is: "preparing", ballot: { round: 1, node: 4 } } };
    expect(view(heard as never, 4)).toEqual({ role: "preparing", term: 1 });
  });

  it("is a view in a group that changes, and between two views", () => {
    const group = shownBy("view-synchrony");
    expect(spanOf(group, { role: "inside", term: 2 }, 0)).toEqual({ kind: "view", words: "view 2" });
    expect(spanOf(group, { role: "changing", term: 2 }, 0)).toEqual({ kind: "changing", words: "" });
    expect(spanOf(group, { role: "outside", term: 0 }, 0)).toBeNull();
    expect(spanOf(shownBy("isis"), { role: "up to date" }, 0)).toBeNull();
  });

  it("is a view with its primary in PBFT", () => {
    const pbft = shownBy("pbft");
    expect(spanOf(pbft, { role: "primary", term: 0, leader: 0 }, 0)).toEqual({ kind: "leading", words: "view 0" });
    expect(spanOf(pbft, { role: "backup", term: 0, leader: 0 }, 1)).toEqual({ kind: "view", words: "view 0" });
    expect(spanOf(pbft, { role: "changing view", term: 1, leader: null }, 1)).toMatchObject({ kind: "changing" });
  });
});

import { describe, expect, it } from "vitest";
import type { NodePicture } from "./feed.ts";
import { headlineOf, spansOf, ToldEvents } from "./headline.ts";

const node = (id: number, role: string, process: NodePicture["process"] = "running"): NodePicture => ({
  id,
  pid: 1,
  address: "",
  admin: "",
  process,
  exit: null,
  view: process === "exited" ? null : { role },
  commands: [],
});

describe("the summary of the live page", () => {
  it("names the nodes that are inside, waiting and down", () => {
    const nodes = [node(0, "held"), node(1, "wanted"), node(2, "", "exited")];
    expect(headlineOf("ricart-agrawala", nodes, [])).toBe("Node 0 is inside; 1 waits; 2 is down.");
  });

  it("names the leader of an election, or that none has been called yet", () => {
    const idle = [0, 1, 2].map((id) => ({ ...node(id, ""), view: { role: "non-participant", leader: null } }));
    expect(headlineOf("chang-roberts", idle, [])).toBe("No election has started yet.");
    const [first, ...others] = idle as [NodePicture, ...NodePicture[]];
    const calling = { ...first, view: { role: "participant", leader: null } };
    expect(headlineOf("chang-roberts", [calling, ...others], [])).toBe("Node 0 holds an election.");
    const led = idle.map((each) => ({ ...each, view: { role: each.id === 2 ? "leader" : "follower", leader: 2 } }));
    expect(headlineOf("chang-roberts", led, null)).toBe("Node 2 leads.");
    const gone = [...idle.slice(1), node(0, "", "exited")];
    expect(headlineOf("chang-roberts", gone, [])).toBe("No node leads yet; 0 is down.");
    expect(headlineOf("chang-roberts", idle, [{ node: 0, event: { type: "elected" } }])).toBe("No node leads yet.");
  });

  it("does not show a paused node as the leader", () => {
    const paused = { ...node(3, "", "paused"), view: { role: "leader", leader: 3 } };
    const led = [0, 1, 2].map((id) => ({ ...node(id, ""), view: { role: "follower", leader: 2 } }));
    expect(headlineOf("bully", [...led, paused], [])).toBe("Node 2 leads; 3 is paused.");
    expect(headlineOf("raft", [...led, paused], [])).toBe("Node 2 leads; nothing is decided yet; 3 is paused.");
  });

  it("counts deliveries and decisions, no matter how many", () => {
    const events = new ToldEvents();
    for (let i = 0; i < 3; i++) events.add(0, { type: "said" });
    for (let i = 0; i < 3; i++) for (const id of [0, 1]) events.add(id, { type: "delivered" });
    expect(events.all).toHaveLength(3);
    const members = [node(0, "member"), node(1, "member")];
    expect(headlineOf("fifo", members, events.all)).toBe("Each node has delivered 3 of 3 messages.");
    const decided = new ToldEvents();
    for (const value of ["tea", "milk"]) for (const id of [0, 1]) decided.add(id, { type: "decided", value } as never);
    expect(headlineOf("paxos", members, decided.all)).toBe("All nodes have decided “milk”.");
  });

  it("names the nodes suspected now", () => {
    const events = new ToldEvents();
    const say = (type: string) => events.add(0, { type, node: 1 } as never);
    const members = [node(0, "member"), node(1, "member")];
    say("suspected");
    expect(headlineOf("heartbeat", members, events.all)).toBe("Node 1 is suspected by 0.");
    say("restored");
    expect(headlineOf("heartbeat", members, events.all)).toBe("No node is suspected.");
    say("suspected");
    expect(headlineOf("heartbeat", members, events.all)).toBe("Node 1 is suspected by 0.");
  });

  it("is absent if it needs unknown events, or the protocol is not in the registry", () => {
    for (const protocol of ["isis", "paxos", "heartbeat", "two-phase-commit", "services"])
      expect.soft(headlineOf(protocol, [node(0, "leader")], null), protocol).toBeNull();
  });

  it("comes with the spans that the protocol declares", () => {
    expect(spansOf("raft")).toEqual({ spans: "leadership", term: "term" });
    expect(spansOf("pbft")).toEqual({ spans: "views", term: "view" });
    expect(spansOf("maekawa").spans).toBe("section");
    expect(spansOf("two-phase-commit").spans).toBe("doubt");
    expect(spansOf("services").spans).toBe("section");
  });
});

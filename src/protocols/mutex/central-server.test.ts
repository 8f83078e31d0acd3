import { describe, expect, it } from "vitest";
import {
  expectEverybodyServed,
  exploreUses,
  MESSAGE_MS,
  STAY_MS,
  stage,
  use,
} from "../../../test/protocols/mutex-stage.ts";
import { eachSize, range } from "../../../test/protocols/sizes.ts";
import { centralServer } from "./central-server.ts";
import { mutexWithWorkload } from "./family/workload.ts";

describe("central server: the worked example of the catalogue", () => {
  it("p3 holds the token; p4 requests it, waits, and gets it on release", async () => {
    const { sim, story, moments } = stage(centralServer(), [1, 2, 3, 4]);
    sim.command(3, use(1));
    sim.run(25);
    sim.command(4, use(1));
    sim.run();
    expect(moments("entered")).toEqual([
      { node: 3, at: 2 * MESSAGE_MS },
      { node: 4, at: 2 * MESSAGE_MS + STAY_MS + 2 * MESSAGE_MS },
    ]);
    expect(sim.violations).toEqual([]);
    await expect(story()).toMatchFileSnapshot("stories/central-server-p4-waits.txt");
  });
});

describe("central server: what it costs", () => {
  eachSize(2, 64, "N = %i: 3 messages per entry, and none for the server itself", (nodes) => {
    const { sim } = stage(centralServer(), range(0, nodes - 1));
    sim.command(nodes - 1, use(1));
    sim.run();
    expect(sim.messages.byType).toEqual({ request: 1, grant: 1, release: 1 });
    expect(sim.messages.total).toBe(centralServer().costs[0]?.messages(nodes));
    sim.command(0, use(1));
    sim.run();
    expect(sim.messages.total).toBe(3);
  });
});

describe("central server: what it guarantees", () => {
  it("ME1, ME2: with any workloads and any delays, and the tokens of the entries grow", () => {
    expectEverybodyServed(5, (links) => stage(centralServer({ server: 2 }), range(0, 4), links), {
      also({ sim, moments }) {
        const tokens = range(0, 4).flatMap((node) => sim.world.state(node).mutex.token);
        expect(Math.max(...tokens)).toBe(moments("entered").length);
      },
    });
  });

  it("explored: 3 nodes, two entries each, over FIFO links and over unordered links", () => {
    expect(exploreUses(centralServer(), 3, 2)).toMatchObject({ verdict: "holds", states: 1_988 });
    expect(exploreUses(centralServer(), 3, 2, { network: "bag" })).toMatchObject({ verdict: "holds" });
  });

  it("a crash of the server, or of the node inside, blocks all nodes: ME2", () => {
    const { verdict, property } = exploreUses(centralServer(), 3, 1, { crashes: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "ME2 liveness"]);
  });

  it("tokens do not grow if the server forgets its number of grants", () => {
    const properties = mutexWithWorkload(centralServer).properties.filter(({ name }) => name === "tokens grow");
    const { verdict, property } = exploreUses(centralServer(), 3, 1, { properties, crashes: 1, recoveries: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "tokens grow"]);
  });

  it("ignores a duplicate request, grant or release", () => {
    const protocol = centralServer();
    const { sim } = stage(protocol, [0, 1, 2]);
    for (const node of [1, 2]) sim.command(node, use(1));
    sim.run(25);
    const { state } = sim.world;
    const before = JSON.stringify([state(0), state(1)]);
    const ctx = {
      self: 0,
      peers: [1, 2],
      send: () => expect.fail("sent"),
      emit: () => expect.fail("emitted"),
    } as never;
    protocol.receive.request(state(0).mutex, 2, { type: "request" }, ctx);
    protocol.receive.release(state(0).mutex, 2, { type: "release", token: 1 }, ctx);
    protocol.receive.release(state(0).mutex, 1, { type: "release", token: 0 }, ctx);
    protocol.receive.grant(state(1).mutex, 0, { type: "grant", token: 1 }, ctx);
    expect(JSON.stringify([state(0), state(1)])).toBe(before);
  });

  it("a request that arrives twice is granted twice, and the node returns the second grant", () => {
    const { sim, moments } = stage(centralServer(), [0, 1, 2]);
    sim.command(1, use(1));
    sim.run(25);
    sim.world.state(0).mutex.service?.queue.push(1, 2);
    sim.world.state(2).mutex.section = "wanted";
    sim.run();
    expect(moments("entered").map(({ node }) => node)).toEqual([1, 2]);
  });
});

import { describe, expect, it } from "vitest";
import { stage } from "../../../../test/protocols/multicast-stage.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { type IpMulticast, type IpMulticastOptions, ipMulticast } from "./ip-multicast.ts";
import { MAX_WANTED } from "./vocabulary.ts";

const group = (nodes: number, options: Partial<IpMulticastOptions> = {}) =>
  stage<IpMulticast>(ipMulticast(options), nodes, { properties: "at the end" });

describe("what is missing of more senders than one message asks for", () => {
  const MANY = MAX_WANTED + 6;
  const last = MANY - 1;
  const others = range(0, last - 1);

  /** Each of the others has sent a message that does not reach the last. */
  function deaf(options: Partial<IpMulticastOptions>, prepare: (staged: ReturnType<typeof group>) => void) {
    const staged = group(MANY, options);
    prepare(staged);
    for (const node of others) staged.sim.cut(node, last);
    for (const node of others) staged.send(node, `of ${node}`);
    return staged;
  }

  it("is asked for in one message after the other", () => {
    const staged = deaf({}, () => {});
    staged.sim.heal();
    staged.sim.run(3_000);
    expect(staged.at(last).toSorted()).toEqual(others.map((node) => `of ${node}`).toSorted());
    expect(staged.sim.messages.byType.nack).toBeGreaterThanOrEqual(2 * (MANY - 1));
    expect(staged.sim.verdict()).toEqual([]);
  });

  it("is asked for before the group changes, too", () => {
    const members = range(0, last);
    const staged = deaf({ begin: "outside", sessions: false }, ({ sim }) => {
      for (const node of members) sim.command(node, { type: "change", view: 1, members, cut: [] });
    });
    staged.sim.run(100);
    staged.sim.heal();
    for (const node of members) staged.sim.command(node, { type: "flush", round: 1 });
    const cut = members.map((node) => (node === last ? 0 : 1));
    const holders = members.map((node) => (node === last ? last : 0));
    staged.sim.command(last, { type: "fill", round: 1, cut, holders });
    staged.sim.run(3_000);
    expect(staged.sim.events(last)).toContainEqual({ type: "filled", round: 1 });
  });
});

describe("a member that does not hear another", () => {
  it.each([3, 5])("gets its messages of those who do (N = %i)", (nodes) => {
    const staged = group(nodes);
    staged.sim.cut(0, nodes - 1); // One way: 0 hears that it is asked, and answers.
    staged.send(0, "m");
    staged.sim.run(2_000);
    expect(staged.at(nodes - 1)).toEqual(["m"]);
    expect(staged.sim.verdict()).toEqual([]);
  });
});

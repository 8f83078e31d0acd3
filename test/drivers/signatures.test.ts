/**
 * Checks, in all drivers, that a node cannot alter a value that a different node has signed, but can alter an unsigned
 * one.
 */
import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/index.ts";
import { idealSignatures, isGenuine, natural, sign, signed } from "../../src/core/index.ts";
import { type ByzantineBehaviour, behaviours, byzantine, onProcesses } from "../../src/protocols/byzantine.ts";
import { simulation } from "../../src/sim/index.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { replay } from "../../src/trace/replay.ts";
import { newKeys } from "../network/signing-keys.ts";
import { hostsInMemory } from "./hosts-in-memory.ts";
import { type Relay, relayedOrder } from "./relayed-order.ts";

const nodes = [0, 1, 2];

const order = (word: "attack" | "retreat") => ({ type: "order" as const, word });

/** Returns whether node 2 ever obeys an order that node 0 did not give. */
function simulated(how: "signed" | "plain", liar: ByzantineBehaviour): boolean {
  return Array.from({ length: 40 }, (_, seed) => seed).some((seed) => {
    const byzantineNodes = new Map([[1, liar]]);
    const sim = simulation({ protocol: relayedOrder(how), nodes, seed, delayMs: 1, byzantine: byzantineNodes });
    for (const node of nodes) sim.wake(node);
    for (let again = 0; again < 3; again++) sim.command(0, order("attack"));
    sim.run();
    return sim.violations.length > 0;
  });
}

const explored = (how: "signed" | "plain", liar: ByzantineBehaviour) =>
  explore({
    protocol: byzantine(relayedOrder(how), new Map([[1, liar]])),
    nodes,
    network: "bag",
    timers: "never",
    begin: "idle",
    asks: (node) => (node === 0 ? [order("attack"), order("attack")] : []),
  });

/** Changes the order and leaves everything else unchanged. */
const forger: ByzantineBehaviour = {
  lie: (_to, message) => [
    message,
    { ...message, order: { ...(message as Relay["message"]).order, value: "retreat" } } as Relay["message"],
  ],
};

describe("an order that a Byzantine node passes on", () => {
  it.each([["adversary"], [{ lies: 2 }], [forger]] as const)("is altered if unsigned: %o", (liar) => {
    expect(simulated("plain", liar)).toBe(true);
    if (liar !== "adversary") expect(explored("plain", liar).verdict).toBe("violated");
  });

  it.each([["adversary"], [{ lies: 2 }], [forger]] as const)("is not altered if signed: %o", (liar) => {
    expect(simulated("signed", liar)).toBe(false);
    if (liar !== "adversary") expect(explored("signed", liar).verdict).toBe("holds");
  });

  it("reaches 2 on hosts, with Ed25519, and no other key is accepted", () => {
    const keys = newKeys(nodes);
    const { hosts, state, deliver } = hostsInMemory(relayedOrder("signed"), nodes, (self) => ({
      signatures: keys(self),
    }));
    hosts.get(0)?.command(order("attack"));
    deliver();
    expect(state(2).obeyed).toEqual(["attack"]);
    const others = newKeys(nodes);
    const strangers = hostsInMemory(relayedOrder("signed"), nodes, (self) => ({
      signatures: self === 0 ? others(self) : keys(self),
    }));
    strangers.hosts.get(0)?.command(order("attack"));
    strangers.deliver();
    expect(strangers.state(2).obeyed).toEqual([]);
  });

  it.each(behaviours)(
    "with Ed25519 is altered as little as in the simulator, and its sender is known: %s",
    (behaviour) => {
      const keys = newKeys(nodes);
      const wrong: string[] = [];
      const protocol = byzantine(relayedOrder("signed"), new Map([[1, onProcesses(behaviour)]]));
      const { hosts, state, deliver } = hostsInMemory(protocol, nodes, (self) => ({
        signatures: keys(self),
        onWrongSignature: (from, by) => wrong.push(`${self}: ${from} in the name of ${by}`),
      }));
      for (let again = 0; again < 20; again++) {
        hosts.get(0)?.command(order("attack"));
        deliver();
      }
      for (const host of hosts.values()) host.stop();
      expect(["", "attack"]).toContain(state(2).obeyed.join());
      expect(wrong).toEqual([]); // The forger signs with its own key, so the sender matches.
    },
  );

  it("in another's name is not obeyed, and counts against its sender", () => {
    const keys = newKeys(nodes);
    const wrong: string[] = [];
    const protocol = byzantine(relayedOrder("signed"), new Map([[1, forger]]));
    const { hosts, state, deliver } = hostsInMemory(protocol, nodes, (self) => ({
      signatures: keys(self),
      onWrongSignature: (from, by) => wrong.push(`${self}: ${from} in the name of ${by}`),
    }));
    for (let again = 0; again < 30; again++) hosts.get(0)?.command(order("attack"));
    deliver();
    expect(state(2).obeyed).toEqual(["attack"]);
    expect(new Set(wrong)).toEqual(new Set(["2: 1 in the name of 0"]));
  });

  it("is recorded with its signatures: a replay needs no keys, and shows which were wrong", () => {
    const keys = newKeys(nodes);
    const entries: TraceEntry<Relay>[] = [];
    const protocol = byzantine(relayedOrder("signed"), new Map([[1, forger]]));
    const { hosts, deliver } = hostsInMemory(protocol, nodes, (self) => ({
      signatures: keys(self),
      trace: { wanted: true, record: (entry) => void entries.push(JSON.parse(JSON.stringify(entry))) },
    }));
    for (let again = 0; again < 30; again++) hosts.get(0)?.command(order("attack"));
    deliver();
    const found = entries.filter(({ kind }) => kind === "choice");
    expect(new Set(found.map((entry) => (entry.kind === "choice" ? entry.label : "")))).toEqual(
      new Set(["signature", "lie", "wrong signature"]),
    );
    const { doubts, verdict, snapshot } = replay(protocol, nodes, entries, { hasRealSignatures: true });
    expect(doubts).toEqual([]);
    expect(verdict).toBe("holds");
    expect(snapshot.nodes[2]?.state).toEqual({ obeyed: ["attack"] });
    expect(replay(protocol, nodes, entries).doubts).not.toEqual([]); // The simulator's signatures are different.
  });

  it("is rejected by a host without keys", () => {
    const { hosts } = hostsInMemory(relayedOrder("signed"), nodes);
    expect(() => hosts.get(0)?.command(order("attack"))).toThrow("expected `signatures` for a protocol that signs");
  });
});

describe("a signature", () => {
  const count = signed("count", natural);
  const other = signed("other count", natural);
  const [one, two] = [1, 2].map((self) => ({ self, signatures: idealSignatures(self) })) as [Signer, Signer];
  type Signer = Parameters<typeof sign>[0];

  it("covers one node, one value and one meaning", () => {
    const five = sign(one, count, 5);
    expect(isGenuine(two, count, five)).toBe(true);
    expect(isGenuine(two, count, { ...five, by: 2 })).toBe(false);
    expect(isGenuine(two, count, { ...five, value: 6 })).toBe(false);
    expect(isGenuine(two, other, five)).toBe(false);
    expect(isGenuine(two, count, { ...five, value: -5 })).toBe(false);
  });

  it("is not created for a value that does not match the shape", () => {
    expect(() => sign(one, count, -1)).toThrow("expected the signed value to be a natural number, got -1");
  });

  it("by Ed25519 covers one node and one text, and needs the node's key", () => {
    const keys = newKeys([1, 2]);
    const signature = keys(1).sign("text");
    expect(keys(2).isSigned(1, "text", signature)).toBe(true);
    for (const [by, text] of [[1, "texts"], [2, "text"], [3, "text"]] as const) // biome-ignore format: short
      expect(keys(2).isSigned(by, text, signature)).toBe(false);
  });
});

import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../test/network/seed.ts";
import type { RunKey } from "./udp-datagram.ts";
import { SeenNumbers, UdpPeer } from "./udp-peer.ts";

const [SELF, OWN_RUN] = [0, 100];
const us = [{ node: SELF, run: OWN_RUN }];
const peer = (key: RunKey | null = null): UdpPeer => new UdpPeer(1, OWN_RUN, 1_000, () => key);

/** Runs this many checks, with no datagram in between. */
function silence(of: UdpPeer, looks: number): void {
  for (let i = 0; i < looks; i++) of.look();
}

describe("a peer", () => {
  test("is trusted once it has named this member's own run", () => {
    const it = peer();
    expect(it.greet(5, 1, [], SELF)).toBe(true);
    expect([it.isTrusted(5), it.isReached]).toEqual([false, false]);
    expect(it.heard).toEqual([{ node: 1, run: 5 }]);
    expect(it.greet(5, 2, us, SELF)).toBe(true);
    expect([it.isTrusted(5), it.isReached]).toEqual([true, true]);
    expect(it.greet(5, 3, us, SELF)).toBe(false); // This hello contains no new information.
  });

  test("is not trusted for naming an earlier run of this member's process", () => {
    const it = peer();
    it.greet(5, 1, [{ node: SELF, run: 99 }], SELF);
    it.greet(5, 2, [{ node: 2, run: OWN_RUN }], SELF);
    expect(it.isTrusted(5)).toBe(false);
  });

  test("is received from but not reached while it receives nothing from this member", () => {
    const it = peer();
    it.greet(5, 1, us, SELF);
    expect(it.greet(5, 2, [], SELF)).toBe(true);
    expect([it.isHeard, it.isReached]).toEqual([true, false]);
  });

  test("is silent after eight checks without a datagram, and back with the next one", () => {
    const it = peer();
    it.greet(5, 1, us, SELF);
    silence(it, 7);
    expect(it.isReached).toBe(true);
    silence(it, 1);
    expect([it.isHeard, it.heard]).toEqual([false, []]);
    expect(it.objection(5, 2, false)).toBeNull();
    expect(it.isReached).toBe(true);
  });

  test("that restarts is first a candidate; after that, nothing of its old run is accepted", () => {
    const it = peer();
    it.greet(5, 1, us, SELF);
    it.greet(6, 1, [], SELF);
    expect([it.isTrusted(5), it.isReached]).toEqual([true, true]); // The hello may have been replayed.
    expect(it.heard).toEqual([
      { node: 1, run: 5 },
      { node: 1, run: 6 },
    ]);
    it.greet(6, 2, us, SELF);
    expect(it.isTrusted(6)).toBe(true);
    expect(it.objection(5, 9, false)?.[0]).toBe("old-run");
    expect(it.heard).toEqual([{ node: 1, run: 6 }]);
  });

  test("stays reached when an old hello is replayed, of an earlier run or from before it was trusted", () => {
    const it = peer({ secret: new Uint8Array(32) });
    it.greet(5, 1, [], SELF);
    it.greet(5, 2, us, SELF);
    it.greet(4, 9, [{ node: SELF, run: 99 }], SELF);
    expect([it.isTrusted(5), it.isReached]).toEqual([true, true]);
    expect(it.greet(5, 1, [], SELF)).toBe(false);
    expect(it.isReached).toBe(true);
    expect(it.greet(5, 3, [], SELF)).toBe(true);
    expect(it.isReached).toBe(false);
  });

  test("may repeat unsealed datagrams, but not sealed ones", () => {
    const it = peer();
    it.greet(5, 1, us, SELF);
    expect([it.objection(5, 2, false), it.objection(5, 2, false)]).toEqual([null, null]);
    expect([it.objection(5, 3, true), it.objection(5, 3, true)?.[0]]).toEqual([null, "replayed"]);
    expect(it.objection(5, 1, true)?.[0]).toBe("replayed"); // This is the hello that made the run trusted.
  });

  test("accepts no datagrams sent before the hello that made the peer trusted", () => {
    const it = peer({ secret: new Uint8Array(32) });
    it.greet(5, 1, [], SELF);
    it.greet(5, 9, us, SELF);
    for (let number = 0; number <= 9; number++) expect(it.objection(5, number, true)?.[0]).toBe("replayed");
    expect(it.objection(5, 10, true)).toBeNull();
    expect(it.objection(5, 100_000, true)).toBeNull();
    expect(it.objection(5, 8, true)?.[0]).toBe("replayed");
  });

  test("drops fragments that do not become a message", () => {
    const it = peer();
    it.greet(5, 1, us, SELF);
    it.fragments?.take(1, 0, 2, Buffer.alloc(500));
    const abandoned = Array.from({ length: 10 }, () => it.look());
    expect(abandoned.reduce((sum, each) => sum + each, 0)).toBe(1);
    expect(it.fragments?.take(1, 1, 2, Buffer.alloc(500))).toBeNull();
  });
});

describe("numbers that have been seen", () => {
  test("are new once, in any order, like in a set", () => {
    const chance = seededRandom();
    const seen = new SeenNumbers();
    const known = new Set<number>();
    let top = 0;
    for (let i = 0; i < 20_000; i++) {
      const number = Math.max(0, top + chance.below(600) - 500);
      top = Math.max(top, number);
      expect(seen.isNew(number)).toBe(!known.has(number));
      known.add(number);
    }
  });

  test("far below the highest count as seen, and a jump forgets none above", () => {
    const seen = new SeenNumbers();
    expect(seen.isNew(5)).toBe(true);
    expect(seen.isNew(1_000_000)).toBe(true);
    expect(seen.isNew(6)).toBe(false);
    expect(seen.isNew(1_000_000 - 8_192)).toBe(false);
    expect(seen.isNew(1_000_000 - 8_191)).toBe(true);
    expect(seen.isNew(1_000_000)).toBe(false);
  });
});

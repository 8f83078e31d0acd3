/**
 * Runs the benchmark of super-peers with few nodes. It uses virtual time, so it gives the same results each time.
 *
 * @module-tag long
 */
import { expect, test } from "vitest";
import { coterie } from "../e2e/cluster-under-test.ts";

interface Method {
  readonly method: string;
  readonly overlay: string;
  readonly distance: number;
  readonly unevenness: number;
  readonly superPeers: number;
  readonly share: number;
  readonly overLimit: number;
}

interface Report {
  readonly methods: readonly Method[];
  readonly ring: { readonly hops: { readonly any: number; readonly formula: number } };
  readonly tokens: {
    readonly lastMove: number;
    readonly rounds: number;
    readonly servedByNearest: number;
    readonly tokens: { readonly before: number; readonly after: number };
  };
}

test("coterie bench super-peers: 200 nodes with a target of 5 % super-peers", async () => {
  const words = ["--nodes", "200", "--share", "0.05", "--json"];
  const { code, stdout, stderr } = await coterie("bench", "super-peers", ...words);
  expect(code, stderr).toBe(0);
  const { methods, ring, tokens } = JSON.parse(stdout) as Report;
  const [dht, lotsOnRing, pushed, lotsInSpace] = methods as [Method, Method, Method, Method];

  // Tokens stop moving, and none is lost.
  expect(tokens.tokens).toEqual({ before: 10, after: 10 });
  expect(tokens.rounds - tokens.lastMove).toBe(30);
  expect(tokens.servedByNearest).toBe(1);
  // The share is exact with tokens. The table has the nearest power of two.
  expect([pushed.share, dht.superPeers]).toEqual([0.05, 8]);
  // Both kinds are distributed more evenly than randomly chosen super-peers, tokens are nearer, and no super-peer
  // serves too many nodes.
  expect(dht.unevenness).toBeLessThan(0.5 * lotsOnRing.unevenness);
  expect(pushed.unevenness).toBeLessThan(0.6 * lotsInSpace.unevenness);
  expect(pushed.distance).toBeLessThan(lotsInSpace.distance);
  expect([dht.overLimit, pushed.overLimit]).toEqual([0, 0]);
  expect(Math.abs(ring.hops.any - ring.hops.formula)).toBeLessThan(1);
});

test.each(["0", "x", "0.9"])("coterie bench super-peers --share %s is rejected", async (share) => {
  const { code, stderr } = await coterie("bench", "super-peers", "--share", share);
  expect(code).toBe(2);
  expect(stderr).toContain("expected --share to be at most 0.5");
});

/** Locks whose caller chose how long a permission lasts, at members that put away what nobody uses. The clock is the test's. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Cluster, IDS, mutex } from "../../../test/services/bare-members.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Setting } from "./algorithms.ts";
import { MutexHandle } from "./handles.ts";
import type { LocalMutex } from "./local-mutex.ts";

beforeAll(() => void vi.useFakeTimers());
afterAll(() => void vi.useRealTimers());

let it: Cluster;
function three(): Cluster {
  it = new Cluster();
  for (const id of IDS) it.start(id);
  return it.serve(1);
}
afterEach(() => it.stop());

/** What nobody uses is away by then. */
const A_WHILE = 3_000;

describe("a lock with a lease of its own", () => {
  const withLease = (lease: object): Setting => ({ ...mutex("x"), options: JSON.stringify(lease) });
  const handle = (cluster: Cluster, id: NodeId, setting: Setting): MutexHandle =>
    new MutexHandle(() => cluster.instances(id).use(setting).local as LocalMutex);
  const long = withLease({ leaseMs: 10_000 });
  const short = withLease({ leaseMs: 100, renewMs: 50 });

  test("stays at all members: a shorter one cannot be had while a member that is cut off holds it", async () => {
    const cluster = await three().goOn(A_WHILE);
    const held = handle(cluster, 1, long).acquire();
    await cluster.goOn(11_000); // Leases of earlier servers are awaited.
    const grant = await held;
    await cluster.goOn(A_WHILE);
    cluster.cutOff(1);
    for (const id of [2, 3]) {
      cluster.crash(id);
      cluster.start(id);
    }
    await cluster.serve(2).goOn(A_WHILE);
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([["x"], ["x"], ["x"]]);
    for (const id of [2, 3]) expect(() => handle(cluster, id, mutex("x"))).toThrow("as they are in use already");
    const next = handle(cluster, 2, long).acquire();
    const wasHeld = next.then(() => grant.isHeld);
    await cluster.goOn(15_000);
    expect(await wasHeld).toBe(false);
  });

  test.each([0, 300])(
    "that is shorter than the usual one waits for those that were given before, opened %i ms after its server was elected",
    async (afterMs) => {
      const cluster = await three().goOn(A_WHILE);
      const held = handle(cluster, 1, mutex("x")).acquire();
      await cluster.goOn(A_WHILE);
      const grant = await held;
      expect(IDS.map((id) => cluster.openAt(id))).toEqual([["x"], [], []]);
      cluster.cutOff(1);
      if (afterMs > 0) await cluster.serve(2).goOn(afterMs);
      const wasHeld = handle(cluster, 2, short)
        .acquire()
        .then(() => grant.isHeld);
      if (afterMs === 0) cluster.serve(2);
      await cluster.goOn(A_WHILE);
      expect(await wasHeld).toBe(false);
    },
  );

  test("that says only how often it is renewed is put away as any other", async () => {
    const cluster = three();
    const used = handle(cluster, 2, withLease({ renewMs: 100 })).use(() => {});
    await cluster.goOn(2 * A_WHILE);
    await used;
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([[], [], []]);
  });

  test("and whose token goes round stays as well: the name cannot be had with a shorter one", async () => {
    const ring = (lease: object): Setting => ({ ...withLease(lease), algorithm: "epoch-token-ring" });
    const cluster = three();
    const used = handle(cluster, 2, ring({ leaseMs: 10_000 })).use(() => {});
    await cluster.goOn(2 * A_WHILE);
    await used;
    expect(IDS.map((id) => cluster.openAt(id))).toEqual([["x"], ["x"], ["x"]]);
    expect(() => handle(cluster, 3, ring({ leaseMs: 100, renewMs: 50 }))).toThrow("as they are in use already");
  });
});

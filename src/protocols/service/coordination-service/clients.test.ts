/**
 * Checks clients that are not members in the state machine. They come and go, and the number of remembered incarnations
 * is bounded.
 */
import { expect, it } from "vitest";
import { oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import { FIRST_CLIENT, isClient, type Proposal, STATE_MACHINE_VERSION } from "./operations.ts";

const MANY = 1_000;

const openAndAdd = (life: number): Proposal => ({
  type: "operations",
  life,
  round: 1,
  acknowledged: 0,
  first: 1,
  operations: [
    { type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION },
    { type: "add", name: "c", by: 1 },
  ],
});

it("forgets the oldest clients without a session, never a member, and does not apply their operations again", () => {
  const { data, propose, end, open, ask } = oneReplica();
  open(1);
  end(1);
  const [gone, staying] = [FIRST_CLIENT + 1, FIRST_CLIENT + 2];
  propose(gone, openAndAdd(1));
  end(gone);
  propose(staying, openAndAdd(1));
  for (let client = FIRST_CLIENT + 3; client <= FIRST_CLIENT + MANY + 1; client++) {
    open(client);
    end(client);
  }
  expect(Object.keys(data.lives).map(Number).filter(isClient)).toHaveLength(MANY);
  expect(data.lives[gone]).toBeUndefined();
  expect(data.lives[staying]).toBe(1);
  expect(data.lives[1]).toBe(1);

  expect(propose(gone, openAndAdd(1))).toMatchObject({ session: null, isOver: true });
  expect(propose(gone, openAndAdd(2))).toMatchObject({ session: null, isOver: true });
  expect(ask({ type: "count", name: "c" })).toEqual({ type: "counted", value: 2 });
  expect(propose(staying, openAndAdd(1))).toMatchObject({ session: { member: staying }, isOver: false });
  expect(ask({ type: "count", name: "c" })).toEqual({ type: "counted", value: 2 });
});

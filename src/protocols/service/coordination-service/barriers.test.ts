import { describe, expect, it } from "vitest";
import { oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import type { BarrierOperation } from "./operations.ts";

const arrive = (wait: number, parties = 3): BarrierOperation => ({ type: "arrive", name: "b", wait, parties });

function withSessions(count: number) {
  const replica = oneReplica();
  const sessions = Array.from({ length: count }, (_, member) => replica.open(member));
  replica.events();
  return { ...replica, sessions };
}

describe("barriers", () => {
  it("let all parties pass when enough have arrived, repeatedly", () => {
    const { apply, events, sessions } = withSessions(3);
    for (const wait of [1, 2]) {
      events();
      expect([0, 1].map((member) => apply(member, arrive(wait)))).toMatchObject([{ ahead: 2 }, { ahead: 1 }]);
      expect(apply(2, arrive(wait))).toEqual({ type: "passed", generation: 1 + wait });
      expect(events()).toEqual([
        {
          type: "passed",
          name: "b",
          generation: 1 + wait,
          arrivals: sessions.map((session) => ({ session, wait })),
        },
      ]);
    }
  });

  it("count no party twice, after it has left, or after its session has ended", () => {
    const { apply, end } = withSessions(4);
    apply(0, arrive(1));
    expect(apply(0, arrive(1))).toMatchObject({ ahead: 2 });
    apply(1, arrive(1));
    apply(1, { type: "leave", name: "b", wait: 1 });
    expect(apply(2, arrive(1))).toMatchObject({ ahead: 1 });
    end(2);
    expect(apply(1, arrive(2))).toMatchObject({ ahead: 1 });
    expect(apply(3, arrive(1, 2))).toMatchObject({ code: "in-use" });
    expect(apply(3, arrive(1))).toMatchObject({ type: "passed" });
  });

  it("report the state of an arrival, as long as its session lasts", () => {
    const { apply, ask, end, sessions } = withSessions(3);
    const stateOf = (member: number) =>
      ask({ type: "arrival", name: "b", session: sessions[member] as number, wait: 1 });
    for (const member of [0, 1]) apply(member, arrive(1));
    expect(stateOf(0)).toEqual({ type: "arrival", state: "waiting" });
    end(0);
    expect(stateOf(0)).toEqual({ type: "arrival", state: "unknown" });
    for (const wait of [1, 2]) apply(2, arrive(wait));
    expect(stateOf(1)).toEqual({ type: "arrival", state: "passed" });
  });
});

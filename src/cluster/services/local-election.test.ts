/**
 * Checks a campaign whose events arrive late: after the member has stepped down, or after its grant has expired by the
 * local clock.
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newCounts } from "../../runtime/metrics.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { LocalElection } from "./local-election.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Creates member 1 in an election whose leader the test decides. */
function played() {
  const commands: string[] = [];
  const engine = {
    platform: realPlatform,
    name: "report",
    self: 1,
    counts: newCounts(),
    leader: null as number | null,
    stand: () => void commands.push("stand"),
    resign: () => void commands.push("resign"),
    onChange() {},
  };
  const election = new LocalElection(engine);
  const elect = (leader: number, token: number): void => {
    engine.leader = leader;
    election.elected(leader, token, undefined);
  };
  return { engine, election, commands, elect };
}

const turn = () => vi.advanceTimersByTimeAsync(0);
const untilAborted = (signal: AbortSignal) => new Promise((resolve) => signal.addEventListener("abort", resolve));

test("a grant is not a leadership if this member has resigned since", async () => {
  const { election, commands, elect } = played();
  const led = election.lead(({ token }) => token);
  election.elected(1, 3, undefined);
  await turn();
  expect(election.leader).toBe(null);
  elect(1, 4);
  await expect(led).resolves.toBe(4);
  expect(commands).toEqual(["stand", "resign"]);
});

test("a leadership that expires by the local clock, before or after the work has begun, is resigned and campaigned for again", async () => {
  const { election, commands, elect } = played();
  const tokens: number[] = [];
  const led = election.lead(async ({ token, signal }) => {
    tokens.push(token);
    if (tokens.length === 1) await untilAborted(signal);
  });
  elect(1, 3);
  election.confirmed(3, performance.now() - 1);
  await turn();
  expect(commands).toEqual(["stand", "resign", "stand"]);
  elect(1, 4);
  await turn();
  election.confirmed(4, performance.now() + 5);
  await vi.advanceTimersByTimeAsync(5);
  expect(commands).toEqual(["stand", "resign", "stand", "resign", "stand"]);
  expect(election.leader).toBe(null);
  elect(1, 5);
  election.deposed(4); // This event is late.
  await led;
  expect(tokens).toEqual([4, 5]);
});

test("when another member is elected, work that fails because of the loss runs again later", async () => {
  const { election, elect } = played();
  const aborted: boolean[] = [];
  const led = election.lead(async ({ signal }) => {
    if (aborted.length === 0) await untilAborted(signal);
    aborted.push(signal.aborted);
    signal.throwIfAborted();
    return "done";
  });
  elect(1, 3);
  await turn();
  elect(2, 4);
  expect(election.leader).toBe(2);
  await turn();
  elect(1, 5);
  await expect(led).resolves.toBe("done");
  expect(aborted).toEqual([true, false]);
});

/** Checks `join()` in real processes: there is one holder at a time, even if members are killed or paused. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Timing } from "../../src/cluster/services/timing.ts";
import { PACKAGE, until } from "./cluster-under-test.ts";
import { folder, isGrowing, type Joined, joinedAt, numbersIn, place, type Said } from "./joined-members.ts";
import type { Report } from "./joined-process.ts";

const three = async (timing: Timing = "default") =>
  (await joinedAt(await place(3), PACKAGE, { timing })) as [Joined, Joined, Joined];

/** Resolves with the first member that sends such a report. */
const first = <S extends Report["kind"]>(members: readonly Joined[], said: S): Promise<[Joined, Said<S>]> =>
  until(`one of members ${members.map(({ id }) => id).join(", ")} says ${said}`, () => {
    const found = members.find((member) => member.saidAlready(said).length > 0);
    return found === undefined ? null : ([found, found.saidAlready(said)[0]] as [Joined, Said<S>]);
  });

test("members that contend for a lock hold it one at a time, with growing tokens", async () => {
  const members = await three("patient"); // A paused holder keeps the lock.
  const witness = join(folder, "inside");
  for (const member of members) member.order({ do: "contend", entries: 20, witness });
  await Promise.all(members.map((member) => member.said("contended")));
  const tokens = numbersIn(`${witness}.log`); // Tokens in the order of entry.
  expect(tokens).toHaveLength(60);
  expect(isGrowing(tokens)).toBe(true);
  expect(existsSync(witness)).toBe(false);
});

test("a leader that is killed is followed by another, with a higher token", async () => {
  const members = await three();
  for (const member of members) member.order({ do: "lead" });
  const [leader, { token }] = await first(members, "leading");
  leader.signal("SIGKILL");
  const others = members.filter((member) => member !== leader);
  const [, next] = await first(others, "leading");
  expect(next.token).toBeGreaterThan(token);
});

test("a holder that is killed does not keep the lock", async () => {
  const [holder, waiter] = await three();
  holder.order({ do: "write", file: join(folder, "killed") });
  const { token } = await holder.said("writing");
  waiter.order({ do: "enter" });
  holder.signal("SIGKILL");
  expect((await waiter.said("entered")).token).toBeGreaterThan(token);
});

test("a paused holder learns that its grant is lost before it writes again", async () => {
  const [holder, other] = await three();
  const file = join(folder, "paused");
  holder.order({ do: "write", file });
  const { token } = await holder.said("writing");
  holder.signal("SIGSTOP");
  other.order({ do: "write", file });
  const next = await other.said("writing");
  expect(next.token).toBeGreaterThan(token);
  await until("the successor writes", () => (numbersIn(file).includes(next.token) ? true : null));
  holder.signal("SIGCONT");
  expect(await holder.said("lost")).toEqual({ kind: "lost", token, code: "grant-lost", heldAfter: false });
  const after = numbersIn(file);
  const stale = after.slice(after.indexOf(next.token)).filter((written) => written === token);
  // The holder may have been paused between its check and the write. The resource has to check the token of such a
  // write itself.
  expect(stale.length).toBeLessThanOrEqual(1);
});

test("after leaving, nothing keeps the process alive", async () => {
  const [one] = await three();
  one.order({ do: "lead" });
  one.order({ do: "enter" });
  await one.said("entered");
  one.order({ do: "leave" });
  await one.said("left");
  one.end();
  expect(await one.exited).toBe(0);
});

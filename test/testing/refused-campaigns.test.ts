/**
 * Checks, in virtual time, that a campaign fails with the error that `acquire()` would throw if the replicated log
 * rejects it permanently.
 */
import { expect, test } from "vitest";
import { simulate } from "../../src/testing/index.ts";

/** The maximum number of locks, elections and semaphores. */
const MAX_NAMES = 10_000;
const AT_ONCE = 500;

test("a full log ends the campaigns of members and clients, and a later campaign leads once there is room", async () => {
  const world = simulate({ members: 3, seed: 1 });
  await world.run(async () => {
    const holder = world.member(1);
    const client = await world.connect();
    const taken = [];
    for (let first = 0; first < MAX_NAMES; first += AT_ONCE)
      taken.push(
        ...(await Promise.all(
          Array.from({ length: AT_ONCE }, (_, at) => holder.semaphore(`s${first + at}`, { permits: 1 }).acquire()),
        )),
      );
    const refusal = { code: "state-full", phase: "never-sent", message: `there are already ${MAX_NAMES} locks` };
    const elections = [world.member(2).election("report"), client.election("report")];
    for (const election of [...elections, ...elections])
      await expect(election.lead(() => "led")).rejects.toMatchObject(refusal);
    expect(world.member(2).status().instances).toMatchObject([{ name: "report", role: "follower" }]);
    await Promise.all(taken.slice(0, elections.length).map((grant) => grant.release()));
    await world.sleep(1_000); // Wait until it is in the log.
    for (const election of elections) expect(await election.lead(() => "led")).toBe("led");
    await client.close();
  });
});

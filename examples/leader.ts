/**
 * Three replicas of a service; only the leader writes the report. Run it three times, in three terminals:
 * `npx tsx examples/leader.ts 1`, and again with 2 and 3. Then kill the one that writes with `kill -9`: another takes over
 * within seconds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "coterie";

const id = Number(process.argv[2] ?? 1);

const stop = new AbortController();
process.once("SIGINT", () => stop.abort());

const member = await join({
  id,
  members: { 1: "127.0.0.1:7161", 2: "127.0.0.1:7162", 3: "127.0.0.1:7163" },
  dataDir: "data-{id}",
});

try {
  await member.election("report").lead(
    async ({ token, signal }) => {
      console.log(`member ${id} writes the report under token ${token}`);
      while (!signal.aborted) await sleep(100, undefined, { signal }); // The work ends when leadership does.
    },
    { signal: stop.signal },
  );
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await member.leave();
}

/**
 * A member that writes to the resource while it leads, without checking whether it still does: `node careless-writer.js
 * OPTIONS PORT INDEX`, where OPTIONS are the options of `join()`. It continues for 50 ms after it was stopped.
 */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const [options, port, index] = process.argv.slice(2);
const { join } = await import(index);
const resource = connect(Number(port), "127.0.0.1");
const member = await join(JSON.parse(options));
await member.election("writer").lead(async ({ token, signal }) => {
  let isOver = false;
  signal.addEventListener("abort", () => setTimeout(() => (isOver = true), 50));
  while (!isOver) {
    resource.write(`${JSON.stringify({ token, member: member.id })}\n`);
    await sleep(2);
  }
});

/**
 * The command under a grant in these tests: `node witness.js PORT LOG MEMBER [MS]`. It records its start, a heartbeat
 * every 5 ms, and any signal to end. It also listens on a port, which only one process can do. It ends by itself after
 * MS.
 */
import { appendFileSync } from "node:fs";
import { createServer } from "node:net";

const [port, log, member, ms] = process.argv.slice(2);
const now = () => Number(process.hrtime.bigint()) / 1e6;
const startedAt = now() - performance.now();

function say(what) {
  const token = Number(process.env.COTERIE_TOKEN);
  const line = { what, member: Number(member), token, pid: process.pid, startedAt, at: now() };
  appendFileSync(log, `${JSON.stringify(line)}\n`);
}

process.on("SIGTERM", () => {
  say("told");
  process.exit(0);
});
say("begin");
setInterval(() => say("beat"), 5);
createServer()
  .on("error", () => say("second"))
  .listen(Number(port), "127.0.0.1", () => say("alone"));
if (ms !== undefined) setTimeout(() => process.exit(0), Number(ms));

/**
 * A resource under a lock or a leader: `node resource.js PORT LOG INDEX`. It accepts writes, one JSON object per line,
 * and rejects those whose token is lower than the highest one it has seen. It logs every attempt in order of arrival,
 * and prints each new token on stdout.
 */
import { createWriteStream } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const [port, log, index] = process.argv.slice(2);
const { guard } = await import(index);
const accept = guard();
const out = createWriteStream(log);
const known = new Set();

function take(line) {
  const { token, member } = JSON.parse(line);
  let accepted = true;
  try {
    accept(token);
  } catch (error) {
    if (error.code !== "stale-token") throw error;
    accepted = false;
  }
  out.write(`${JSON.stringify({ token, member, accepted })}\n`);
  if (known.has(token)) return;
  known.add(token);
  process.stdout.write(`${JSON.stringify({ token, member, at: Number(process.hrtime.bigint()) / 1e6 })}\n`);
}

createServer((socket) => {
  socket.on("error", () => {}); // Writers are killed here.
  createInterface({ input: socket }).on("line", take);
}).listen(Number(port), "127.0.0.1", () => process.stdout.write('{"token":-1}\n'));
process.on("SIGTERM", () => out.end(() => process.exit(0)));

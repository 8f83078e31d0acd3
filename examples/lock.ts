/**
 * Three members take turns at an account that only one may change at a time, and that rejects a holder that has been
 * replaced. Run it three times, in three terminals: `npx tsx examples/lock.ts 1`, and again with 2 and 3. Then kill one
 * of them with `kill -9`, or pause one with `kill -STOP` and resume it with `kill -CONT`.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { CoordinationError, guard, join } from "coterie";

const id = Number(process.argv[2] ?? 1);
const turns = Number(process.argv[3] ?? Number.POSITIVE_INFINITY);
const account = "account.log";

const member = await join({
  id,
  members: { 1: "127.0.0.1:7151", 2: "127.0.0.1:7152", 3: "127.0.0.1:7153" },
  dataDir: "data-{id}",
});
process.once("SIGINT", () => void member.leave());

for (let turn = 0; turn < turns && !member.signal.aborted; turn++) {
  try {
    await member.mutex("account").use(({ token }) => deposit(token));
  } catch (error) {
    if (!(error instanceof CoordinationError)) throw error;
    console.log(`member ${id}: ${error.code}`);
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
}
await member.leave();

/**
 * Adds a deposit to the account, a file that records the token of each deposit. Rejects lower tokens than the last one,
 * because only the resource can detect a stale holder.
 */
function deposit(token: number): void {
  const accept = guard(lastToken());
  accept(token);
  appendFileSync(account, `${token} ${id}\n`);
  console.log(`member ${id} has made its deposit under token ${token}`);
}

function lastToken(): number {
  if (!existsSync(account)) return 0;
  return Number(readFileSync(account, "utf8").trim().split("\n").at(-1)?.split(" ")[0]);
}

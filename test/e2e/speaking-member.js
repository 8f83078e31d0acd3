/**
 * A member with a channel, for `members-soak.test.ts`: `node speaking-member.js PACKAGE FILE NAME OPTIONS`. It joins
 * with the options, sends one message after another on a channel of the log, and replicates a state over the channel:
 * the founder of the state, and the number of messages since. Until SIGTERM, it writes deliveries and the outcome of
 * its own messages to the file, one per line.
 */
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const THINKS_MS = 400;
const LEAVE_WITHIN_MS = 1_000;
const [packageUrl, file, name, options] = process.argv.slice(2);
const { join, CoordinationError } = await import(packageUrl);
const into = openSync(file, "a");
const note = (what) => writeSync(into, `${JSON.stringify(what)}\n`);

function failed(error) {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
}

const member = await join(JSON.parse(options));
process.once("SIGTERM", () => {
  Promise.race([member.leave(), sleep(LEAVE_WITHIN_MS)]).then(() => process.exit(0), failed);
});
member.signal.addEventListener("abort", () => {
  if (member.signal.reason.code === "member-left") return;
  process.stderr.write(`${member.signal.reason.message}\n`);
  process.exit(1);
});
const room = member.channel("room", { order: "total", transport: "log" });
let state = { first: name, count: 0 };

async function hear() {
  for await (const said of room.read({ state: () => state })) {
    if ("state" in said) {
      state = said.state;
      note({ given: state });
      continue;
    }
    state = { ...state, count: state.count + 1 };
    const { id, view, payload: text } = said;
    note({ heard: id, view, text, state });
  }
}

async function look() {
  for await (const { view, members, state: is } of room.views()) note({ is, view, members });
}

async function speak() {
  for (let number = 1; !member.signal.aborted; number++) {
    const text = `${name} ${number}`;
    try {
      note({ sent: (await room.send(text)).id, text });
    } catch (error) {
      if (!(error instanceof CoordinationError)) throw error;
      note({ failed: error.phase, text });
    }
    await sleep(Math.random() * THINKS_MS);
  }
}

process.stdout.write(`${JSON.stringify({ event: "listening" })}\n`);
await Promise.all([hear(), look(), speak()]);

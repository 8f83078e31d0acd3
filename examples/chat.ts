/**
 * A chat among three members. No member shows an answer before the message that it answers. Run it three times, in
 * three terminals: `npx tsx examples/chat.ts 1`, and again with 2 and 3. Type lines, and end with Ctrl-D. Then kill one
 * with `kill -9`, and start it again: the others show that it leaves and returns.
 */
import { createInterface } from "node:readline";
import { CoordinationError, join, UsageError } from "coterie";

const id = Number(process.argv[2] ?? 1);

const member = await join({
  id,
  members: { 1: "127.0.0.1:7171", 2: "127.0.0.1:7172", 3: "127.0.0.1:7173" },
  dataDir: "data-{id}",
});
const room = member.channel<string>("room", { order: "causal" });

async function showMessages(): Promise<void> {
  for await (const { from, payload } of room) console.log(`${from}: ${payload}`);
}

async function showViews(): Promise<void> {
  for await (const { state, members } of room.views())
    console.log(state === "member" ? `* here are ${members.join(", ")}` : `* ${state}`);
}

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  room.send(line).catch((error: unknown) => {
    const isUncertain = error instanceof CoordinationError && error.phase === "uncertain";
    if (isUncertain) console.log(`* not sure that it was sent: ${error.message}`);
    else if (error instanceof CoordinationError || error instanceof UsageError)
      console.log(`* not sent: ${error.message}`);
    else throw error;
  });
});
lines.on("close", () => void member.leave());
process.once("SIGINT", () => lines.close());

await Promise.all([showMessages(), showViews()]);

/**
 * Settings that three members share. Run it three times, in three terminals: `npx tsx examples/settings.ts 1`, and again
 * with 2 and 3. Type lines such as `color=blue`, and end with Ctrl-D. Then kill one with `kill -9`, change a setting at
 * another, and start it again: it has missed nothing.
 */
import { createInterface } from "node:readline";
import { CoordinationError, join } from "coterie";

const id = Number(process.argv[2] ?? 1);
const member = await join({
  id,
  members: { 1: "127.0.0.1:7191", 2: "127.0.0.1:7192", 3: "127.0.0.1:7193" },
  dataDir: "data-{id}",
});
const settings = member.map<string>("settings");

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const [key = "", value = ""] = line.split("=", 2);
  settings.put(key, value).catch((error: unknown) => {
    if (!(error instanceof CoordinationError)) throw error;
    console.log(`* ${error.message}`);
  });
});
lines.on("close", () => void member.leave());

const { entries, revision } = await settings.range({ timeoutMs: Number.POSITIVE_INFINITY });
for (const { key, value } of entries) console.log(`${key} is ${value}`);
for await (const change of settings.watch({ after: revision }))
  console.log(change.type === "put" ? `${change.key} is now ${change.value}` : `${change.key} is gone`);

/** The table of docs/reference/limits.md is what the code refuses. `npm run pages -- limits` writes it anew. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MAX_NAME_BYTES } from "../../src/cluster/services/instance-name.ts";
import { defaultLimits } from "../../src/cluster/services/membership.ts";
import { limits } from "../../src/cluster/services/state/limits.ts";
import { MAX_ANSWER_CHARS } from "../../src/protocols/service/coordination-service/keys.ts";
import {
  MAX_OPERATION_BYTES,
  MAX_PARTIES,
  MAX_PERMITS,
  MAX_WHOLE_BYTES,
} from "../../src/protocols/service/coordination-service/operations.ts";
import { replicaDefaults } from "../../src/protocols/service/coordination-service/replica.ts";
import { sessionOptions } from "../../src/protocols/service/coordination-service/session-options.ts";
import { root } from "./markdown.ts";

const {
  maxBytes,
  maxNames,
  maxWaiting,
  maxItems,
  maxChanges,
  maxChangeBytes,
  maxPendingBytes,
  maxMachines,
  maxMachineBytes,
} = replicaDefaults;
const { maxInstances, maxWaiters } = defaultLimits;
const { maxPending: maxCalls, maxPendingChars } = sessionOptions.defaults;

const count = (number: number): string => number.toLocaleString("en-US");
const bytes = (number: number): string => `${count(number)} bytes`;

/** What, how much, and with which error more is refused. */
const rows: readonly (readonly [string, string, string])[] = [
  ["a name, of whatever kind", bytes(MAX_NAME_BYTES), "`bad-name`"],
  ["a key of a map", bytes(limits.keyBytes), "`bad-key`"],
  ["`from` and `to` of a `range()`; a `prefix` has as many as a key", bytes(limits.boundBytes), "`bad-option`"],
  [
    "a value, an item of a queue, a command to a state machine, as JSON or base64",
    bytes(limits.valueBytes),
    "`too-large`",
  ],
  ["all keys, values, items and states of machines together", bytes(maxBytes), "`state-full`"],
  ["maps, counters, queues and barriers in use, of each kind", count(maxNames), "`state-full`"],
  ["locks, elections, semaphores and read-write locks in use, together", count(maxNames), "`state-full`"],
  [
    "those that hold or wait for one lock, semaphore or read-write lock, or campaign in one election, over all members",
    count(maxWaiting),
    "`state-full`",
  ],
  ["permits of a semaphore", count(MAX_PERMITS), "`bad-operation`"],
  ["parties of a barrier", count(Math.min(MAX_PARTIES, maxWaiting)), "`bad-operation`"],
  ["`metadata` of an election, as JSON", bytes(limits.noteBytes), "`too-large`"],
  ["items in one queue, with those that are taken and not done", count(maxItems), "`state-full`"],
  ["those that wait for an item of one queue or have one, over all members", count(maxWaiting), "`state-full`"],
  ["keys that one transaction reads and writes", count(limits.transactionKeys), "`too-large`"],
  ["one transaction as JSON, with all that it compares and puts", bytes(MAX_WHOLE_BYTES), "`too-large`"],
  ["what a transaction's reads answer", `${count(MAX_ANSWER_CHARS)} characters`, "`too-large`"],
  ["entries of one `range()`", count(limits.range), "`bad-option`; `more` says that there are more"],
  ["changes that are remembered for watches", `${count(maxChanges)}, and ${bytes(maxChangeBytes)}`, "`compacted`"],
  ["state machines", count(maxMachines), "`state-full`"],
  ["the state of one, as JSON", bytes(maxMachineBytes), "`too-large`"],
  ["a result of one, as JSON", bytes(MAX_OPERATION_BYTES), "`too-large`"],
  [
    "commands that wait at a member for machines to be defined, with 32 bytes for each",
    bytes(maxPendingBytes),
    "`undefined-machine`: the member stops, and nothing is lost",
  ],
  ["calls of one member that wait for their answer: changes, and as many reads", count(maxCalls), "`overloaded`"],
  ["what those changes hold, as JSON", `${count(maxPendingChars)} characters`, "`overloaded`"],
  [
    "changes that wait until a slow watch has read them",
    `${count(limits.backlogChanges)}, and ${count(limits.backlogChars)} characters of keys and values`,
    "none: it asks the members for the others, as far as they remember them",
  ],
  ["calls that wait for one name in one process (`maxWaiters`)", count(maxWaiters), "`too-many-waiters`"],
  ["elections, and channels, in use in one process (`maxInstances`)", count(maxInstances), "`too-many-instances`"],
];

test("docs/reference/limits.md has the limits of the code", () => {
  const file = join(root, "docs/reference/limits.md");
  const [begin, end] = ["<!-- limits -->\n", "<!-- end -->\n"];
  const page = readFileSync(file, "utf8");
  const head = "| what | at most | error |\n|---|---|---|\n";
  const table = rows.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  const written = page.slice(0, page.indexOf(begin)) + begin + head + table + page.slice(page.indexOf(end));
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, written);
  expect(readFileSync(file, "utf8")).toBe(written);
});

test("other pages name the same", () => {
  const pages = ["docs/guide/mutex.md", "docs/guide/map.md"].map((page) => readFileSync(join(root, page), "utf8"));
  const [services = "", shared = ""] = pages;
  expect(services).toContain(`${count(maxWaiting)} hold or wait over all members`);
  expect(services).toContain(`\`maxWaiters\` (${count(maxWaiters)} for one lock`);
  const full = `${count(maxWaiting)} who hold or wait for one name, ${count(maxItems)} items of a queue, ${count(maxNames)} names of a kind`;
  expect(shared).toContain(full);
  expect(shared).toContain(`at most ${limits.transactionKeys} keys, and ${(MAX_WHOLE_BYTES / 2 ** 20).toFixed(2)} MiB`);
});

/**
 * Checks that the table of docs/reference/limits.md has the limits from the code. `npm run pages -- limits` writes it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MAX_NAME_BYTES } from "../../src/cluster/services/instance-name.ts";
import { defaultLimits } from "../../src/cluster/services/membership.ts";
import { limits } from "../../src/cluster/services/state/limits.ts";
import {
  MAX_OPERATION_BYTES,
  MAX_PARTIES,
  MAX_PERMITS,
  MAX_WHOLE_BYTES,
} from "../../src/protocols/service/coordination-service/operations.ts";
import { replicaDefaults } from "../../src/protocols/service/coordination-service/replica.ts";
import { sessionOptions } from "../../src/protocols/service/coordination-service/session-options.ts";
import { MAX_RESPONSE_BYTES } from "../../src/protocols/service/keyspace/commands.ts";
import { root } from "./markdown.ts";

const { maxBytes, maxNames, maxWaiting, maxItems, maxHistoryBytes, maxPendingBytes, maxMachines, maxMachineBytes } =
  replicaDefaults;
const { maxInstances, maxWaiters } = defaultLimits;
const { maxPending: maxCalls, maxPendingChars } = sessionOptions.defaults;

const count = (number: number): string => number.toLocaleString("en-US");
const bytes = (number: number): string => `${count(number)} bytes`;

/** Each row has a limit, its maximum, and the error beyond it. */
const rows: readonly (readonly [string, string, string])[] = [
  ["a name of any kind", bytes(MAX_NAME_BYTES), "`bad-name`"],
  ["a map key", bytes(limits.keyBytes), "`bad-key`"],
  ["`from` and `to` in `range()`; a `prefix` has the same limit as a key", bytes(limits.boundBytes), "`bad-option`"],
  ["a value, a queue item or a command, as JSON or base64", bytes(limits.valueBytes), "`too-large`"],
  ["all keys, values, queue items and sessions combined", bytes(maxBytes), "`state-full`"],
  ["queues or barriers in use, for each kind", count(maxNames), "`state-full`"],
  ["locks, elections, semaphores and read-write locks in use, combined", count(maxNames), "`state-full`"],
  [
    "holders, waiters or candidates for one lock, semaphore, read-write lock or election, across all members",
    count(maxWaiting),
    "`state-full`",
  ],
  ["permits in a semaphore", count(MAX_PERMITS), "`bad-operation`"],
  ["parties to a barrier", count(Math.min(MAX_PARTIES, maxWaiting)), "`bad-operation`"],
  ["`metadata` of an election, as JSON", bytes(limits.noteBytes), "`too-large`"],
  ["items in one queue, including items that have been taken but are not done", count(maxItems), "`state-full`"],
  ["takers waiting for or holding an item from one queue, across all members", count(maxWaiting), "`state-full`"],
  ["keys that one transaction reads and writes", count(limits.transactionKeys), "`too-large`"],
  ["a transaction as JSON, including all comparisons and writes", bytes(MAX_WHOLE_BYTES), "`too-large`"],
  ["total size of the values that one transaction reads", bytes(MAX_RESPONSE_BYTES), "`too-large`"],
  ["entries that one `range()` call returns", count(limits.range), "`bad-option` for a higher `limit`"],
  ["changes remembered for watches, with the previous values", bytes(maxHistoryBytes), "`compacted`"],
  ["state machines", count(maxMachines), "`state-full`"],
  ["the state of one state machine, as JSON", bytes(maxMachineBytes), "`too-large`"],
  ["a result from a state machine, as JSON", bytes(MAX_OPERATION_BYTES), "`too-large`"],
  [
    "commands waiting at a member for undefined state machines, plus 32 bytes for each command",
    bytes(maxPendingBytes),
    "`undefined-machine`; the member stops, but nothing is lost",
  ],
  ["waiting changes at one member, and separately waiting reads", count(maxCalls), "`overloaded`"],
  ["all waiting changes at one member, as JSON", `${count(maxPendingChars)} characters`, "`overloaded`"],
  [
    "changes waiting for a slow watch",
    `${count(limits.backlogChanges)}, and ${count(limits.backlogChars)} characters of keys and values`,
    "none; the watch then reads later changes from the remembered ones",
  ],
  ["calls waiting for one name in one process (`maxWaiters`)", count(maxWaiters), "`too-many-waiters`"],
  [
    "elections in use in one process, and separately channels (`maxInstances`)",
    count(maxInstances),
    "`too-many-instances`",
  ],
];

test("docs/reference/limits.md has the limits of the code", () => {
  const file = join(root, "docs/reference/limits.md");
  const [begin, end] = ["<!-- limits -->\n", "<!-- end -->\n"];
  const page = readFileSync(file, "utf8");
  const head = "| limit | maximum | error |\n|---|---|---|\n";
  const table = rows.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  const written = page.slice(0, page.indexOf(begin)) + begin + head + table + page.slice(page.indexOf(end));
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, written);
  expect(readFileSync(file, "utf8")).toBe(written);
});

test("other pages name the same", () => {
  const names = ["docs/guide/mutex.md", "docs/guide/map.md", "docs/guide/transactions.md"];
  const [services = "", map = "", transactions = ""] = names.map((page) => readFileSync(join(root, page), "utf8"));
  expect(services).toContain(`${count(maxWaiting)} callers across all members can hold or wait for any one lock`);
  expect(services).toContain(`${count(maxWaiters)} calls in one process can wait for any one lock`);
  const full = `${count(maxWaiting)} callers that hold or wait for one name, ${count(maxItems)} items in a queue, and ${count(maxNames)} names of each kind`;
  expect(map).toContain(full);
  const whole = `at most ${limits.transactionKeys} keys and ${(MAX_WHOLE_BYTES / 2 ** 20).toFixed(2)} MiB`;
  expect(transactions).toContain(whole);
});

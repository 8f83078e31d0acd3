/** Commands for a cluster's shared maps and counters: get, put, del, watch, txn, counter. */

import type { Command } from "commander";
import { serviceOf } from "../../client/client.ts";
import { performed, readTransaction } from "../../cluster/clients/transaction-request.ts";
import { CoordinationError } from "../../cluster/services/coordination-error.ts";
import { limits } from "../../cluster/services/state/limits.ts";
import type { Change, Range, RangeOptions, SharedMap } from "../../cluster/services/state/state-api.ts";
import { UsageError, unexpected } from "../../core/errors.ts";
import { contentOf } from "../files.ts";
import { type Manual, withManual } from "../manual.ts";
import { wholeNumber } from "../options.ts";
import { ExitWith, type Invocation, onceUnread } from "../output.ts";
import {
  asClient,
  clientFor,
  type DataOptions,
  EXIT_CODES,
  shown,
  withDataOptions,
  writtenValue,
} from "./endpoints.ts";

interface GetOptions extends DataOptions {
  readonly prefix?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
}

export function declareGet(command: Command, invocation: Invocation): void {
  command
    .description("Reads a map key, or a range of keys. Reads are linearizable.")
    .argument("<map>", "name of the map")
    .argument("[key]", "the key; omit it to read a range of keys");
  withManual(withDataOptions(command), getManual)
    .option("--prefix <text>", "read the keys with this prefix")
    .option("--from <key>", "first key of the range")
    .option("--to <key>", "end of the range (exclusive)")
    .option("--limit <n>", "maximum number of keys to read", wholeNumber("--limit", 1, limits.range))
    .action((map: string, key: string | undefined, options: GetOptions) => get(map, key, options, invocation));
}

const getManual: Manual = {
  examples: [
    `coterie get stock apples
3`,
    `coterie get stock --prefix a --json
{"entries":[{"key":"apples","value":3,"revision":7}],"revision":9,"more":false}`,
    "coterie get stock --from a --to n --limit 100 --endpoints http://10.0.0.1:7300",
  ],
  exitCodes: `${EXIT_CODES}; also 1 if the key does not exist`,
  details: `Values are printed as JSON, and bytes in base64. With \`--json\`, a key is \`{ "key", "value", "revision" }\`, or null if it is missing.

Without \`--limit\`, all keys in the range are read, a thousand at a time. For keys that change in the meantime, you may get the old or
the new value, and \`revision\` is the revision of the first thousand keys. With \`--limit\`, \`more\` is true if keys were left out.`,
};

/** Reads a range page by page. Each page begins after the last key of the previous page. */
async function rangeOf(map: SharedMap, options: RangeOptions): Promise<Range<unknown>> {
  const first = await map.range(options);
  const entries = [...first.entries];
  let { more } = first;
  while (more && options.limit === undefined) {
    const next = await map.range({ ...options, from: `${entries.at(-1)?.key}\0` });
    entries.push(...next.entries);
    more = next.more;
  }
  return { entries, revision: first.revision, more };
}

async function get(map: string, key: string | undefined, options: GetOptions, invocation: Invocation): Promise<void> {
  const { prefix, from, to, limit } = options;
  const range = { prefix, from, to, limit };
  if (key !== undefined && Object.values(range).some((each) => each !== undefined))
    throw new UsageError("bad-argument", "expected a key, or --prefix, --from, --to and --limit, got both");
  let isThere = true;
  let more = false;
  await asClient(options, invocation, async (client, call) => {
    if (key === undefined) {
      const found = await rangeOf(client.map(map), { ...range, ...call });
      more = found.more;
      return { json: found, text: found.entries.map((entry) => `${entry.key} ${shown(entry.value)}`).join("\n") };
    }
    const entry = await client.map(map).entry(key, call);
    isThere = entry !== undefined;
    return { json: entry ?? (null as never), text: entry === undefined ? "" : shown(entry.value) };
  });
  if (more)
    invocation.stderr.write(`coterie: --limit ${limit} leaves out keys of the map "${map}": raise or omit it\n`);
  if (!isThere) throw new ExitWith(1, `expected the map "${map}" to have the key "${key}", but it does not`);
}

interface PutOptions extends DataOptions {
  readonly file?: string;
  readonly ifRevision?: number;
}

export function declarePut(command: Command, invocation: Invocation): void {
  command
    .description("Writes a map key and prints the revision of the write.")
    .argument("<map>", "name of the map")
    .argument("<key>", "the key")
    .argument("[value]", "the value, as JSON or text");
  withManual(withDataOptions(command), putManual)
    .option("--file <path>", "read the value from this file, or from standard input with -")
    .option(
      "--if-revision <n>",
      "write only if the key was last written at this revision; 0 means that the key must not exist",
      wholeNumber("--if-revision", 0, Number.MAX_SAFE_INTEGER),
    )
    .action((map: string, key: string, value: string | undefined, options: PutOptions) =>
      put(map, key, valueIn(value, options.file), options, invocation),
    );
}

const putManual: Manual = {
  examples: [
    `coterie put stock apples 3
7`,
    `coterie put stock pears '{"crates":2}' --if-revision 0
8`,
    `coterie put pages index --file index.json
9`,
  ],
  exitCodes: `${EXIT_CODES}; also 1 if the key has another revision`,
  details: `A value that parses as JSON is stored as JSON; any other value is stored as a string. With \`--json\`: \`{ "revision" }\`, or null if the
key had another revision.`,
};

/**
 * Returns the value given as an argument or in a file.
 * @throws UsageError if both or neither are given, or if the file cannot be read
 */
function valueIn(value: string | undefined, file: string | undefined): string {
  if (file === undefined && value !== undefined) return value;
  if (file === undefined || value !== undefined)
    throw new UsageError("bad-argument", "expected either a value or --file");
  return contentOf(file === "-" ? 0 : file, "--file", "bad-argument");
}

async function put(
  map: string,
  key: string,
  value: string,
  options: PutOptions,
  invocation: Invocation,
): Promise<void> {
  const { ifRevision } = options;
  let isDone = true;
  await asClient(options, invocation, async (client, call) => {
    const to = client.map(map);
    const revision =
      ifRevision === undefined
        ? await to.put(key, writtenValue(value), call)
        : await to.compareAndSet(key, ifRevision, writtenValue(value), call);
    isDone = revision !== null;
    return { json: { revision }, text: revision === null ? "" : String(revision) };
  });
  if (!isDone)
    throw new ExitWith(
      1,
      `expected "${key}" in the map "${map}" to be at revision ${ifRevision}, but it is at another one: nothing was written`,
    );
}

interface DeleteOptions extends DataOptions {
  readonly ifRevision?: number;
}

export function declareDelete(command: Command, invocation: Invocation): void {
  command.description("Deletes a map key.").argument("<map>", "name of the map").argument("<key>", "the key");
  withManual(withDataOptions(command), deleteManual)
    .option(
      "--if-revision <n>",
      "delete only if the key was last written at this revision",
      wholeNumber("--if-revision", 0, Number.MAX_SAFE_INTEGER),
    )
    .action((map: string, key: string, options: DeleteOptions) => del(map, key, options, invocation));
}

const deleteManual: Manual = {
  examples: ["coterie del stock apples", "coterie del stock apples --if-revision 7"],
  exitCodes: `${EXIT_CODES}; also 1 if the key does not exist or has another revision`,
  details: `With \`--json\`: \`{ "deleted" }\`.`,
};

async function del(map: string, key: string, options: DeleteOptions, invocation: Invocation): Promise<void> {
  const { ifRevision } = options;
  let isDeleted = true;
  await asClient(options, invocation, async (client, call) => {
    isDeleted = await client.map(map).delete(key, { ...call, ifRevision });
    return { json: { deleted: isDeleted }, text: "" };
  });
  if (isDeleted) return;
  const revision = ifRevision === undefined ? "" : ` with the revision ${ifRevision}`;
  throw new ExitWith(
    1,
    `expected the map "${map}" to have the key "${key}"${revision}, but it does not: nothing was deleted`,
  );
}

interface WatchOptions extends DataOptions {
  readonly after?: number;
  readonly prefix?: string;
  readonly count?: number;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export function declareWatch(command: Command, invocation: Invocation): void {
  command
    .description("Prints every change to a map once and in order, as it happens, until Ctrl-C.")
    .argument("<map>", "name of the map")
    .argument("[key]", "print only changes to this key");
  withManual(withDataOptions(command), watchManual)
    .option("--after <revision>", "also print the changes after this revision", natural("--after", 0))
    .option("--prefix <text>", "print only changes to keys with this prefix")
    .option("--count <n>", "exit after this number of changes", natural("--count", 1))
    .action((map: string, key: string | undefined, options: WatchOptions) => watch(map, key, options, invocation));
}

const natural = (option: string, min: number) => wholeNumber(option, min, Number.MAX_SAFE_INTEGER);

const watchManual: Manual = {
  examples: [
    "coterie watch stock",
    `coterie watch stock --after 0 --count 2
7 put apples 3
9 delete apples`,
    "coterie watch stock --prefix a --json",
  ],
  exitCodes: `${EXIT_CODES}; also 0 after Ctrl-C or SIGTERM, or when stdout is closed; also 1 if the changes after that revision are no longer available`,
  details: `If the member that the command is connected to fails, the command continues at another member and misses no change. \`--timeout\`
applies to the first connection. With \`--json\`, each line is \`{ "type", "key", "value", "revision" }\`.`,
};

async function watch(
  map: string,
  key: string | undefined,
  options: WatchOptions,
  { stdout }: Invocation,
): Promise<void> {
  const { after, prefix, count = Number.POSITIVE_INFINITY, timeout } = options;
  const stopped = new AbortController();
  const stop = (): void => stopped.abort();
  for (const signal of SIGNALS) process.once(signal, stop);
  const listened = onceUnread(stop);
  try {
    const client = await clientFor(options, { timeoutMs: timeout, signal: stopped.signal });
    try {
      let printed = 0;
      for await (const change of client.map(map).watch({ after, key, prefix, signal: stopped.signal })) {
        stdout.write(options.json === true ? `${JSON.stringify(change)}\n` : `${lineOf(change)}\n`);
        printed += 1;
        if (printed >= count) break;
      }
    } finally {
      await client.close();
    }
  } catch (error) {
    const isOurs = error instanceof CoordinationError && error.code === "client-closed";
    if (!stopped.signal.aborted || !(isOurs || error === stopped.signal.reason)) throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
    listened();
  }
}

const lineOf = (change: Change<unknown>): string =>
  change.type === "put"
    ? `${change.revision} put ${change.key} ${shown(change.value)}`
    : `${change.revision} delete ${change.key}`;

export function declareTxn(command: Command, invocation: Invocation): void {
  command
    .description("Runs a transaction: all of `then` if all comparisons in `if` hold, otherwise all of `else`.")
    .argument("<file>", "file with the transaction as JSON, or - for standard input");
  withManual(withDataOptions(command), txnManual).action((file: string, options: DataOptions) =>
    transact(file, options, invocation),
  );
}

const txnManual: Manual = {
  examples: ["coterie txn move.json", "coterie txn move.json --json"],
  exitCodes: `${EXIT_CODES}; also 1 if a comparison does not hold`,
  details: `\`move.json\` updates the stock, but only if three apples are left:

\`\`\`json
{ "if":   [{ "map": "stock", "key": "apples", "value": 3 }],
  "then": [{ "put": { "map": "stock", "key": "apples", "value": 2 } }, { "delete": { "map": "stock", "key": "pears" } }],
  "else": [{ "get": { "map": "stock", "key": "apples" } }] }
\`\`\`

A comparison has a \`value\` or a \`revision\`; revision 0 means that the key must not exist. Values that the transaction reads are
printed, one per line. With \`--json\`: \`{ "succeeded", "revision", "results" }\`.`,
};

async function transact(file: string, options: DataOptions, invocation: Invocation): Promise<void> {
  const transaction = readTransaction(parsed(file));
  let hasSucceeded = true;
  await asClient(options, invocation, async (client, { timeoutMs }) => {
    const done = await performed(serviceOf(client), { ...transaction, timeoutMs: timeoutMs ?? transaction.timeoutMs });
    hasSucceeded = done.succeeded;
    const read = done.results.flatMap(({ key, value }) => (value === undefined ? [] : [`${key} ${shown(value)}`]));
    return { json: done, text: read.join("\n") };
  });
  if (!hasSucceeded) throw new ExitWith(1, "a comparison in `if` does not hold, so `else` was run");
}

function parsed(file: string): unknown {
  const text = contentOf(file === "-" ? 0 : file, "the transaction", "bad-argument");
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError("bad-argument", `expected ${file} to be a JSON file: ${(error as Error).message}`);
  }
}

interface CounterOptions extends DataOptions {
  readonly add?: number;
  readonly set?: number;
}

export function declareCounter(command: Command, invocation: Invocation): void {
  command
    .description("Prints a counter, optionally after adding to it or setting it.")
    .argument("<name>", "name of the counter");
  withManual(withDataOptions(command), counterManual)
    .option("--add <n>", "add this number, which may be negative", whole("--add"))
    .option("--set <n>", "set the counter to this number", whole("--set"))
    .action((name: string, options: CounterOptions) => counter(name, options, invocation));
}

const counterManual: Manual = {
  examples: [
    "coterie counter orders",
    `coterie counter orders --add 1
42`,
    "coterie counter orders --set 0",
  ],
  exitCodes: EXIT_CODES,
  details: `With \`--json\`: \`{ "value" }\`.`,
};

function whole(option: string) {
  return (text: string): number => {
    const number = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(number)) return number;
    throw new UsageError("bad-argument", unexpected(option, "a whole number", text));
  };
}

async function counter(name: string, options: CounterOptions, invocation: Invocation): Promise<void> {
  const { add, set } = options;
  if (add !== undefined && set !== undefined) throw new UsageError("bad-argument", "expected --add or --set, got both");
  await asClient(options, invocation, async (client, call) => {
    const it = client.counter(name);
    if (set !== undefined) await it.set(set, call);
    const value = set ?? (add === undefined ? await it.get(call) : await it.add(add, call));
    return { json: { value }, text: String(value) };
  });
}

/** Commands on the maps and counters that a cluster shares: get, put, del, watch, txn, counter. */

import type { Command } from "commander";
import { serviceOf } from "../../client/client.ts";
import { performed, readTransaction } from "../../cluster/clients/transaction-request.ts";
import { CoordinationError } from "../../cluster/services/coordination-error.ts";
import { limits } from "../../cluster/services/state/limits.ts";
import type { Change, Range, RangeOptions, SharedMap } from "../../cluster/services/state/state-api.ts";
import { UsageError, unexpected } from "../../core/errors.ts";
import { contentOf } from "../files.ts";
import { wholeNumber } from "../options.ts";
import { ExitWith, type Invocation, onceUnread } from "../output.ts";
import { asClient, CODES, clientFor, type DataOptions, shown, withDataOptions, writtenValue } from "./endpoints.ts";

interface GetOptions extends DataOptions {
  readonly prefix?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
}

export function declareGet(command: Command, invocation: Invocation): void {
  command
    .description("Reads a key of a map, or all keys of a range: linearizable, by whichever member answers.")
    .argument("<map>", "the map's name")
    .argument("[key]", "its key; left out: a range of keys");
  withDataOptions(command)
    .option("--prefix <text>", "keys that begin like this")
    .option("--from <key>", "keys from this one on")
    .option("--to <key>", "keys before this one")
    .option("--limit <n>", "at most so many", wholeNumber("--limit", 1, limits.range))
    .addHelpText("after", GET_HELP)
    .action((map: string, key: string | undefined, options: GetOptions) => get(map, key, options, invocation));
}

const GET_HELP = `
Example:
  $ coterie get stock apples --endpoints http://127.0.0.1:7300
  3
  $ coterie get stock --prefix a --json --endpoints http://127.0.0.1:7300
  {"entries":[{"key":"apples","value":3,"revision":7}],"revision":9,"more":false}

A value is printed as JSON, bytes in base64. With --json a key is { "key", "value", "revision" }, or null if it is missing.
Without --limit, all keys of the range are read, a thousand at a time: keys that change meanwhile may be old or new, and
"revision" is that of the first thousand. With --limit, "more" says whether keys are left out.
${CODES} A key that is not there is 1.`;

/** A member answers with a part of what is much: the next begins behind the last key. */
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
    invocation.stderr.write(
      `coterie: --limit ${limit} leaves out more keys of the map "${map}": give a higher one, or none\n`,
    );
  if (!isThere) throw new ExitWith(1, `nothing stands under "${key}" in the map "${map}"`);
}

interface PutOptions extends DataOptions {
  readonly file?: string;
  readonly ifRevision?: number;
}

export function declarePut(command: Command, invocation: Invocation): void {
  command
    .description("Puts a value under a key of a map, and prints the revision of the write.")
    .argument("<map>", "the map's name")
    .argument("<key>", "its key")
    .argument("[value]", "JSON; what is none is a text");
  withDataOptions(command)
    .option("--file <path>", "the value is what stands there; -: standard input")
    .option(
      "--if-revision <n>",
      "only if the key was last put at this revision; 0: if nothing stands there",
      wholeNumber("--if-revision", 0, Number.MAX_SAFE_INTEGER),
    )
    .addHelpText("after", PUT_HELP)
    .action((map: string, key: string, value: string | undefined, options: PutOptions) =>
      put(map, key, valueIn(value, options.file), options, invocation),
    );
}

const PUT_HELP = `
Example:
  $ coterie put stock apples 3 --endpoints http://127.0.0.1:7300
  7
  $ coterie put stock pears '{"crates":2}' --if-revision 0 --endpoints http://127.0.0.1:7300
  8
  $ coterie put pages index --file index.json --endpoints http://127.0.0.1:7300
  9

With --json: { "revision" }, null if something else stood there.
${CODES} Something else stands there is 1.`;

/** @throws UsageError for both or neither, and for a file that cannot be read */
function valueIn(value: string | undefined, file: string | undefined): string {
  if (file === undefined && value !== undefined) return value;
  if (file === undefined || value !== undefined)
    throw new UsageError("bad-argument", "expected either a value or --file, to say what is put");
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
  if (!isDone) throw new ExitWith(1, `"${key}" in the map "${map}" was not last put at revision ${ifRevision}`);
}

interface DeleteOptions extends DataOptions {
  readonly ifRevision?: number;
}

export function declareDelete(command: Command, invocation: Invocation): void {
  command.description("Deletes a key of a map.").argument("<map>", "the map's name").argument("<key>", "its key");
  withDataOptions(command)
    .option(
      "--if-revision <n>",
      "only if the key was last put at this revision",
      wholeNumber("--if-revision", 0, Number.MAX_SAFE_INTEGER),
    )
    .addHelpText("after", DELETE_HELP)
    .action((map: string, key: string, options: DeleteOptions) => del(map, key, options, invocation));
}

const DELETE_HELP = `
Example:
  $ coterie del stock apples --endpoints http://127.0.0.1:7300

With --json: { "deleted" }.
${CODES} A key that is not there, or was not last put at the revision of --if-revision, is 1.`;

async function del(map: string, key: string, options: DeleteOptions, invocation: Invocation): Promise<void> {
  const { ifRevision } = options;
  let isDeleted = true;
  await asClient(options, invocation, async (client, call) => {
    isDeleted = await client.map(map).delete(key, { ...call, ifRevision });
    return { json: { deleted: isDeleted }, text: "" };
  });
  if (isDeleted) return;
  const otherwise = ifRevision === undefined ? "" : `, or was not last put at revision ${ifRevision}`;
  throw new ExitWith(1, `nothing was deleted: "${key}" in the map "${map}" is not there${otherwise}`);
}

interface WatchOptions extends DataOptions {
  readonly after?: number;
  readonly prefix?: string;
  readonly count?: number;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export function declareWatch(command: Command, invocation: Invocation): void {
  command
    .description("Prints every change of a map, in order and once, as it happens, until Ctrl-C.")
    .argument("<map>", "the map's name")
    .argument("[key]", "only this key");
  withDataOptions(command)
    .option("--after <revision>", "also what has changed behind this revision", natural("--after", 0))
    .option("--prefix <text>", "only keys that begin like this")
    .option("--count <n>", "end after so many changes", natural("--count", 1))
    .addHelpText("after", WATCH_HELP)
    .action((map: string, key: string | undefined, options: WatchOptions) => watch(map, key, options, invocation));
}

const natural = (option: string, min: number) => wholeNumber(option, min, Number.MAX_SAFE_INTEGER);

const WATCH_HELP = `
Example:
  $ coterie watch stock --after 0 --count 2 --endpoints http://127.0.0.1:7300
  7 put apples 3
  9 delete apples

If the member that it listens to fails, it continues at another and misses nothing. --timeout is for the first connection.
With --json each line is { "type", "key", "value", "revision" }.
${CODES} Ended by Ctrl-C, SIGTERM or a closed stdout is 0; changes after --after that are no longer remembered are 1.`;

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
      let told = 0;
      for await (const change of client.map(map).watch({ after, key, prefix, signal: stopped.signal })) {
        stdout.write(options.json === true ? `${JSON.stringify(change)}\n` : `${lineOf(change)}\n`);
        told += 1;
        if (told >= count) break;
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
    .description("Carries out a transaction: all of `then` if all of `if` holds, otherwise all of `else`.")
    .argument("<file>", "JSON; -: standard input");
  withDataOptions(command)
    .addHelpText("after", TXN_HELP)
    .action((file: string, options: DataOptions) => transact(file, options, invocation));
}

const TXN_HELP = `
Example:
  $ cat move.json
  { "if":   [{ "map": "stock", "key": "apples", "value": 3 }],
    "then": [{ "put": { "map": "stock", "key": "apples", "value": 2 } }, { "delete": { "map": "stock", "key": "pears" } }],
    "else": [{ "get": { "map": "stock", "key": "apples" } }] }
  $ coterie txn move.json --endpoints http://127.0.0.1:7300

A comparison has a "value", or a "revision", 0 where nothing is to stand there. What is read is printed, a line each.
With --json: { "succeeded", "revision", "results" }.
${CODES} A comparison that does not hold is 1, when \`else\` has been done.`;

async function transact(file: string, options: DataOptions, invocation: Invocation): Promise<void> {
  const transaction = readTransaction(parsed(file));
  let hasSucceeded = true;
  await asClient(options, invocation, async (client, { timeoutMs }) => {
    const done = await performed(serviceOf(client), { ...transaction, timeoutMs: timeoutMs ?? transaction.timeoutMs });
    hasSucceeded = done.succeeded;
    const read = done.results.flatMap(({ key, value }) => (value === undefined ? [] : [`${key} ${shown(value)}`]));
    return { json: done, text: read.join("\n") };
  });
  if (!hasSucceeded) throw new ExitWith(1, "what stands after `if` does not hold, so `else` was done");
}

function parsed(file: string): unknown {
  const text = contentOf(file === "-" ? 0 : file, "the transaction", "bad-argument");
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError("bad-argument", `expected ${file} to be a file of JSON: ${(error as Error).message}`);
  }
}

interface CounterOptions extends DataOptions {
  readonly add?: number;
  readonly set?: number;
}

export function declareCounter(command: Command, invocation: Invocation): void {
  command.description("Prints a counter, after adding to it or setting it if so asked.").argument("<name>", "its name");
  withDataOptions(command)
    .option("--add <n>", "add this, below 0 to count down", whole("--add"))
    .option("--set <n>", "set it to this", whole("--set"))
    .addHelpText("after", COUNTER_HELP)
    .action((name: string, options: CounterOptions) => counter(name, options, invocation));
}

const COUNTER_HELP = `
Example:
  $ coterie counter orders --add 1 --endpoints http://127.0.0.1:7300
  42

With --json: { "value" }.
${CODES}`;

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

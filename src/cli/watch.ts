/** `coterie watch MAP`: every change, as it happens, until Ctrl-C. */
import type { Command } from "commander";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { Change } from "../cluster/services/state/state-api.ts";
import { wholeNumber } from "./arguments.ts";
import { CODES, clientFor, type DataOptions, shown, withDataOptions } from "./endpoints.ts";
import type { Invocation } from "./invocation.ts";
import { onceUnread } from "./unread.ts";

interface WatchOptions extends DataOptions {
  readonly after?: number;
  readonly prefix?: string;
  readonly count?: number;
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Prints every change of a map, in order and once, as it happens, until Ctrl-C.")
    .argument("<map>", "the map's name")
    .argument("[key]", "only this key");
  withDataOptions(command)
    .option("--after <revision>", "also what has changed behind this revision", natural("--after", 0))
    .option("--prefix <text>", "only keys that begin like this")
    .option("--count <n>", "end after so many changes", natural("--count", 1))
    .addHelpText("after", EXPLANATION)
    .action((map: string, key: string | undefined, options: WatchOptions) => watch(map, key, options, invocation));
}

const natural = (option: string, min: number) => wholeNumber(option, min, Number.MAX_SAFE_INTEGER);

const EXPLANATION = `
Example:
  $ coterie watch stock --after 0 --count 2 --endpoints http://127.0.0.1:7300
  7 put apples 3
  9 delete apples

After a revision that is still to come nothing is printed until there is a change behind it.
When the member that it listens to fails it goes on at another, with nothing left out. --timeout is for the first connection.
With --json each line is { "type", "key", "value", "revision" }.
${CODES} Ended by Ctrl-C or SIGTERM, or since nobody reads on, is 0; changes behind --after that are not remembered any more are 1.`;

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

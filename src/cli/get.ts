/** `coterie get MAP [KEY]`: what stands under a key, or under a range of keys. */
import type { Command } from "commander";
import { limits } from "../cluster/services/state/limits.ts";
import type { Range, RangeOptions, SharedMap } from "../cluster/services/state/state-api.ts";
import { UsageError } from "../core/errors.ts";
import { wholeNumber } from "./arguments.ts";
import { asClient, CODES, type DataOptions, shown, withDataOptions } from "./endpoints.ts";
import { ExitWith } from "./exit-with.ts";
import type { Invocation } from "./invocation.ts";

interface GetOptions extends DataOptions {
  readonly prefix?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Reads a key of a map, or all keys of a range: linearizable, by whichever member answers.")
    .argument("<map>", "the map's name")
    .argument("[key]", "its key; left out: a range of keys");
  withDataOptions(command)
    .option("--prefix <text>", "keys that begin like this")
    .option("--from <key>", "keys from this one on")
    .option("--to <key>", "keys before this one")
    .option("--limit <n>", "at most so many", wholeNumber("--limit", 1, limits.range))
    .addHelpText("after", EXPLANATION)
    .action((map: string, key: string | undefined, options: GetOptions) => get(map, key, options, invocation));
}

const EXPLANATION = `
Example:
  $ coterie get stock apples --endpoints http://127.0.0.1:7300
  3
  $ coterie get stock --prefix a --json --endpoints http://127.0.0.1:7300
  {"entries":[{"key":"apples","value":3,"revision":7}],"revision":9,"more":false}

A value is printed as JSON, bytes in base64. With --json a key is { "key", "value", "revision" }; what is not there is null.
Without --limit all keys of the range are read, a thousand at a time: those that change meanwhile may be as they were before or
after, and "revision" is that of the first thousand. With --limit, "more" is true where keys are left out, which stderr says, too.
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

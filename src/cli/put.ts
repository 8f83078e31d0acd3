/** `coterie put MAP KEY VALUE`. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { UsageError } from "../core/errors.ts";
import { wholeNumber } from "./arguments.ts";
import { asClient, CODES, type DataOptions, withDataOptions, writtenValue } from "./endpoints.ts";
import { ExitWith } from "./exit-with.ts";
import type { Invocation } from "./invocation.ts";

interface PutOptions extends DataOptions {
  readonly file?: string;
  readonly ifRevision?: number;
}

export function declare(command: Command, invocation: Invocation): void {
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
    .addHelpText("after", EXPLANATION)
    .action((map: string, key: string, value: string | undefined, options: PutOptions) =>
      put(map, key, valueIn(value, options.file), options, invocation),
    );
}

const EXPLANATION = `
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
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    throw new UsageError("bad-argument", `expected ${file} to be a file: ${(error as Error).message}`);
  }
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

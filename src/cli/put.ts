/** `coterie put MAP KEY VALUE`. */
import type { Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import { asClient, CODES, type DataOptions, withDataOptions, writtenValue } from "./endpoints.ts";
import { ExitWith } from "./exit-with.ts";
import type { Invocation } from "./invocation.ts";

interface PutOptions extends DataOptions {
  readonly ifRevision?: number;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Puts a value under a key of a map, and prints the revision of the write.")
    .argument("<map>", "the map's name")
    .argument("<key>", "its key")
    .argument("<value>", "JSON; what is none is a text");
  withDataOptions(command)
    .option(
      "--if-revision <n>",
      "only if the key was last put at this revision; 0: if nothing stands there",
      wholeNumber("--if-revision", 0, Number.MAX_SAFE_INTEGER),
    )
    .addHelpText("after", EXPLANATION)
    .action((map: string, key: string, value: string, options: PutOptions) =>
      put(map, key, value, options, invocation),
    );
}

const EXPLANATION = `
Example:
  $ coterie put stock apples 3 --endpoints http://127.0.0.1:7300
  7
  $ coterie put stock pears '{"crates":2}' --if-revision 0 --endpoints http://127.0.0.1:7300
  8

With --json: { "revision" }, null if something else stood there.
${CODES} Something else stands there is 1.`;

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

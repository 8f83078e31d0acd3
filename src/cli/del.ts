/** `coterie del MAP KEY`. */
import type { Command } from "commander";
import { wholeNumber } from "./arguments.ts";
import { asClient, CODES, type DataOptions, withDataOptions } from "./endpoints.ts";
import { ExitWith } from "./exit-with.ts";
import type { Invocation } from "./invocation.ts";

interface DeleteOptions extends DataOptions {
  readonly ifRevision?: number;
}

export function declare(command: Command, invocation: Invocation): void {
  command.description("Deletes a key of a map.").argument("<map>", "the map's name").argument("<key>", "its key");
  withDataOptions(command)
    .option(
      "--if-revision <n>",
      "only if the key was last put at this revision",
      wholeNumber("--if-revision", 0, Number.MAX_SAFE_INTEGER),
    )
    .addHelpText("after", EXPLANATION)
    .action((map: string, key: string, options: DeleteOptions) => del(map, key, options, invocation));
}

const EXPLANATION = `
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

/** `coterie member`: what is done about a member whose folder is lost. */
import type { Command } from "commander";
import { replaceMember } from "../cluster/replace-member.ts";
import { UsageError } from "../core/errors.ts";
import { wholeNumber } from "./arguments.ts";
import { isForTheCaller } from "./callers-error.ts";
import type { Invocation, Output } from "./invocation.ts";
import { say } from "./say.ts";

export function declare(command: Command, { stdout }: Invocation): void {
  command
    .command("replace")
    .summary("make a folder for a member that has lost its own")
    .description("Makes a folder for a member that has lost its own, out of those of a majority of the members.")
    .argument(
      "<id>",
      "the member whose folder is lost",
      wholeNumber("<id>", 0, Number.MAX_SAFE_INTEGER, "a member's id"),
    )
    .requiredOption("--data <dir>", "where its new folder is made; there must be none")
    .requiredOption("--from <dirs...>", "the folders of a majority of the members as they are now")
    .addHelpText("after", EXPLANATION)
    .action((id: number, folders: Folders) => run(id, folders, stdout));
}

const EXPLANATION = `
Example, where member 3 of three has lost its disk:
  $ coterie member replace 3 --data journal-3 --from journal-1 journal-2
  then start member 3 with the folder journal-3

Stop member 3 first; members 1 and 2 may run. A folder on another machine is copied after member 3 has stopped: an older copy, such as
a backup, does not know everything that was promised. What is left of member 3's old folder must never be used again, and neither may
an older copy of it: a damaged journal counts as lost. With elections by name, start member 3 only once their longest lease has passed
since it stopped: 0.45 s, unless \`timing\` or \`leaseMs\` says otherwise.

Of n members at most ⌈n/2⌉ − 1 can be replaced: with the folders of fewer than a majority, something decided could be forgotten.

Exit codes: 0 made; 1 a folder cannot be read or written; 2 wrong arguments, or folders that are not enough.`;

interface Folders {
  readonly data: string;
  readonly from: readonly string[];
}

async function run(id: number, { data, from }: Folders, stdout: Output): Promise<void> {
  await replaceMember({ id, folder: data, from, log: { warn: say } }).catch((error: unknown) => {
    throw isForTheCaller(error) ? new UsageError(error.code, error.message) : error;
  });
  stdout.write(
    `made ${data}: start member ${id} with it, once it has been stopped for the longest lease of your elections by name (0.45 s by default)\n`,
  );
}

/** `coterie transfer ID`. */
import type { Command } from "commander";
import { memberArgument } from "./arguments.ts";
import { CODES, type DataOptions } from "./endpoints.ts";
import type { Invocation } from "./invocation.ts";
import { change, withRequestOptions } from "./member-call.ts";

export function declare(command: Command, { stdout }: Invocation): void {
  command
    .description("Has a member lead the replicated log, such as before another is stopped.")
    .argument("<id>", "the member that is to lead", memberArgument("<id>"));
  withRequestOptions(command)
    .addHelpText("after", EXPLANATION)
    .action(async (id: number, options: DataOptions) => {
      await change(options, "POST", `/v1/members/${id}/leadership`);
      stdout.write(options.json === true ? `${JSON.stringify({ leader: id })}\n` : `member ${id} leads\n`);
    });
}

const EXPLANATION = `
Example:
  $ coterie transfer 2 --endpoints http://127.0.0.1:7300
  member 2 leads

It needs the role admin. A learner cannot lead.
With --json: { "leader" }.
${CODES}`;

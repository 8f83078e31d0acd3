/** `coterie member change`: several changes of the members that take effect together. */
import type { Command } from "commander";
import type { MemberChange } from "../cluster/services/cluster-api.ts";
import { UsageError, unexpected } from "../core/errors.ts";
import { memberArgument } from "./arguments.ts";
import { CODES, type DataOptions } from "./endpoints.ts";
import type { Output } from "./invocation.ts";
import { change, settled, withRequestOptions } from "./member-call.ts";

interface ChangeOptions extends DataOptions {
  readonly add?: readonly MemberChange[];
  readonly learner?: readonly MemberChange[];
  readonly promote?: readonly MemberChange[];
  readonly remove?: readonly MemberChange[];
  readonly wait?: true;
}

export function declareChange(command: Command, stdout: Output): void {
  const several = command
    .command("change")
    .summary("several changes at once: all or none, in one step")
    .description(
      "Adds, promotes and removes members together: all or none. Who votes changes in one step, once all that are to vote are up to date.",
    );
  withRequestOptions(several)
    .option("--add <id=host:port...>", "members that come", eachOf(newcomer("--add", false)))
    .option("--learner <id=host:port...>", "members that come and do not vote", eachOf(newcomer("--learner", true)))
    .option("--promote <id...>", "learners that are to vote", eachOf(known("--promote", "promote")))
    .option("--remove <id...>", "members that go, for good", eachOf(known("--remove", "remove")))
    .option("--wait", "until it is in effect")
    .addHelpText("after", EXPLANATION)
    .action(async (options: ChangeOptions) => {
      const { add = [], learner = [], promote = [], remove = [], wait, json } = options;
      const changes = [...add, ...learner, ...promote, ...remove];
      if (changes.length === 0)
        throw new UsageError("bad-argument", "expected one of --add, --learner, --promote, --remove, got none");
      await change(options, "POST", "/v1/members/changes", { changes });
      if (wait === true) await settled(options);
      const ids = changes.map(({ id }) => id);
      stdout.write(json === true ? `${JSON.stringify({ ids })}\n` : `changed: ${changes.map(line).join(", ")}\n`);
    });
}

const line = (each: MemberChange): string => `${each.type} ${each.id}`;

/** A parser of one word of an option that takes many. */
function eachOf(read: (text: string) => MemberChange) {
  return (text: string, before?: readonly MemberChange[]): readonly MemberChange[] => [...(before ?? []), read(text)];
}

function newcomer(option: string, learner: boolean) {
  const readId = memberArgument(option);
  return (text: string): MemberChange => {
    const [, id, address] = /^(.+?)=(.+)$/.exec(text) ?? [];
    if (id === undefined || address === undefined)
      throw new UsageError("bad-argument", unexpected(option, "an id and an address, such as 4=10.0.0.4:7100", text));
    return { type: "add", id: readId(id), address, ...(learner && { learner }) };
  };
}

function known(option: string, type: "promote" | "remove") {
  const readId = memberArgument(option);
  return (text: string): MemberChange => ({ type, id: readId(text) });
}

const EXPLANATION = `
Example, from members 1, 2 and 3 to 3, 4 and 5:
  $ coterie member change --add 4=10.0.0.4:7100 5=10.0.0.5:7100 --remove 1 2 --endpoints http://10.0.0.3:7300
  then start members 4 and 5 with empty folders, and with --existing

It needs the role admin. With --json: { "ids" }.
${CODES}`;

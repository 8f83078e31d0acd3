/** `coterie member`: who the members are, how that changes, and what is done about one whose folder is lost. */
import type { Command } from "commander";
import { replaceMember } from "../../cluster/replace-member.ts";
import type { MemberChange } from "../../cluster/services/cluster-api.ts";
import { UsageError, unexpected } from "../../core/errors.ts";
import { docsPage } from "../../runtime/docs-page.ts";
import { CODES, type DataOptions } from "../client/endpoints.ts";
import { memberArgument } from "../options.ts";
import { type Invocation, type Output, say as warn } from "../output.ts";
import { change, type Listed, membersAt, settled, withRequestOptions } from "./member-call.ts";
import { blameTheCaller } from "./own-member.ts";

export function declare(command: Command, { stdout }: Invocation): void {
  declareList(command, stdout);
  declareAdd(command, stdout);
  declareChanges(command, stdout);
  declareChange(command, stdout);
  declareReplace(command, stdout);
  command.addHelpText("after", GROUP);
}

const GROUP = `
Example:
  $ coterie member list --endpoints http://127.0.0.1:7300
  $ coterie member add --help      what it takes, in full`;

type Said = (id: number) => string;

function declareList(command: Command, stdout: Output): void {
  const list = command
    .command("list")
    .summary("who the members are")
    .description("Prints who the members are, where they are reached, and who votes.");
  withRequestOptions(list)
    .option("--wait", "once all changes are in effect, such as once a member that was added votes")
    .addHelpText("after", LIST)
    .action(async (options: DataOptions & { wait?: true }) => {
      if (options.wait === true) await settled(options);
      const members = await membersAt(options);
      const line = ({ id, address, role, isLeader }: Listed[number]): string =>
        `${id}  ${address}  ${role}${isLeader ? ", leads" : ""}\n`;
      stdout.write(options.json === true ? `${JSON.stringify({ members })}\n` : members.map(line).join(""));
    });
}

const LIST = `
Example:
  $ coterie member list --endpoints http://127.0.0.1:7300
  1  10.0.0.1:7100  voter
  2  10.0.0.2:7100  voter, leads
  4  10.0.0.4:7100  joining

With --json: { "members": [{ "id", "address", "role", "isLeader" }] }.
${CODES}`;

function declareAdd(command: Command, stdout: Output): void {
  const add = command
    .command("add")
    .summary("put a member on the list, which is then started")
    .description("Puts a member on the list. It is then started with an empty folder and `coterie node --existing`.")
    .argument("<id>", "an id that no member has, or has had", memberArgument("<id>"))
    .argument("<host:port>", "where the other members reach it");
  withRequestOptions(add)
    .option("--learner", "it has all that the others have, and does not vote until it is promoted")
    .option(
      "--replaces <id>",
      "this member, which may be dead, leaves as soon as the new one votes",
      memberArgument("--replaces"),
    )
    .addHelpText("after", ADD)
    .action(async (id: number, address: string, options: AddOptions) => {
      const { learner, replaces } = options;
      if (learner === true && replaces !== undefined)
        throw new UsageError("bad-argument", "expected --learner or --replaces, got both: who replaces a member votes");
      await change(options, "POST", "/v1/members", {
        id,
        address,
        ...(learner === true && { learner }),
        ...(replaces !== undefined && { replaces }),
      });
      say(
        stdout,
        options,
        id,
        `member ${id} is on the list: start it with an empty folder, and with --existing (join(): existing: true)`,
      );
    });
}

interface AddOptions extends DataOptions {
  readonly learner?: true;
  readonly replaces?: number;
}

const ADD = `
Example, with a fourth line in cluster.json:
  $ coterie member add 4 10.0.0.4:7100 --endpoints http://10.0.0.1:7300
  $ coterie node --config cluster.json --id 4 --existing        on its machine

Once it is up to date it votes; \`coterie member list\` says \`joining\` until then. One change at a time. More: ${docsPage("operate/membership.md")}
It needs the role admin.
With --json: { "id" }.
${CODES}`;

function declareChanges(command: Command, stdout: Output): void {
  const changes: readonly [name: string, summary: string, path: string, said: Said][] = [
    ["promote", "a learner is to vote", "promotion", (id) => `member ${id} votes as soon as it is up to date`],
    ["remove", "take a member from the list, for good", "removal", (id) => `member ${id} is taken from the list`],
  ];
  for (const [name, summary, path, said] of changes) {
    const one = command
      .command(name)
      .summary(summary)
      .description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`)
      .argument("<id>", "the member", memberArgument("<id>"));
    withRequestOptions(one)
      .option("--wait", "until it is in effect")
      .addHelpText("after", `\nIt needs the role admin. With --json: { "id" }.\n${CODES}`)
      .action(async (id: number, options: DataOptions & { wait?: true }) => {
        await change(options, "POST", `/v1/members/${id}/${path}`);
        if (options.wait === true) await settled(options);
        say(stdout, options, id, said(id));
      });
  }
  const move = command
    .command("move")
    .summary("a member is at another address")
    .description(
      "Says that a member is at another address. Stop it first, and start it there afterwards, with its folder.",
    )
    .argument("<id>", "the member", memberArgument("<id>"))
    .argument("<host:port>", "where the other members reach it from now on");
  withRequestOptions(move)
    .addHelpText("after", `\nIt needs the role admin. With --json: { "id" }.\n${CODES}`)
    .action(async (id: number, address: string, options: DataOptions) => {
      await change(options, "PUT", `/v1/members/${id}/address`, { address });
      say(stdout, options, id, `member ${id} is called at ${address}`);
    });
}

const say = (stdout: Output, { json }: DataOptions, id: number, text: string): void =>
  void stdout.write(json === true ? `${JSON.stringify({ id })}\n` : `${text}\n`);

function declareReplace(command: Command, stdout: Output): void {
  command
    .command("replace")
    .summary("make a folder for a member that has lost its own")
    .description(
      "Makes a folder for a member that has lost its own, out of those of a majority of the members. To put another member in the place of one, with another id and while the cluster works: `coterie member add ID HOST:PORT --replaces ID`.",
    )
    .argument("<id>", "the member whose folder is lost", memberArgument("<id>"))
    .requiredOption("--data <dir>", "where its new folder is made; there must be none")
    .requiredOption("--from <dirs...>", "the folders of a majority of the members as they are now")
    .addHelpText("after", REPLACE_HELP)
    .action((id: number, folders: Folders) => run(id, folders, stdout));
}

const REPLACE_HELP = `
Example, where member 3 of three has lost its disk:
  $ coterie member replace 3 --data journal-3 --from journal-1 journal-2
  then start member 3 with the folder journal-3

Stop member 3 first; members 1 and 2 may run. Copy folders from other machines only after member 3 has stopped: an older
copy, such as a backup, lacks promises made since. Never use member 3's old folder again, nor a copy of it. With elections
by name, wait for their longest lease before you start member 3: 0.45 s, unless \`timing\` or \`leaseMs\` says otherwise.

Of n members at most ⌈n/2⌉ − 1 can be replaced: fewer folders than a majority may lack a decision.

Exit codes: 0 made; 1 a folder cannot be read or written; 2 wrong arguments, or too few folders.`;

interface Folders {
  readonly data: string;
  readonly from: readonly string[];
}

async function run(id: number, { data, from }: Folders, stdout: Output): Promise<void> {
  await replaceMember({ id, folder: data, from, log: { warn } }).catch(blameTheCaller);
  stdout.write(
    `made ${data}: start member ${id} with it, once it has been stopped for the longest lease of your elections by name (0.45 s by default)\n`,
  );
}

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
    .addHelpText("after", CHANGE_HELP)
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

const CHANGE_HELP = `
Example, from members 1, 2 and 3 to 3, 4 and 5:
  $ coterie member change --add 4=10.0.0.4:7100 5=10.0.0.5:7100 --remove 1 2 --endpoints http://10.0.0.3:7300
  then start members 4 and 5 with empty folders, and with --existing

It needs the role admin. With --json: { "ids" }.
${CODES}`;

export function declareTransfer(command: Command, { stdout }: Invocation): void {
  command
    .description("Has a member lead the replicated log, such as before another is stopped.")
    .argument("<id>", "the member that is to lead", memberArgument("<id>"));
  withRequestOptions(command)
    .addHelpText("after", TRANSFER_HELP)
    .action(async (id: number, options: DataOptions) => {
      await change(options, "POST", `/v1/members/${id}/leadership`);
      stdout.write(options.json === true ? `${JSON.stringify({ leader: id })}\n` : `member ${id} leads\n`);
    });
}

const TRANSFER_HELP = `
Example:
  $ coterie transfer 2 --endpoints http://127.0.0.1:7300
  member 2 leads

It needs the role admin. A learner cannot lead.
With --json: { "leader" }.
${CODES}`;

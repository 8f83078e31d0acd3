/** `coterie member`: lists and changes the members, and repairs a member that has lost its folder. */
import type { Command } from "commander";
import { replaceMember } from "../../cluster/replace-member.ts";
import type { MemberChange } from "../../cluster/services/cluster-api.ts";
import { UsageError, unexpected } from "../../core/errors.ts";
import { type DataOptions, EXIT_CODES } from "../client/endpoints.ts";
import { type Manual, withManual } from "../manual.ts";
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
  command.description(
    "Lists and changes the members of a cluster. To replace a dead machine, use `coterie member add ID HOST:PORT --replaces ID`.",
  );
  withManual(command, {
    examples: ["coterie member list", "coterie member add 4 10.0.0.4:7100", "coterie member remove 1 --wait"],
    exitCodes: EXIT_CODES,
    details: `Changes to the member list need the role admin. Only one change can be in progress at a time; see [membership](../operate/membership.md).`,
  });
}

function declareList(command: Command, stdout: Output): void {
  const list = command
    .command("list")
    .summary("list the members")
    .description("Lists the members with their addresses and roles.");
  withManual(withRequestOptions(list), listManual)
    .option("--wait", "wait until all changes have taken effect, for example until a new member votes")
    .action(async (options: DataOptions & { wait?: true }) => {
      if (options.wait === true) await settled(options);
      const members = await membersAt(options);
      const line = ({ id, address, role, isLeader }: Listed[number]): string =>
        `${id}  ${address}  ${role}${isLeader ? ", leads" : ""}\n`;
      stdout.write(options.json === true ? `${JSON.stringify({ members })}\n` : members.map(line).join(""));
    });
}

const listManual: Manual = {
  examples: [
    `coterie member list
1  10.0.0.1:7100  voter
2  10.0.0.2:7100  voter, leads
4  10.0.0.4:7100  joining`,
    "coterie member list --endpoints http://10.0.0.1:7300 --json",
  ],
  exitCodes: EXIT_CODES,
  details: `With \`--json\`: \`{ "members": [{ "id", "address", "role", "isLeader" }] }\`.`,
};

function declareAdd(command: Command, stdout: Output): void {
  const add = command
    .command("add")
    .summary("add a member, before you start it")
    .description("Adds a member to the list. Then start it with an empty folder and `coterie node --existing`.")
    .argument("<id>", "an id that has never been used by a member", memberArgument("<id>"))
    .argument("<host:port>", "address at which the other members can reach it");
  withManual(withRequestOptions(add), addManual)
    .option("--learner", "add the member as a learner, which gets all data but does not vote until it is promoted")
    .option(
      "--replaces <id>",
      "remove this member, whether it is running or not, once the new one votes",
      memberArgument("--replaces"),
    )
    .action(async (id: number, address: string, options: AddOptions) => {
      const { learner, replaces } = options;
      if (learner === true && replaces !== undefined)
        throw new UsageError("bad-argument", "expected --learner or --replaces, got both: a replacement votes");
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
        `member ${id} has been added: start it with an empty folder and --existing (in join(): existing: true)`,
      );
    });
}

interface AddOptions extends DataOptions {
  readonly learner?: true;
  readonly replaces?: number;
}

const addManual: Manual = {
  examples: [
    "coterie member add 4 10.0.0.4:7100",
    "coterie member add 5 10.0.0.5:7100 --learner",
    "coterie member add 6 10.0.0.6:7100 --replaces 3",
  ],
  exitCodes: EXIT_CODES,
  details: `Add the member to \`cluster.json\` as well, and start it on its machine:

\`\`\`sh
npx coterie node --config cluster.json --id 4 --existing
\`\`\`

The member votes once it is up to date; until then, \`coterie member list\` shows \`joining\`. Only one change can be in progress at a
time; see [membership](../operate/membership.md). The command needs the role admin. With \`--json\`: \`{ "id" }\`.`,
};

function declareChanges(command: Command, stdout: Output): void {
  const changes: readonly [name: string, summary: string, path: string, done: (id: number) => string][] = [
    ["promote", "let a learner vote", "promotion", (id) => `member ${id} will vote once it is up to date`],
    ["remove", "remove a member permanently", "removal", (id) => `member ${id} has been removed`],
  ];
  for (const [name, summary, path, done] of changes) {
    const one = command
      .command(name)
      .summary(summary)
      .description(name === "promote" ? "Lets a learner vote once it is up to date." : "Removes a member permanently.")
      .argument("<id>", "id of the member", memberArgument("<id>"));
    withManual(withRequestOptions(one), {
      examples: [`coterie member ${name} 4 --wait`],
      exitCodes: EXIT_CODES,
      details: CHANGE_DETAILS,
    })
      .option("--wait", "wait until the change has taken effect")
      .action(async (id: number, options: DataOptions & { wait?: true }) => {
        await change(options, "POST", `/v1/members/${id}/${path}`);
        if (options.wait === true) await settled(options);
        say(stdout, options, id, done(id));
      });
  }
  const move = command
    .command("move")
    .summary("change a member's address")
    .description(
      "Changes a member's address. Stop the member first. Afterwards, start it at the new address with its folder.",
    )
    .argument("<id>", "id of the member", memberArgument("<id>"))
    .argument("<host:port>", "new address at which the other members can reach it");
  withManual(withRequestOptions(move), {
    examples: ["coterie member move 3 10.0.0.7:7100"],
    exitCodes: EXIT_CODES,
    details: CHANGE_DETAILS,
  }).action(async (id: number, address: string, options: DataOptions) => {
    await change(options, "PUT", `/v1/members/${id}/address`, { address });
    say(stdout, options, id, `member ${id} now has the address ${address}`);
  });
}

const CHANGE_DETAILS = `The command needs the role admin. With \`--json\`: \`{ "id" }\`.`;

const say = (stdout: Output, { json }: DataOptions, id: number, text: string): void =>
  void stdout.write(json === true ? `${JSON.stringify({ id })}\n` : `${text}\n`);

function declareReplace(command: Command, stdout: Output): void {
  const replace = command
    .command("replace")
    .summary("rebuild the folder of a member that lost it")
    .description(
      "Rebuilds the folder of a member that lost it, from the folders of a majority. To replace a member with a new one that has another id, use `coterie member add ID HOST:PORT --replaces ID`.",
    );
  withManual(replace, replaceManual)
    .argument("<id>", "id of the member that lost its folder", memberArgument("<id>"))
    .requiredOption("--data <dir>", "new folder, which must not exist yet")
    .requiredOption("--from <dirs...>", "current folders of a majority of the members")
    .action((id: number, folders: Folders) => run(id, folders, stdout));
}

const replaceManual: Manual = {
  examples: ["coterie member replace 3 --data journal-3 --from journal-1 journal-2"],
  exitCodes: "0 done; 1 a folder cannot be read or written; 2 invalid arguments, or too few folders",
  details: `In the example, member 3 of three has lost its disk. Afterwards, start member 3 with the folder \`journal-3\`.

Stop member 3 first; members 1 and 2 can keep running. Copy folders from other machines only after member 3 has stopped: an older
copy, such as a backup, lacks promises made since then. Never use member 3's old folder or a copy of it again. If you use elections
by name, wait for their longest lease before you start member 3: 5 s, unless you have changed \`timing\`.

At most ⌈n/2⌉ − 1 of n members can be replaced, because fewer folders than a majority may lack a decision.`,
};

interface Folders {
  readonly data: string;
  readonly from: readonly string[];
}

async function run(id: number, { data, from }: Folders, stdout: Output): Promise<void> {
  await replaceMember({ id, folder: data, from, log: { warn } }).catch(blameTheCaller);
  stdout.write(
    `made ${data}: start member ${id} with it once the member has been stopped for the longest lease of your elections (5 s by default)\n`,
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
    .summary("make several changes in one step: all or none")
    .description(
      "Adds, promotes and removes members in one step: all or none. The set of voters changes once all new voters are up to date.",
    );
  withManual(withRequestOptions(several), changeManual)
    .option("--add <id=host:port...>", "members to add", eachOf(newcomer("--add", false)))
    .option("--learner <id=host:port...>", "members to add as learners", eachOf(newcomer("--learner", true)))
    .option("--promote <id...>", "learners to promote", eachOf(known("--promote", "promote")))
    .option("--remove <id...>", "members to remove permanently", eachOf(known("--remove", "remove")))
    .option("--wait", "wait until the changes have taken effect")
    .action(async (options: ChangeOptions) => {
      const { add = [], learner = [], promote = [], remove = [], wait, json } = options;
      const changes = [...add, ...learner, ...promote, ...remove];
      if (changes.length === 0)
        throw new UsageError("bad-argument", "expected at least one of --add, --learner, --promote, --remove");
      await change(options, "POST", "/v1/members/changes", { changes });
      if (wait === true) await settled(options);
      const ids = changes.map(({ id }) => id);
      stdout.write(json === true ? `${JSON.stringify({ ids })}\n` : `changed: ${changes.map(line).join(", ")}\n`);
    });
}

const line = (each: MemberChange): string => `${each.type} ${each.id}`;

/** Returns a parser for an option that can be given more than once. */
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

const changeManual: Manual = {
  examples: ["coterie member change --add 4=10.0.0.4:7100 5=10.0.0.5:7100 --remove 1 2"],
  exitCodes: EXIT_CODES,
  details: `The example changes the members from 1, 2 and 3 to 3, 4 and 5. Afterwards, start members 4 and 5 with empty folders and
\`--existing\`. The command needs the role admin. With \`--json\`: \`{ "ids" }\`.`,
};

export function declareTransfer(command: Command, { stdout }: Invocation): void {
  command
    .description("Makes a member the leader of the replicated log, for example before you stop the current leader.")
    .argument("<id>", "id of the new leader", memberArgument("<id>"));
  withManual(withRequestOptions(command), transferManual).action(async (id: number, options: DataOptions) => {
    await change(options, "POST", `/v1/members/${id}/leadership`);
    stdout.write(options.json === true ? `${JSON.stringify({ leader: id })}\n` : `member ${id} leads\n`);
  });
}

const transferManual: Manual = {
  examples: ["coterie transfer 2\nmember 2 leads", "coterie transfer 2 --endpoints http://10.0.0.1:7300"],
  exitCodes: EXIT_CODES,
  details: `The command needs the role admin. A learner cannot lead. With \`--json\`: \`{ "leader" }\`.`,
};

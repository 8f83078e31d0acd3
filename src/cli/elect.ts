/** `coterie elect NAME -- CMD`: a command that runs while this member leads. */
import { Command } from "commander";
import type { Election, Leadership, Member } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { codeAfter, ExitWith } from "./exit-with.ts";
import { Interruption } from "./keeper/interruption.ts";
import { Keeper } from "./keeper/keeper.ts";
import { type KeptCommand, LOST, runKept } from "./keeper/kept-command.ts";
import { explainWaiting, joinForCommand, leave, type OwnMemberOptions, say, withMemberOptions } from "./own-member.ts";

interface ElectOptions extends OwnMemberOptions {
  readonly algorithm?: string;
  readonly once?: true;
}

export function electCommand(): Command {
  const command = new Command("elect")
    .summary("run a command while this member leads")
    .description(
      "Becomes a member of the cluster, campaigns in the election NAME, and runs the command while it leads.",
    )
    .argument("<name>", "the election's name")
    .argument("<command...>", "after --, what is run, with its arguments");
  return withMemberOptions(command)
    .option("--algorithm <name>", "an election of `coterie protocols` (default: epoch-bully)")
    .option("--once", "end when leadership is lost, and do not campaign again")
    .addHelpText("after", EXPLANATION)
    .action(elect);
}

const EXPLANATION = `
Example:
  $ cat coterie.json
  { "cluster": "orders", "dataDir": "journal-{id}",
    "members": { "1": "127.0.0.1:7101", "2": "127.0.0.1:7102", "3": "127.0.0.1:7103" } }
  $ coterie elect scheduler --id 1 -- ./scheduler --verbose      and the same with --id 2 and --id 3 elsewhere

The command finds COTERIE_NAME and COTERIE_TOKEN in its environment. The token grows from one leader to the next: let
what the command writes to remember the highest, and refuse lower ones. A majority of the members has to run.

When leadership is lost the command gets SIGTERM, and SIGKILL after --grace, in any case before anybody else can lead;
then this member campaigns again. So it does when this process is killed or paused. When the command ends by itself,
the member stands aside and this ends, too. What the command leaves in its process group is killed first.
SIGINT, SIGTERM and SIGHUP are passed on to the command, and a second Ctrl-C kills it; this ends when it has ended.

Exit codes: the command's own, 128 + n after signal n; with --once, 76 leadership was lost and the command stopped;
126 the command cannot be executed, 127 there is none of that name; 1 the member failed, 2 wrong arguments, bad config,
an address or a file it cannot use.`;

async function elect(name: string, command: readonly string[], options: ElectOptions): Promise<void> {
  const interruption = new Interruption();
  const member = await joinForCommand(options);
  try {
    throw new ExitWith(await campaign(member, { name, command, graceMs: options.grace }, options, interruption));
  } finally {
    await leave(member);
  }
}

/** The command has had its last run: whatever becomes of leadership, there is no other. */
class Over extends Error {
  constructor(readonly exitCode: number) {
    super();
  }
}

/** Campaigns, and runs the command as often as this member is elected. Resolves with the exit code. */
async function campaign(
  member: Member,
  kept: KeptCommand,
  { once, verbose, algorithm }: ElectOptions,
  interruption: Interruption,
): Promise<number> {
  const { name } = kept;
  const election: Election<number | null> = member.election(name, algorithm === undefined ? {} : { algorithm });
  let keeper = new Keeper(); // It starts while we wait.
  const done = explainWaiting(member, `leadership of ${name}`);
  const work = async (leadership: Leadership<number | null>): Promise<void> => {
    done();
    if (verbose === true) say(`leads ${name}, token ${leadership.token ?? "none"}`);
    const { exitCode, isLost } = await runKept(kept, leadership, keeper, interruption);
    if (interruption.asked !== null || !isLost) throw new Over(exitCode);
    say(`leadership of ${name} was lost, and the command stopped`);
    if (once === true) throw new Over(LOST);
    await keeper.dismiss();
    keeper = new Keeper();
  };
  try {
    // It returns if the command was stopped in time and leadership was confirmed after all.
    for (;;) await election.lead(work, { signal: interruption.signal });
  } catch (error) {
    if (error instanceof Over) return error.exitCode;
    if (interruption.asked !== null && error instanceof CoordinationError) return codeAfter(interruption.asked);
    throw error;
  } finally {
    done();
    await keeper.dismiss();
  }
}

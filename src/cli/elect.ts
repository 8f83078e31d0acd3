/** `coterie elect NAME -- CMD`: a command that runs while this member leads. */
import type { Command } from "commander";
import type { Leadership } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { Access } from "./access.ts";
import { type AccessOptions, accessFor, withAccessOptions } from "./access-options.ts";
import { codeAfter, ExitWith } from "./exit-with.ts";
import { say } from "./say.ts";
import { Interruption } from "./supervisor/interruption.ts";
import { LOST, runSupervised, type SupervisedCommand } from "./supervisor/supervised-command.ts";
import { Supervisor } from "./supervisor/supervisor.ts";

interface ElectOptions extends AccessOptions {
  readonly once?: true;
}

export function declare(command: Command): void {
  command
    .description("Campaigns in the election NAME, and runs the command while leading: through a member, or as one.")
    .argument("<name>", "the election's name")
    .argument("<command...>", "after --, what is run, with its arguments");
  withAccessOptions(command)
    .option("--once", "end when leadership is lost, and do not campaign again")
    .addHelpText("after", EXPLANATION)
    .action(elect);
}

const EXPLANATION = `
Example:
  $ coterie node --config coterie.json --id 1
  {"event":"listening","id":1,"pid":4711,"address":"10.0.0.1:7100","admin":"http://127.0.0.1:7201"}
  $ coterie elect scheduler --member http://127.0.0.1:7201 -- ./scheduler --verbose      and the same elsewhere

The same without a member that runs already:
  $ cat coterie.json
  { "cluster": "orders", "dataDir": "journal-{id}",
    "members": { "1": "127.0.0.1:7101", "2": "127.0.0.1:7102", "3": "127.0.0.1:7103" } }
  $ coterie elect scheduler --id 1 -- ./scheduler --verbose      and the same with --id 2 and --id 3 elsewhere

The command finds COTERIE_NAME and COTERIE_TOKEN in its environment. The token grows from one leader to the next: let
what the command writes to remember the highest, and refuse lower ones. A majority of the members has to run.

When leadership is lost the command gets SIGTERM, and SIGKILL after --grace, in any case before anybody else can lead;
then the campaign begins again. So it does when this process is killed or paused, or its member. When the command ends
by itself, the member steps down and this ends, too. What the command leaves in its process group is killed first.
SIGINT, SIGTERM and SIGHUP are passed on to the command, and a second Ctrl-C kills it; this ends when it has ended.

Exit codes: the command's own, 128 + n after signal n; with --once, 76 leadership was lost and the command stopped;
126 the command cannot be executed, 127 there is none of that name; 1 the member failed or does not answer, 2 wrong
arguments, not allowed, bad config, an address or a file it cannot use. With --endpoints it waits for members, too, for as
long as it takes.`;

async function elect(name: string, command: readonly string[], options: ElectOptions): Promise<void> {
  const interruption = new Interruption();
  const access = await accessFor(options);
  try {
    throw new ExitWith(await campaign(access, { name, command, graceMs: options.grace }, options, interruption));
  } finally {
    await access.leave();
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
  access: Access,
  supervised: SupervisedCommand,
  { once, verbose }: ElectOptions,
  interruption: Interruption,
): Promise<number> {
  const { name } = supervised;
  const election = access.election(name);
  let supervisor = new Supervisor(); // It starts while we wait.
  const done = access.explainWaiting(`leadership of ${name}`);
  const work = async (leadership: Leadership): Promise<void> => {
    done();
    if (verbose === true) say(`leads ${name}, token ${leadership.token}`);
    const { exitCode, isLost } = await runSupervised(supervised, leadership, supervisor, interruption);
    if (interruption.received !== null || !isLost) throw new Over(exitCode);
    say(`leadership of ${name} was lost, and the command stopped`);
    if (once === true) throw new Over(LOST);
    await supervisor.dismiss();
    supervisor = new Supervisor();
  };
  try {
    await supervisor.ready; // Until then no leader makes way for this member, which could not begin yet.
    // It returns if the command was stopped in time and leadership was confirmed after all.
    for (;;) await election.lead(work, { signal: interruption.signal });
  } catch (error) {
    if (error instanceof Over) return error.exitCode;
    const isEnded = error instanceof CoordinationError || error === interruption.signal.reason;
    if (interruption.received !== null && isEnded) return codeAfter(interruption.received);
    throw error;
  } finally {
    done();
    await supervisor.dismiss();
  }
}

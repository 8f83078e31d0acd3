/** `coterie elect NAME -- CMD`: a command that runs while this client leads. */
import type { Command } from "commander";
import type { Leadership } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { Access, type AccessOptions, withAccessOptions } from "./access.ts";
import { codeAfter, ExitWith } from "./exit-with.ts";
import { say } from "./report.ts";
import { Interruption } from "./supervisor/interruption.ts";
import { LOST, runSupervised, type SupervisedCommand } from "./supervisor/supervised-command.ts";
import { Supervisor } from "./supervisor/supervisor.ts";

interface ElectOptions extends AccessOptions {
  readonly once?: true;
}

export function declare(command: Command): void {
  command
    .description("Campaigns in the election NAME, and runs the command while leading.")
    .argument("<name>", "the election's name")
    .argument("<command...>", "after --: the command, with its arguments");
  withAccessOptions(command)
    .option("--once", "end when leadership is lost, and do not campaign again")
    .addHelpText("after", EXPLANATION)
    .action(elect);
}

const EXPLANATION = `
Example:
  $ coterie node --config coterie.json --id 1 --clients 127.0.0.1:7300
  $ export COTERIE_ENDPOINTS=http://127.0.0.1:7300
  $ coterie elect scheduler -- ./scheduler --verbose      and the same elsewhere

The command finds COTERIE_NAME and COTERIE_TOKEN in its environment. The token grows from one leader to the next: let
the resource that the command writes to remember the highest token and reject lower ones. A majority of the members has
to run.

When leadership is lost, the command gets SIGTERM, and SIGKILL after --grace, in any case before another client can
lead; then it campaigns again. The same happens when this process is killed or paused. When the command ends by itself,
this client steps down and this process ends, too. Processes that the command leaves in its process group are killed
first. SIGINT, SIGTERM and SIGHUP are passed on to the command, and a second Ctrl-C kills it.

Exit codes: the command's own, 128 + n after signal n; with --once, 76 leadership was lost and the command stopped;
126 the command cannot be executed, 127 there is no such command; 1 failed; 2 wrong arguments, or not allowed. While no
member answers it waits, as long as it takes.`;

async function elect(name: string, command: readonly string[], options: ElectOptions): Promise<void> {
  const interruption = new Interruption();
  const access = new Access(options);
  try {
    throw new ExitWith(await campaign(access, { name, command, graceMs: options.grace }, options, interruption));
  } finally {
    await access.close();
  }
}

/** The command does not run again, with or without leadership. */
class Over extends Error {
  constructor(readonly exitCode: number) {
    super();
  }
}

/** Campaigns, and runs the command as often as this client is elected. Resolves with the exit code. */
async function campaign(
  access: Access,
  supervised: SupervisedCommand,
  { once, verbose }: ElectOptions,
  interruption: Interruption,
): Promise<number> {
  const { name } = supervised;
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
    await supervisor.ready; // A leader that cannot start its command yet would only keep others from leading.
    // It returns if the command was stopped in time and leadership was confirmed after all.
    for (;;) await access.lead(name, work, { signal: interruption.signal });
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

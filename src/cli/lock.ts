/** `coterie lock NAME -- CMD`: a command that runs while it holds a lock of the cluster. */
import type { Command } from "commander";
import type { Grant } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { Access } from "./access.ts";
import { type AccessOptions, accessFor, withAccessOptions } from "./access-options.ts";
import { duration } from "./duration.ts";
import { codeAfter, ExitWith } from "./exit-with.ts";
import { say } from "./say.ts";
import { Interruption } from "./supervisor/interruption.ts";
import { LOST, NOT_ACQUIRED, type Outcome, runSupervised } from "./supervisor/supervised-command.ts";
import { Supervisor } from "./supervisor/supervisor.ts";

interface LockOptions extends AccessOptions {
  readonly timeout?: number;
}

export function declare(command: Command): void {
  command
    .description("Waits for the lock NAME, runs the command, and gives the lock back: through a member, or as one.")
    .argument("<name>", "the lock's name")
    .argument("<command...>", "after --, what is run, with its arguments");
  withAccessOptions(command)
    .option("--timeout <time>", "how long to wait for the lock at most", duration("--timeout"))
    .addHelpText("after", EXPLANATION)
    .action(lock);
}

const EXPLANATION = `
Example:
  $ coterie node --config coterie.json --id 1
  {"event":"listening","id":1,"pid":4711,"address":"10.0.0.1:7100","admin":"http://127.0.0.1:7201"}
  $ coterie lock nightly-backup --member http://127.0.0.1:7201 --timeout 5s -- ./backup.sh /var/orders

The same without a member that runs already:
  $ cat coterie.json
  { "cluster": "orders", "dataDir": "journal-{id}",
    "members": { "1": "127.0.0.1:7101", "2": "127.0.0.1:7102", "3": "127.0.0.1:7103" } }
  $ coterie lock nightly-backup --id 1 --timeout 5s -- ./backup.sh /var/orders

The command finds COTERIE_NAME and COTERIE_TOKEN in its environment. The token grows from one holder to the next: let
what the command writes to remember the highest, and refuse lower ones. A majority of the members has to run.

SIGINT, SIGTERM and SIGHUP are passed on to the command, and a second Ctrl-C kills it. When the lock is lost the
command gets SIGTERM, and SIGKILL after --grace, in any case before anybody else can have the lock. So it does
when this process is killed or paused, or its member. What the command leaves in its process group is killed before the lock
is given back.

Exit codes: the command's own, 128 + n after signal n; 75 the lock was not to be had in time, 76 the lock was lost and
the command stopped; 126 the command cannot be executed, 127 there is none of that name; 1 the member failed or
does not answer, 2 wrong arguments, not allowed, bad config, an address or a file it cannot use. With --endpoints it waits for
members, too: for as long as it takes, or as --timeout says.`;

async function lock(name: string, command: readonly string[], options: LockOptions): Promise<void> {
  const interruption = new Interruption();
  const access = await accessFor(options);
  let supervisor: Supervisor | null = null;
  try {
    const mutex = access.mutex(name);
    supervisor = new Supervisor(); // It starts while we wait.
    const done = access.explainWaiting(`the lock ${name}`);
    const grant = await acquired(mutex, options, interruption).finally(done);
    if (options.verbose === true) say(`holds ${name}, token ${grant.token}`);
    let outcome: Outcome;
    try {
      outcome = await runSupervised({ name, command, graceMs: options.grace }, grant, supervisor, interruption);
    } finally {
      await grant.release();
    }
    if (outcome.isLost) throw new ExitWith(LOST, `the lock ${name} was lost, and the command stopped`);
    throw new ExitWith(outcome.exitCode);
  } finally {
    await Promise.all([supervisor?.dismiss(), access.leave()]);
  }
}

/** @throws ExitWith if the lock is not to be had in time, or somebody asked for an end meanwhile. */
async function acquired(
  mutex: ReturnType<Access["mutex"]>,
  { timeout }: LockOptions,
  interruption: Interruption,
): Promise<Grant> {
  const { signal } = interruption;
  try {
    return await mutex.acquire(timeout === undefined ? { signal } : { signal, timeoutMs: timeout });
  } catch (error) {
    if (interruption.received !== null) throw new ExitWith(codeAfter(interruption.received));
    if (!(error instanceof CoordinationError)) throw error;
    if (error.phase === "lost") throw new ExitWith(LOST, error.message); // Before there was time to begin.
    if (error.code === "acquire-timeout" || error.code === "no-endpoint")
      throw new ExitWith(NOT_ACQUIRED, error.message);
    throw error;
  }
}

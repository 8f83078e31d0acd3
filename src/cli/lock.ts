/** `coterie lock NAME -- CMD`: a command that runs while it holds a lock of the cluster. */
import type { Command } from "commander";
import type { Grant } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { Access, type AccessOptions, withAccessOptions } from "./access.ts";
import { duration } from "./duration.ts";
import { codeAfter, ExitWith } from "./exit-with.ts";
import { say } from "./report.ts";
import { Interruption } from "./supervisor/interruption.ts";
import { LOST, NOT_ACQUIRED, type Outcome, runSupervised } from "./supervisor/supervised-command.ts";
import { Supervisor } from "./supervisor/supervisor.ts";

interface LockOptions extends AccessOptions {
  readonly timeout?: number;
}

export function declare(command: Command): void {
  command
    .description("Waits for the lock NAME, runs the command, and releases the lock.")
    .argument("<name>", "the lock's name")
    .argument("<command...>", "after --: the command, with its arguments");
  withAccessOptions(command)
    .option("--timeout <time>", "how long to wait for the lock (default: as long as it takes)", duration("--timeout"))
    .addHelpText("after", EXPLANATION)
    .action(lock);
}

const EXPLANATION = `
Example:
  $ coterie node --config coterie.json --id 1 --clients 127.0.0.1:7300
  $ export COTERIE_ENDPOINTS=http://127.0.0.1:7300
  $ coterie lock nightly-backup --timeout 5s -- ./backup.sh /var/orders

The command finds COTERIE_NAME and COTERIE_TOKEN in its environment. The token grows from one holder to the next: let
the resource that the command writes to remember the highest token and reject lower ones. A majority of the members has
to run.

SIGINT, SIGTERM and SIGHUP are passed on to the command, and a second Ctrl-C kills it. When the lock is lost, the
command gets SIGTERM, and SIGKILL after --grace, in any case before another client can acquire the lock. The same
happens when this process is killed or paused. Processes that the command leaves in its process group are killed before
the lock is released.

Exit codes: the command's own, 128 + n after signal n; 75 timed out waiting for the lock, 76 the lock was lost and the
command stopped; 126 the command cannot be executed, 127 there is no such command; 1 failed; 2 wrong arguments, or not
allowed. While no member answers it waits, as long as --timeout allows.`;

async function lock(name: string, command: readonly string[], options: LockOptions): Promise<void> {
  const interruption = new Interruption();
  const access = new Access(options);
  let supervisor: Supervisor | null = null;
  try {
    supervisor = new Supervisor(); // It starts while we wait.
    const done = access.explainWaiting(`the lock ${name}`);
    const grant = await acquired(access, name, options, interruption).finally(done);
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
    await Promise.all([supervisor?.dismiss(), access.close()]);
  }
}

/** @throws ExitWith if the wait timed out, or a signal ended it. */
async function acquired(
  access: Access,
  name: string,
  { timeout }: LockOptions,
  interruption: Interruption,
): Promise<Grant> {
  const { signal } = interruption;
  try {
    return await access.acquire(name, timeout === undefined ? { signal } : { signal, timeoutMs: timeout });
  } catch (error) {
    if (interruption.received !== null) throw new ExitWith(codeAfter(interruption.received));
    if (!(error instanceof CoordinationError)) throw error;
    if (error.phase === "lost") throw new ExitWith(LOST, error.message); // Before the command started.
    if (error.code === "acquire-timeout" || error.code === "no-endpoint")
      throw new ExitWith(NOT_ACQUIRED, error.message);
    throw error;
  }
}

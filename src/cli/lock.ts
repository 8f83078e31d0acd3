/** `coterie lock NAME -- CMD`: a command that runs while it holds a lock of the cluster. */
import { Command } from "commander";
import type { Grant, Member, Mutex } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { duration } from "./duration.ts";
import { codeAfter, ExitWith } from "./exit-with.ts";
import { Interruption } from "./keeper/interruption.ts";
import { Keeper } from "./keeper/keeper.ts";
import { LOST, NOT_ACQUIRED, type Outcome, runKept } from "./keeper/kept-command.ts";
import { explainWaiting, joinForCommand, leave, type OwnMemberOptions, say, withMemberOptions } from "./own-member.ts";

interface LockOptions extends OwnMemberOptions {
  readonly algorithm?: string;
  readonly timeout?: number;
}

export function lockCommand(): Command {
  const command = new Command("lock")
    .summary("run a command while holding a lock of the cluster")
    .description("Becomes a member of the cluster, waits for the lock NAME, runs the command, and gives the lock back.")
    .argument("<name>", "the lock's name")
    .argument("<command...>", "after --, what is run, with its arguments");
  return withMemberOptions(command)
    .option("--timeout <time>", "how long to wait for the lock at most", duration("--timeout"))
    .option("--algorithm <name>", "a mutual exclusion of `coterie protocols` (default: elected-server)")
    .addHelpText("after", EXPLANATION)
    .action(lock);
}

const EXPLANATION = `
Example:
  $ cat coterie.json
  { "cluster": "orders", "dataDir": "journal-{id}",
    "members": { "1": "127.0.0.1:7101", "2": "127.0.0.1:7102", "3": "127.0.0.1:7103" } }
  $ coterie lock nightly-backup --id 1 --timeout 5s -- ./backup.sh /var/orders

The command finds COTERIE_NAME and COTERIE_TOKEN in its environment. The token grows from one holder to the next: let
what the command writes to remember the highest, and refuse lower ones. A majority of the members has to run.

SIGINT, SIGTERM and SIGHUP are passed on to the command, and a second Ctrl-C kills it. When the lock is lost the
command gets SIGTERM, and SIGKILL after --grace, in any case before anybody else can have the lock. So it does
when this process is killed or paused. What the command leaves in its process group is killed before the lock
is given back.

Exit codes: the command's own, 128 + n after signal n; 75 the lock was not to be had in time, 76 the lock was lost and
the command stopped; 126 the command cannot be executed, 127 there is none of that name; 1 the member failed,
2 wrong arguments, bad config, an address or a file it cannot use.`;

async function lock(name: string, command: readonly string[], options: LockOptions): Promise<void> {
  const interruption = new Interruption();
  const member = await joinForCommand(options);
  let keeper: Keeper | null = null;
  try {
    const mutex = member.mutex(name, options.algorithm === undefined ? {} : { algorithm: options.algorithm });
    keeper = new Keeper(); // It starts while we wait.
    const grant = await acquired(member, mutex, options, interruption);
    if (options.verbose === true) say(`holds ${name}, token ${grant.token}`);
    let outcome: Outcome;
    try {
      outcome = await runKept({ name, command, graceMs: options.grace }, grant, keeper, interruption);
    } finally {
      await grant.release();
    }
    if (outcome.isLost) throw new ExitWith(LOST, `the lock ${name} was lost, and the command stopped`);
    throw new ExitWith(outcome.exitCode);
  } finally {
    await Promise.all([keeper?.dismiss(), leave(member)]);
  }
}

/** @throws ExitWith if the lock is not to be had in time, or somebody asked for an end meanwhile. */
async function acquired(
  member: Member,
  mutex: Mutex,
  { timeout }: LockOptions,
  interruption: Interruption,
): Promise<Grant> {
  const done = explainWaiting(member, `the lock ${mutex.name}`);
  const { signal } = interruption;
  try {
    return await mutex.acquire(timeout === undefined ? { signal } : { signal, timeoutMs: timeout });
  } catch (error) {
    if (interruption.asked !== null) throw new ExitWith(codeAfter(interruption.asked));
    if (!(error instanceof CoordinationError)) throw error;
    if (error.phase === "lost") throw new ExitWith(LOST, error.message); // Before there was time to begin.
    if (error.code === "acquire-timeout") throw new ExitWith(NOT_ACQUIRED, error.message);
    throw error;
  } finally {
    done();
  }
}

/**
 * `coterie lock NAME -- CMD` and `coterie elect NAME -- CMD`: run a command while this client holds a lock or is the
 * leader.
 */
import { platform } from "node:process";
import { type Command, Option } from "commander";
import type { Client } from "../../client/client.ts";
import type { AcquireOptions, Grant, Leadership, LeadOptions } from "../../cluster/services/api.ts";
import { CoordinationError } from "../../cluster/services/coordination-error.ts";
import { requireName } from "../../cluster/services/instance-name.ts";
import { UsageError } from "../../core/errors.ts";
import { type Manual, withManual } from "../manual.ts";
import { duration } from "../options.ts";
import { codeAfter, ExitWith, say } from "../output.ts";
import {
  Interruption,
  LOST,
  NOT_ACQUIRED,
  type Outcome,
  runSupervised,
  type SupervisedCommand,
  Supervisor,
} from "../supervisor/supervisor.ts";
import { connectTo, type EndpointOptions, forCaller, placesFor, withEndpointOptions } from "./endpoints.ts";

const DEFAULT_GRACE_MS = 100;
/** How long to wait for an answer before printing a note. */
const EXPLAIN_AFTER_MS = 3_000;
/** The shortest possible timeout. */
const LEAST_MS = 1;

/** Without `--`, the options of the command to run would be parsed as Coterie's own. */
const USAGE = "[options] <name> -- <command...>";

/** The options that both commands have. */
export interface AccessOptions extends EndpointOptions {
  readonly grace: number;
  readonly verbose?: true;
}

/** Adds the options that both commands have. */
export const withAccessOptions = (command: Command): Command =>
  withEndpointOptions(command)
    .addOption(
      new Option("--grace <time>", "time between SIGTERM and SIGKILL when the command is stopped")
        .argParser(duration("--grace"))
        .default(DEFAULT_GRACE_MS, `${DEFAULT_GRACE_MS}ms`),
    )
    .option("--verbose", "report progress on stderr");

/** The connection used by one run of a command. */
export class Access {
  readonly #places: ReturnType<typeof placesFor>;
  #client: Client | null = null;

  /** @throws UsageError for invalid endpoints, unreadable files, and operating systems without process groups */
  constructor(options: EndpointOptions) {
    if (platform === "win32") {
      const sentence = "expected a system with process groups, which are needed to stop a command, got Windows";
      throw new UsageError("no-process-groups", `${sentence}: use join() or connect() in a program there`);
    }
    this.#places = placesFor(options);
  }

  async acquire(name: string, options: AcquireOptions): Promise<Grant> {
    requireName(name);
    const began = performance.now();
    const mutex = (await this.#connected(options)).mutex(name);
    const { timeoutMs } = options;
    const left = timeoutMs && Math.max(LEAST_MS, timeoutMs - (performance.now() - began));
    return mutex.acquire({ ...options, timeoutMs: left }).catch((error: unknown) => {
      throw withWholeTime(forCaller(error), left, timeoutMs);
    });
  }

  async lead(name: string, work: (leadership: Leadership) => Promise<void>, options: LeadOptions): Promise<void> {
    const election = (await this.#connected(options)).election(requireName(name));
    return election.lead(work, options).catch((error: unknown) => {
      throw forCaller(error);
    });
  }

  /** Prints a note if no member has answered after a while. Returns a function that cancels this. */
  explainWaiting(what: string): () => void {
    const { endpoints } = this.#places;
    const timer = setTimeout(() => {
      if ((this.#client?.status().member ?? null) !== null) return;
      say(
        `waiting for ${what}: no member that knows who the leader is answers at ${endpoints.join(", ")}; a majority must be running`,
      );
    }, EXPLAIN_AFTER_MS);
    return () => clearTimeout(timer);
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }

  async #connected({ timeoutMs = Number.POSITIVE_INFINITY, signal }: AcquireOptions): Promise<Client> {
    this.#client ??= await connectTo(this.#places, { timeoutMs, signal });
    return this.#client;
  }
}

/** In an error message, replaces the remaining time with the full timeout that the caller gave. */
function withWholeTime(error: unknown, left: number | undefined, timeoutMs: number | undefined): unknown {
  if (!(error instanceof CoordinationError) || left === undefined) return error;
  const message = error.message.replace(`within ${left} ms`, `within ${timeoutMs} ms`);
  return new CoordinationError(error.code, error.phase, message, { cause: error });
}

interface LockOptions extends AccessOptions {
  readonly timeout?: number;
}

export function declareLock(command: Command): void {
  command
    .description("Waits for a lock, runs a command while holding it, and releases it.")
    .argument("<name>", "name of the lock")
    .argument("<command...>", "the command with its arguments, after --")
    .usage(USAGE);
  withManual(withAccessOptions(command), lockManual)
    .option("--timeout <time>", "how long to wait for the lock (default: forever)", duration("--timeout"))
    .action(lock);
}

const SUPERVISION = `The command gets \`COTERIE_NAME\` and \`COTERIE_TOKEN\` in its environment. The fencing token grows with every new holder: make
the resource that the command writes to remember the highest token and reject lower ones. A majority of the members must be running.`;

const lockManual: Manual = {
  examples: [
    "coterie lock nightly-backup -- ./backup.sh /var/orders",
    "coterie lock nightly-backup --timeout 5s -- ./backup.sh /var/orders",
    "coterie lock deploy --grace 10s --verbose -- ./deploy.sh",
  ],
  exitCodes:
    "the exit code of the command, 128 + n after signal n; 75 timed out waiting, 76 the lock was lost; 126 the command cannot be executed, 127 there is no such command; 1 failed; 2 invalid arguments, or not allowed",
  details: `A member must serve clients: \`coterie node --config cluster.json --id 1 --clients 127.0.0.1:7300\`.

${SUPERVISION}

SIGINT, SIGTERM and SIGHUP are passed on to the command, and a second Ctrl-C kills it. If the lock is lost, the command gets SIGTERM
and, after \`--grace\`, SIGKILL, always before another client can acquire the lock. The same happens if this process is killed or
paused. Processes that the command leaves in its process group are killed before the lock is released.

If no member answers, \`coterie lock\` waits as long as \`--timeout\` allows.`,
};

async function lock(name: string, command: readonly string[], options: LockOptions): Promise<void> {
  const interruption = new Interruption();
  const access = new Access(options);
  let supervisor: Supervisor | null = null;
  try {
    supervisor = new Supervisor(); // The supervisor starts while this client waits for the lock.
    const done = access.explainWaiting(`the lock ${name}`);
    const grant = await acquired(access, name, options, interruption).finally(done);
    if (options.verbose === true) say(`holds ${name}, token ${grant.token}`);
    let outcome: Outcome;
    try {
      outcome = await runSupervised({ name, command, graceMs: options.grace }, grant, supervisor, interruption);
    } finally {
      await grant.release();
    }
    if (outcome.isLost) throw new ExitWith(LOST, `the lock ${name} was lost, and the command was stopped`);
    throw new ExitWith(outcome.exitCode);
  } finally {
    await Promise.all([supervisor?.dismiss(), access.close()]);
  }
}

/**
 * Acquires the lock.
 * @throws ExitWith if the wait timed out or was ended by a signal
 */
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
    // The grant was lost before the command started.
    if (error.phase === "lost") throw new ExitWith(LOST, error.message);
    if (error.code === "acquire-timeout" || error.code === "no-endpoint")
      throw new ExitWith(NOT_ACQUIRED, error.message);
    throw error;
  }
}

interface ElectOptions extends AccessOptions {
  readonly once?: true;
}

export function declareElect(command: Command): void {
  command
    .description("Campaigns in an election, and runs a command while leading.")
    .argument("<name>", "name of the election")
    .argument("<command...>", "the command with its arguments, after --")
    .usage(USAGE);
  withManual(withAccessOptions(command), electManual)
    .option("--once", "exit when leadership is lost, instead of campaigning again")
    .action(elect);
}

const electManual: Manual = {
  examples: [
    "coterie elect scheduler -- ./scheduler --verbose",
    "coterie elect scheduler --once --grace 5s -- ./scheduler",
    "coterie elect scheduler --endpoints http://10.0.0.1:7300 -- ./scheduler",
  ],
  exitCodes:
    "the exit code of the command, 128 + n after signal n; 76 leadership was lost, with --once; 126 the command cannot be executed, 127 there is no such command; 1 failed; 2 invalid arguments, or not allowed",
  details: `Start the same command on several machines; only one of them runs it at a time. A member must serve clients:
\`coterie node --config cluster.json --id 1 --clients 127.0.0.1:7300\`.

${SUPERVISION}

If leadership is lost, the command gets SIGTERM and, after \`--grace\`, SIGKILL, always before another client can lead. Then this client
campaigns again. The command is also stopped if this process is killed or paused. If the command ends by itself, this client steps
down and exits. Processes that the command leaves in its process group are killed first. SIGINT, SIGTERM and SIGHUP are passed on to
the command, and a second Ctrl-C kills it.

If no member answers, \`coterie elect\` waits indefinitely.`,
};

async function elect(name: string, command: readonly string[], options: ElectOptions): Promise<void> {
  const interruption = new Interruption();
  const access = new Access(options);
  try {
    throw new ExitWith(await campaign(access, { name, command, graceMs: options.grace }, options, interruption));
  } finally {
    await access.close();
  }
}

/** Thrown if the command must not run again, with or without leadership. */
class Over extends Error {
  constructor(readonly exitCode: number) {
    super();
  }
}

/** Campaigns, and runs the command each time this client is elected. Resolves with the exit code. */
async function campaign(
  access: Access,
  supervised: SupervisedCommand,
  { once, verbose }: ElectOptions,
  interruption: Interruption,
): Promise<number> {
  const { name } = supervised;
  let supervisor = new Supervisor(); // The supervisor starts while this client waits for leadership.
  const done = access.explainWaiting(`leadership of ${name}`);
  const work = async (leadership: Leadership): Promise<void> => {
    done();
    if (verbose === true) say(`leads ${name}, token ${leadership.token}`);
    const { exitCode, isLost } = await runSupervised(supervised, leadership, supervisor, interruption);
    if (interruption.received !== null || !isLost) throw new Over(exitCode);
    say(`leadership of ${name} was lost, and the command was stopped`);
    if (once === true) throw new Over(LOST);
    await supervisor.dismiss();
    supervisor = new Supervisor();
  };
  try {
    // Campaign only once the command can start. Otherwise this client would keep other candidates from leading.
    await supervisor.ready;
    // `lead` returns if the command was stopped in time and leadership turned out to be confirmed after all.
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

/** `coterie node`: runs a single member, so that a cluster can span several machines. */
import type { EventEmitter } from "node:events";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { namesProtocol } from "../../cluster/config.ts";
import { type Member as RunningMember, runMember } from "../../cluster/member.ts";
import { readConfig } from "../../cluster/protocol-config.ts";
import type { Member } from "../../cluster/services/api.ts";
import { CoordinationError } from "../../cluster/services/coordination-error.ts";
import { UsageError } from "../../core/errors.ts";
import { behaviour } from "../../experiment/experiment.ts";
import { type BehaviourName, behaviours } from "../../protocols/byzantine.ts";
import { createLog, type Log } from "../../runtime/log.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { type Manual, withManual } from "../manual.ts";
import { MAX_SEED, seed, wholeNumber } from "../options.ts";
import { ExitWith } from "../output.ts";
import { blameTheCaller, joinCluster, requireMember } from "./own-member.ts";

const STOP_WITHIN_MS = 1_000;

interface NodeOptions {
  readonly config: string;
  readonly id: number;
  readonly data?: string;
  readonly existing?: true;
  readonly clients?: string;
  readonly clientRoles?: string;
  readonly clientUrl?: string;
  readonly etcd?: string;
  readonly faultInjector?: true;
  readonly logJson?: true;
  readonly supervised?: true;
  readonly byzantine?: BehaviourName;
  readonly seed?: number;
}

export function declare(command: Command): void {
  withManual(command, manual)
    .description(
      "Runs one member of a cluster until SIGTERM or Ctrl-C. Prints one line of JSON on stdout once the member is running.",
    )
    .requiredOption("--config <file>", "config file of the cluster, the same for every member")
    .requiredOption(
      "--id <n>",
      "id of this member in the config",
      wholeNumber("--id", 0, Number.MAX_SAFE_INTEGER, "a member's id"),
    )
    .option("--data <dir>", "folder of the journal; overrides dataDir in the config")
    .option("--existing", "join a running cluster that lists this member")
    .option("--clients <host:port>", "address at which to serve clients over HTTP and WebSocket")
    .option("--client-roles <file>", "with --clients: roles file; required unless the address is on loopback")
    .option("--client-url <url>", "with --clients: URL at which clients reach this member, if it differs")
    .option(
      "--etcd <port>",
      "port on loopback, or host:port, at which to serve etcd's v3 API; on a network, callers need certificates of the config's authority",
    )
    .option("--fault-injector", "let PUT /faults drop and delay this member's messages and cut its links")
    .option("--byzantine <how>", `run as a Byzantine member, for tests: ${behaviours.join(", ")}`, (text) =>
      behaviour(text, "--byzantine"),
    )
    .option("--seed <n>", "with --byzantine: seed for the member's choices (default: random)", seed)
    .option("--log-json", "write the log on stderr as JSON lines")
    .option("--supervised", "stop when standard input ends, for example when the parent process exits")
    .action(run);
}

const manual: Manual = {
  examples: [
    "coterie node --config cluster.json --id 1",
    "coterie node --config cluster.json --id 1 --clients 127.0.0.1:7300",
    "coterie node --config cluster.json --id 4 --existing",
    "coterie node --config cluster.json --id 1 --etcd 2379",
  ],
  exitCodes:
    "0 stopped by a signal; 1 the member failed, or cannot listen on an address; 2 invalid arguments, config or files",
  details: `A config file without \`protocol\` runs a member that serves elections, locks, channels and shared state to programs:

\`\`\`json
{ "cluster": "demo", "dataDir": "journal-{id}",
  "members": {
    "1": { "address": "127.0.0.1:7401", "admin": "127.0.0.1:7501" },
    "2": { "address": "127.0.0.1:7402", "admin": "127.0.0.1:7502" },
    "3": { "address": "127.0.0.1:7403", "admin": "127.0.0.1:7503" } } }
\`\`\`

With \`"protocol": "bully"\`, the members run only this protocol. [Configuration](configuration.md) describes every field.

Once the member is running, stdout has one line:

\`\`\`json
{ "event": "listening", "id", "pid", "address", "admin", "clients"?, "etcd"? }
\`\`\`

The log goes to stderr. With \`--log-json\`, each line is \`{ "at", "level", "text", "event", … }\`: see [log events](log-events.md).`,
};

async function run(options: NodeOptions): Promise<void> {
  const { ended, ignore } = whenToStop(options.supervised === true);
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {}); // It may reject before the race below.
  const member = await startedBefore(ended, started(options, fail)).catch((error: unknown) => {
    ignore();
    return blameTheCaller(unreported(error));
  });
  if (member === null) {
    process.stdin.destroy();
    return;
  }
  const { address, admin, clients, etcd } = member;
  const served = { ...(typeof clients === "string" && { clients }), ...(typeof etcd === "string" && { etcd }) };
  const listening = { event: "listening", id: options.id, pid: process.pid, address, admin, ...served };
  process.stdout.write(`${JSON.stringify(listening)}\n`);
  try {
    await Promise.race([ended, failed]);
  } catch (error) {
    throw unreported(error);
  } finally {
    await soon(member.stop());
    process.stdin.destroy();
  }
}

/** Removes the message from an error that the member's log has already reported. */
export function unreported(error: unknown): unknown {
  const isReported =
    error instanceof CoordinationError && (error.code === "member-failed" || error.code === "member-removed");
  return isReported ? new ExitWith(1) : error;
}

/**
 * Resolves with the started member, or with null if a signal arrived first. If the member finishes starting after the
 * signal, it is stopped.
 */
export async function startedBefore<M extends Pick<RunningMember, "stop">>(
  ended: Promise<void>,
  starting: Promise<M>,
): Promise<M | null> {
  const member = await Promise.race([starting, ended.then(() => null)]);
  if (member === null)
    await soon(
      starting.then(
        (late) => late.stop(),
        () => {}, // If the start failed, there is nothing to stop.
      ),
    );
  return member;
}

const soon = (stopping: Promise<void>): Promise<void> =>
  Promise.race([stopping, sleep(STOP_WITHIN_MS, undefined, { ref: false })]);

/** Runs the protocol given in the config. If there is none, runs a member that serves elections and locks by name. */
async function started(
  options: NodeOptions,
  onFatal: (error: Error) => void,
): Promise<
  Pick<Member, "admin"> & Partial<Pick<Member, "clients" | "etcd">> & Pick<RunningMember, "address" | "stop">
> {
  const log = logTo(process.stderr, options.logJson === true);
  if (options.seed !== undefined && options.byzantine === undefined)
    throw new UsageError(
      "bad-argument",
      "expected --byzantine with --seed, because only a Byzantine member uses a seed",
    );
  for (const [flag, value] of [
    ["--client-roles", options.clientRoles],
    ["--client-url", options.clientUrl],
  ] as const)
    if (value !== undefined && options.clients === undefined)
      throw new UsageError("bad-argument", `expected --clients with ${flag}`);
  if (!namesProtocol(options.config)) {
    if (options.byzantine !== undefined)
      throw new UsageError(
        "bad-argument",
        "expected a config with a protocol for --byzantine: members that serve elections and locks by name cannot be Byzantine",
      );
    const member = await joinCluster(options, log);
    member.signal.addEventListener("abort", () => onFatal(member.signal.reason as Error));
    const { admin, clients, etcd } = member;
    return { address: member.status().address, admin, clients, etcd, stop: () => member.leave() };
  }
  if (options.existing === true)
    throw new UsageError(
      "bad-argument",
      "expected a config without a protocol for --existing: the members of a protocol are fixed by its config",
    );
  if (options.clients !== undefined)
    throw new UsageError(
      "bad-argument",
      "expected a config without a protocol for --clients: only members that serve elections and locks by name serve clients",
    );
  if (options.etcd !== undefined)
    throw new UsageError(
      "bad-argument",
      "expected a config without a protocol for --etcd: only members that serve elections and locks by name serve etcd's API",
    );
  const read = readConfig(options.config);
  const config = options.data === undefined ? read : { ...read, dataDir: resolve(options.data) };
  requireMember(config.members, options);
  const liar =
    options.byzantine === undefined
      ? {}
      : { liar: { behaviour: options.byzantine, seed: options.seed ?? realPlatform.random.natural(MAX_SEED + 1) } };
  return runMember(config, options.id, { log, faultInjector: options.faultInjector === true, onFatal, ...liar });
}

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Listens for signals. `ended` resolves at the first signal, and `ignore` removes the listeners. */
export function whenToStop(
  supervised: boolean,
  signals: EventEmitter = process,
): { readonly ended: Promise<void>; ignore(): void } {
  let stop = (): void => {};
  const ended = new Promise<void>((done) => {
    stop = () => done(); // This discards the signal's name.
  });
  for (const signal of SIGNALS) signals.once(signal, stop);
  if (supervised) process.stdin.on("error", stop).on("end", stop).on("close", stop).resume();
  const ignore = (): void => {
    for (const signal of SIGNALS) signals.off(signal, stop);
  };
  return { ended, ignore };
}

function logTo(stream: NodeJS.WriteStream, asJson: boolean): Log {
  return createLog((level, text, fields) => {
    const plain = level === "info" ? text : `${level}: ${text}`;
    stream.write(`${asJson ? JSON.stringify({ at: new Date().toISOString(), level, text, ...fields }) : plain}\n`);
  });
}

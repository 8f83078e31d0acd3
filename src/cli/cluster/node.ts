/** `coterie node`: one member alone, so that a cluster can span machines. */
import type { EventEmitter } from "node:events";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { namesProtocol } from "../../cluster/config.ts";
import { type Member as RunningMember, runMember } from "../../cluster/member.ts";
import { readConfig } from "../../cluster/protocol-config.ts";
import type { Member } from "../../cluster/services/api.ts";
import { UsageError } from "../../core/errors.ts";
import { behaviour } from "../../experiment/experiment.ts";
import { type BehaviourName, behaviours } from "../../protocols/byzantine.ts";
import { docsPage } from "../../runtime/docs-page.ts";
import { createLog, type Log } from "../../runtime/log.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { MAX_SEED, seed, wholeNumber } from "../options.ts";
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
  command
    .description(
      "Runs one member of a cluster until SIGTERM or Ctrl-C. When it runs, it says so in one line of JSON on stdout.",
    )
    .requiredOption("--config <file>", "the cluster's config file, the same for every member")
    .requiredOption(
      "--id <n>",
      "which member of the config this is",
      wholeNumber("--id", 0, Number.MAX_SAFE_INTEGER, "a member's id"),
    )
    .option("--data <dir>", "where this member keeps its journal, if what runs keeps one")
    .option("--existing", "join a cluster that others have founded, and that has this member on its list")
    .option("--clients <host:port>", "serve clients that are no members there: HTTP and WebSocket")
    .option("--client-roles <file>", "with --clients: a file that says who may do what; off loopback it must be")
    .option("--client-url <url>", "with --clients: by which clients reach it, if that is not where it listens")
    .option(
      "--etcd <port>",
      "serve etcd's API v3 there, for etcdctl and etcd's client libraries: a port or host:port, on loopback",
    )
    .option("--fault-injector", "let PUT /faults on the admin pages drop, delay and cut this member's messages")
    .option("--byzantine <how>", `lie, for tests of the others: ${behaviours.join(", ")}`, (text) =>
      behaviour(text, "--byzantine"),
    )
    .option("--seed <n>", "with --byzantine: equal seeds choose alike (default: any)", seed)
    .option("--log-json", "write the log, on stderr, as JSON lines { at, level, text, event, … }")
    .option("--supervised", "stop when standard input ends: the process that started this member holds its other end")
    .addHelpText("after", EXAMPLE)
    .action(run);
}

const EXAMPLE = `
Example:
  $ cat demo.json
  { "cluster": "demo", "protocol": "bully",
    "members": {
      "0": { "address": "127.0.0.1:7401", "admin": "127.0.0.1:7501" },
      "1": { "address": "127.0.0.1:7402", "admin": "127.0.0.1:7502" } } }
  $ coterie node --config demo.json --id 0
  {"event":"listening","id":0,"pid":4711,"address":"127.0.0.1:7401",…}

Without "protocol", the member serves elections, locks, channels and shared data to programs that join().
Every field of the config file is described in ${docsPage("operate/cluster.md")}

Exit codes: 0 stopped as asked; 1 the member failed; 2 wrong arguments, a bad config, or an address or file that cannot be used.`;

async function run(options: NodeOptions): Promise<void> {
  const { ended, ignore } = whenToStop(options.supervised === true);
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {}); // It may fail before anybody waits for that.
  const member = await startedBefore(ended, started(options, fail)).catch((error: unknown) => {
    ignore();
    return blameTheCaller(error);
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
  } finally {
    await soon(member.stop());
    process.stdin.destroy();
  }
}

/** What has been started, or null if it is to stop before that: if it comes through soon, it is stopped in order. */
export async function startedBefore<M extends Pick<RunningMember, "stop">>(
  ended: Promise<void>,
  starting: Promise<M>,
): Promise<M | null> {
  const member = await Promise.race([starting, ended.then(() => null)]);
  if (member === null)
    await soon(
      starting.then(
        (late) => late.stop(),
        () => {}, // What failed has nothing to stop.
      ),
    );
  return member;
}

const soon = (stopping: Promise<void>): Promise<void> =>
  Promise.race([stopping, sleep(STOP_WITHIN_MS, undefined, { ref: false })]);

/** Runs the config's protocol or, where it names none, elections and locks by name. */
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
      "expected --seed to come with --byzantine: an honest member has no use for it",
    );
  for (const [flag, value] of [
    ["--client-roles", options.clientRoles],
    ["--client-url", options.clientUrl],
  ] as const)
    if (value !== undefined && options.clients === undefined)
      throw new UsageError("bad-argument", `expected ${flag} to come with --clients`);
  if (!namesProtocol(options.config)) {
    if (options.byzantine !== undefined)
      throw new UsageError(
        "bad-argument",
        "expected --byzantine to come with a config that names a protocol: members that serve elections and locks by name do not lie",
      );
    const member = await joinCluster(options, log);
    member.signal.addEventListener("abort", () => onFatal(member.signal.reason as Error));
    const { admin, clients, etcd } = member;
    return { address: member.status().address, admin, clients, etcd, stop: () => member.leave() };
  }
  if (options.existing === true)
    throw new UsageError(
      "bad-argument",
      "expected --existing to come with a config that names no protocol: who runs a protocol is fixed by its config",
    );
  if (options.clients !== undefined)
    throw new UsageError(
      "bad-argument",
      "expected --clients to come with a config that names no protocol: only members that serve elections and locks by name serve clients",
    );
  if (options.etcd !== undefined)
    throw new UsageError(
      "bad-argument",
      "expected --etcd to come with a config that names no protocol: only members that serve elections and locks by name serve etcd's API",
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

/** `ignore`: nobody waits for the end any more. */
export function whenToStop(
  supervised: boolean,
  signals: EventEmitter = process,
): { readonly ended: Promise<void>; ignore(): void } {
  let stop = (): void => {};
  const ended = new Promise<void>((done) => {
    stop = () => done(); // Not with the signal's name.
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

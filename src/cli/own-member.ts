/** Members of a cluster that serves elections and locks by name: what says which one, and how it joins. */
import { platform } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { readServiceConfig } from "../cluster/config.ts";
import { join } from "../cluster/join.ts";
import type { Member } from "../cluster/services/api.ts";
import { UsageError, unexpected } from "../core/errors.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import { createLog, type Log } from "../runtime/log.ts";
import { wholeNumber } from "./arguments.ts";
import { isForTheCaller } from "./callers-error.ts";
import { duration } from "./duration.ts";

import { errorLine } from "./paragraph.ts";

const DEFAULT_CONFIG = "coterie.json";
const DEFAULT_GRACE_MS = 100;
const LEAVE_WITHIN_MS = 1_000;
/** Who waits longer than this is told why, if it is for want of a majority. */
const SAY_AFTER_MS = 3_000;

/** Which member of which cluster. */
interface Place {
  readonly config: string;
  readonly id: number;
  /** Instead of the config's `dataDir`. */
  readonly data?: string;
  readonly faultGate?: true;
}

export interface OwnMemberOptions extends Place {
  readonly grace: number;
  readonly verbose?: true;
}

export function withMemberOptions(command: Command): Command {
  return command
    .option("--config <file>", "the cluster's config file, the same for every member", DEFAULT_CONFIG)
    .requiredOption(
      "--id <n>",
      "which member of the config this is",
      wholeNumber("--id", 0, Number.MAX_SAFE_INTEGER, "a member's id"),
    )
    .option("--data <dir>", "this member's journal (default: the config's dataDir)")
    .option(
      "--grace <time>",
      "from SIGTERM to SIGKILL, where the command is stopped (default: 100ms)",
      duration("--grace"),
      DEFAULT_GRACE_MS,
    )
    .option("--fault-gate", "let PUT /faults on the admin pages drop, delay and cut this member's messages")
    .option("--verbose", "say on stderr what happens");
}

/** What there is to say is said on stderr: stdout is the command's. */
export const say = (text: string): void => void process.stderr.write(`coterie: ${errorLine(text)}\n`);

/** Joins with no other purpose than a command. @throws UsageError as `joinCluster` does, and where it cannot be kept */
export function joinForCommand(options: OwnMemberOptions): Promise<Member> {
  if (platform === "win32") {
    const sentence =
      "expected a system with process groups, by which a command is stopped as a whole: Windows has none";
    throw new UsageError("no-process-groups", `${sentence}; from a program, join() works there`);
  }
  const log = createLog((level, text) => {
    if (level !== "info" || options.verbose === true) say(text);
  });
  return joinCluster(options, log);
}

/** Joins as a config file says. @throws UsageError for a config, an id, an address or a folder that cannot be used */
export async function joinCluster(options: Place, log: Log): Promise<Member> {
  const { cluster, members, tls, limits, dataDir } = readServiceConfig(options.config);
  const { admin } = requireMember(members, options);
  const addresses = Object.entries(members).map(([id, { address }]) => [id, formatHostPort(address)]);
  const folder = (options.data ?? dataDir)?.replaceAll("{id}", String(options.id));
  return join({
    id: options.id,
    members: Object.fromEntries(addresses),
    cluster,
    tls: tls ?? "off",
    limits,
    ...(folder === undefined ? {} : { dataDir: folder }),
    ...(admin.port === 0 ? {} : { admin: formatHostPort(admin) }),
    faultGate: options.faultGate === true,
    log,
  }).catch((error: unknown) => {
    throw isForTheCaller(error) ? new UsageError(error.code, error.message) : error;
  });
}

/** @throws UsageError if the config has no such member. */
export function requireMember<T>(members: Readonly<Record<number, T>>, { id, config }: Place): T {
  const member = members[id];
  if (member !== undefined) return member;
  const known = Object.keys(members).join(", ");
  throw new UsageError("unknown-node", unexpected("--id", `one of the members ${known} in ${config}`, id));
}

/** Says why there is nothing to see for a while. Returns what ends that. */
export function explainWaiting(member: Member, name: string): () => void {
  const timer = setTimeout(() => {
    const { hasQuorum, peers } = member.status();
    if (hasQuorum) return;
    const reachable = 1 + peers.filter(({ suspected }) => !suspected).length;
    say(
      `waiting for ${name}: it takes a majority of the members, and ${reachable} of ${peers.length + 1} can be heard of`,
    );
  }, SAY_AFTER_MS);
  return () => clearTimeout(timer);
}

/** Leaves the cluster, in good order if that can be had soon. */
export async function leave(member: Member): Promise<void> {
  await Promise.race([member.leave(), sleep(LEAVE_WITHIN_MS, undefined, { ref: false })]);
}

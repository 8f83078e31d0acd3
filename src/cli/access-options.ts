/** What `coterie lock` and `coterie elect` are told about the cluster: which member they are, or which one they go through. */

import { env, platform } from "node:process";
import { type Command, Option } from "commander";
import { UsageError } from "../core/errors.ts";
import { docsPage } from "../runtime/docs-page.ts";
import { createLog } from "../runtime/log.ts";
import type { Access } from "./access.ts";
import { adminUrl, wholeNumber } from "./arguments.ts";
import { duration } from "./duration.ts";
import { type EndpointOptions, namesEndpoints, withEndpointOptions } from "./endpoints.ts";
import type { Place } from "./own-member.ts";
import { say } from "./say.ts";

const DEFAULT_CONFIG = "coterie.json";
const DEFAULT_GRACE_MS = 100;
/** Names the member where nobody says otherwise. */
const MEMBER_VARIABLE = "COTERIE_MEMBER";
const MEMBER_EXAMPLE = "http://127.0.0.1:7501";
const WAYS = [
  "--endpoints URLS (or $COTERIE_ENDPOINTS), where members serve clients",
  `or --member URL (or $${MEMBER_VARIABLE}), a member on this machine`,
  "or --id N, to be a member",
].join("; ");

export interface AccessOptions extends Partial<Omit<Place, "clients" | "clientRoles" | "clientUrl">>, EndpointOptions {
  readonly member?: string;
  readonly grace: number;
  readonly verbose?: true;
}

export function withAccessOptions(command: Command): Command {
  return withEndpointOptions(command)
    .option(
      "--member <url>",
      "a member that runs on this machine, by its admin address (default: $COTERIE_MEMBER)",
      adminUrl("--member", MEMBER_EXAMPLE),
    )
    .option(
      "--id <n>",
      "which member of the config this is, instead",
      wholeNumber("--id", 0, Number.MAX_SAFE_INTEGER, "a member's id"),
    )
    .option("--config <file>", `the cluster's config file, the same for every member (default: ${DEFAULT_CONFIG})`)
    .option("--data <dir>", "this member's journal (default: the config's dataDir)")
    .addOption(
      new Option("--grace <time>", "from SIGTERM to SIGKILL, where the command is stopped")
        .argParser(duration("--grace"))
        .default(DEFAULT_GRACE_MS, `${DEFAULT_GRACE_MS}ms`),
    )
    .option("--fault-injector", "let PUT /faults on the admin pages drop, delay and cut this member's messages")
    .option("--verbose", "say on stderr what happens");
}

/**
 * What is given counts before the environment, and there a member of this machine before those elsewhere.
 *
 * @throws UsageError as `joinCluster` does, for options that do not go together, and where a command cannot be kept
 */
export async function accessFor(options: AccessOptions): Promise<Access> {
  if (platform === "win32") {
    const sentence =
      "expected a system with process groups, by which a command is stopped as a whole: Windows has none";
    throw new UsageError("no-process-groups", `${sentence}; from a program, join() works there`);
  }
  const { id, config = DEFAULT_CONFIG } = options;
  if (options.endpoints !== undefined) return asNoMember(options);
  const member = memberOf(options);
  if (member !== null) return (await import("./through-member.ts")).throughMember(member);
  if (id === undefined) {
    if (ownOption(options) === undefined && namesEndpoints()) return asNoMember(options);
    throw new UsageError("bad-argument", `expected ${WAYS}: ${docsPage("lock-and-elect.md")}`);
  }
  const log = createLog((level, text) => {
    if (level !== "info" || options.verbose === true) say(text);
  });
  const { accessAs, joinCluster } = await import("./own-member.ts");
  return accessAs(await joinCluster({ ...options, id, config }, log));
}

/** As a client that is no member. */
async function asNoMember(options: AccessOptions): Promise<Access> {
  const own = options.member === undefined ? ownOption(options) : "member";
  if (own !== undefined) throw new UsageError("bad-argument", `expected --endpoints or --${own}, got both`);
  return (await import("./through-endpoints.ts")).throughEndpoints(options);
}

/** Null: this process is to be a member itself, or a client. */
function memberOf(options: AccessOptions): string | null {
  const { member } = options;
  const own = ownOption(options);
  if (member === undefined) {
    const named = env[MEMBER_VARIABLE] ?? "";
    return own !== undefined || named === "" ? null : adminUrl(MEMBER_VARIABLE, MEMBER_EXAMPLE)(named);
  }
  if (own === undefined) return member;
  throw new UsageError("bad-argument", `expected --member or --${own}, got both: a member that runs has its own`);
}

/** The first option that only a process has which is a member itself. */
function ownOption(options: AccessOptions): string | undefined {
  const own = (["id", "config", "data", "faultInjector"] as const).find((name) => options[name] !== undefined);
  return own === "faultInjector" ? "fault-injector" : own;
}

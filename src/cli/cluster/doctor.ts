/** `coterie doctor`: what may be wrong with a cluster, as seen from this machine. */
import type { Command } from "commander";
import { readServiceConfig } from "../../cluster/config.ts";
import { examine } from "../../cluster/doctor.ts";
import type { Finding } from "../../cluster/finding.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import { wholeNumber } from "../options.ts";
import { type Invocation, print, type Section, styled } from "../output.ts";
import { requireMember } from "./own-member.ts";

interface Options {
  readonly config: string;
  readonly id?: number;
  readonly data?: string;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Looks for what may be wrong with a cluster of members that serve elections, locks and shared state.")
    .requiredOption("--config <file>", "the cluster's config file")
    .option(
      "--id <n>",
      "the member of this machine: its certificate, folder and processor are looked at, too",
      wholeNumber("--id", 0, Number.MAX_SAFE_INTEGER, "a member's id"),
    )
    .option("--data <dir>", "with --id: its folder, if the config does not say it")
    .option("--json", "print what was found as JSON lines")
    .addHelpText("after", EXPLANATION)
    .action((options: Options) => doctor(options, invocation));
}

const EXPLANATION = `
Example:
  $ coterie doctor --config cluster.json --id 1
  ok       members            3 members: 1 may fail
  ok       member 1           10.0.0.1:7100 takes connections
  problem  member 2           10.0.0.2:7100 takes no connections (ECONNREFUSED)
           → start it: coterie node --id 2; or a firewall is between
  …
It checks the number of members, their names, addresses and certificates, and asks those that have an admin address. With
--id it also checks the member's folder: free space, the time that fdatasync takes, and whether the processor keeps up. No
member is changed; the folder is created if it is missing, and a file .doctor in it is written and removed.

With --json, one line per check: { "check", "verdict": "ok" | "warning" | "problem", "found", "advice" }
Exit codes: 0 no problem; 1 a problem; 2 wrong arguments or config.`;

async function doctor({ config: file, id, data, json }: Options, { stdout }: Invocation): Promise<void> {
  if (data !== undefined && id === undefined)
    throw new UsageError("bad-argument", "expected --data to come with --id: it is that member's folder");
  const config = readServiceConfig(file);
  if (id !== undefined) requireMember(config.members, { config: file, id });
  const folder = id === undefined ? null : ((data ?? config.dataDir)?.replaceAll("{id}", String(id)) ?? null);
  let problems = 0;
  for await (const finding of examine({ config, id: id ?? null, folder })) {
    problems += finding.verdict === "problem" ? 1 : 0;
    print({ json: finding, sections: [linesOf(finding)] }, { json: json === true }, stdout);
  }
  if (problems > 0) throw new EnvironmentError("problems", `${problems} ${problems === 1 ? "problem" : "problems"}`);
}

const colours = { ok: "green", warning: "yellow", problem: "red" } as const;
const VERDICT_WIDTH = 7;
const CHECK_WIDTH = 17;

function linesOf({ check, verdict, found, advice }: Finding): Section {
  const line = `${styled(colours[verdict], verdict.padEnd(VERDICT_WIDTH))}  ${check.padEnd(CHECK_WIDTH)}  ${found}`;
  return advice === "" ? [line] : [line, `${" ".repeat(VERDICT_WIDTH)}  → ${advice}`];
}

/** `coterie doctor`: looks for problems in a cluster from this machine. */
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { readServiceConfig } from "../../cluster/config.ts";
import { examine, examineMachine } from "../../cluster/doctor.ts";
import { type Finding, ok, warning } from "../../cluster/finding.ts";
import { surveyOf } from "../../cluster/survey.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import { type Manual, withManual } from "../manual.ts";
import { DEFAULT_ADMIN, wholeNumber } from "../options.ts";
import { type Invocation, print, type Section, styled } from "../output.ts";
import { requireMember } from "./own-member.ts";

const DEFAULT_CONFIG = "cluster.json";

interface Options {
  readonly config?: string;
  readonly id?: number;
  readonly data?: string;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  withManual(command, manual)
    .description("Checks a cluster and this machine for problems.")
    .option("--config <file>", `config file of the cluster (default: ${DEFAULT_CONFIG}, if it exists)`)
    .option(
      "--id <n>",
      "member on this machine; also checks its certificate, folder and CPU",
      wholeNumber("--id", 0, Number.MAX_SAFE_INTEGER, "a member's id"),
    )
    .option("--data <dir>", "folder of the member's journal; overrides dataDir in the config")
    .option("--json", "print the findings as JSON lines")
    .action((options: Options) => doctor(options, invocation));
}

const manual: Manual = {
  examples: [
    "coterie doctor",
    `coterie doctor --config cluster.json --id 1
ok       members            3 members: 1 may fail
ok       member 1           10.0.0.1:7100 accepts connections
problem  member 2           10.0.0.2:7100 does not accept connections (ECONNREFUSED)
         → start it: coterie node --id 2; or check for a firewall
…`,
    "coterie doctor --config cluster.json --json",
  ],
  exitCodes: "0 no problem found; 1 at least one problem found; 2 invalid arguments or config",
  details: `With a config, the command checks the number of members and their names, addresses and certificates, and queries members that have an
admin address. With \`--id\`, it also checks the member's folder (free space, duration of fdatasync) and how long processes wait for the
CPU.

Without a config, the command checks this machine (the current folder or \`--data\`, and the CPU), and looks for a cluster started with
\`coterie up\`.

The command does not change any member. It creates the folder if it is missing, and writes and removes a file \`.doctor\` in it.

With \`--json\`, one line per check: \`{ "check", "verdict": "ok" | "warning" | "problem", "found", "advice" }\`.`,
};

async function doctor(options: Options, { stdout }: Invocation): Promise<void> {
  let problems = 0;
  for await (const finding of findings(options)) {
    problems += finding.verdict === "problem" ? 1 : 0;
    print({ json: finding, sections: [linesOf(finding)] }, { json: options.json === true }, stdout);
  }
  if (problems > 0) throw new EnvironmentError("problems", `${problems} ${problems === 1 ? "problem" : "problems"}`);
}

function findings({ config: given, id, data }: Options): AsyncIterable<Finding> {
  const file = given ?? (existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : undefined);
  if (file === undefined) {
    if (id !== undefined)
      throw new UsageError(
        "bad-argument",
        `expected --config with --id, because ${DEFAULT_CONFIG} does not exist here`,
      );
    return withoutConfig(data ?? ".");
  }
  if (data !== undefined && id === undefined)
    throw new UsageError("bad-argument", "expected --id with --data, which is the folder of that member");
  const config = readServiceConfig(file);
  if (id !== undefined) requireMember(config.members, { config: file, id });
  const folder = id === undefined ? null : ((data ?? config.dataDir)?.replaceAll("{id}", String(id)) ?? null);
  return examine({ config, id: id ?? null, folder });
}

async function* withoutConfig(folder: string): AsyncGenerator<Finding> {
  yield* examineMachine(folder);
  yield await surveyOf(DEFAULT_ADMIN).then(
    ({ cluster, nodes }) =>
      ok("cluster", `cluster ${cluster}, started with \`coterie up\`, has ${nodes.length} members: see coterie status`),
    () =>
      warning(
        "cluster",
        "no config, and no cluster started with `coterie up`",
        "specify the config file with --config",
      ),
  );
}

const colours = { ok: "green", warning: "yellow", problem: "red" } as const;
const VERDICT_WIDTH = 7;
const CHECK_WIDTH = 17;

function linesOf({ check, verdict, found, advice }: Finding): Section {
  const line = `${styled(colours[verdict], verdict.padEnd(VERDICT_WIDTH))}  ${check.padEnd(CHECK_WIDTH)}  ${found}`;
  return advice === "" ? [line] : [line, `${" ".repeat(VERDICT_WIDTH)}  → ${advice}`];
}

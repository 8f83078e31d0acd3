/** `coterie status`: the members of a cluster and its leader. */
import type { Command } from "commander";
import { namesProtocol, readServiceConfig } from "../../cluster/config.ts";
import { type ServiceNode, type ServicesStatus, servicesStatus } from "../../cluster/services-survey.ts";
import {
  disagreement,
  knowOfNone,
  PATIENCE_MS,
  type Survey,
  type SurveyedNode,
  surveyMembers,
  surveyOf,
} from "../../cluster/survey.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Refused } from "../../runtime/transport/identity.ts";
import { type Manual, withManual } from "../manual.ts";
import { adminUrl, DEFAULT_ADMIN } from "../options.ts";
import { type Invocation, list, print, type Report, type Section, styled } from "../output.ts";

interface StatusOptions {
  readonly admin?: string;
  readonly config?: string;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  withManual(command, manual)
    .description("Shows the members of a cluster, its leader, and the locks and channels in use.")
    .option("--admin <url>", `address of \`coterie up\` (default: ${DEFAULT_ADMIN})`, adminUrl("--admin"))
    .option("--config <file>", "ask the members of this config file instead, at their admin addresses")
    .option("--json", "print the answer as JSON")
    .action((options: StatusOptions) => status(options, invocation));
}

const manual: Manual = {
  examples: [
    `coterie status
NODE  PID   STATE    ROLE      LEADER  TERM
0     4711  running  follower  1       -
1     4712  running  leader    1       -`,
    `coterie status --config cluster.json
NODE  PID   STATE    LEADER  MAJORITY
1     4711  running  1       yes
2     4712  running  1       yes
3     4713  running  1       yes

KIND      NAME            HOLDER  TOKEN  WAITING
election  nightly-report  1       5      0
lock      nightly-backup  1       6      2

CHANNEL  VIEW  MEMBERS  WAITING
room     1     1, 2, 3  0`,
    "coterie status --admin http://127.0.0.1:7600 --json",
  ],
  exitCodes: "0 ok; 1 no member answers, or the running members know no leader or different ones; 2 wrong arguments",
  details: `With \`--config\`, a member is asked only if the config gives it an admin address:

\`\`\`json
"members": { "0": { "address": "127.0.0.1:7401", "admin": "127.0.0.1:7501" }, … }
\`\`\`

The first form of the table is for a config with a protocol, the second for members that serve elections, locks and channels. Members
that refuse each other's links are listed below the tables, with the [reason](errors.md#links-between-members).

With \`--json\`, a cluster with a protocol prints

\`\`\`json
{ "cluster", "protocol", "hasLeaders", "nodes": [{ "id", "pid", "alive", "leader", "term", "role", "process",
  "address", "admin", "refusals": [{ "node", "reason", "detail", "members" }] }] }
\`\`\`

\`admin\` is null if the config has none. Without a protocol, a node has \`id\`, \`pid\`, \`alive\`, \`leader\`, \`hasQuorum\`, \`address\`, \`admin\`
and \`refusals\`, and there are \`"instances": [{ "kind", "name", "holder", "token", "waiting" }]\`. A channel also has
\`"channel": { "view", "members" }\`.`,
};

async function status(options: StatusOptions, { stdout, stderr }: Invocation): Promise<void> {
  if (options.admin !== undefined && options.config !== undefined)
    throw new UsageError("bad-argument", "expected --admin or --config, got both");
  const { hasLeaders, nodes, report, what } = await asked(options);
  print(report, options, stdout);
  const alive = nodes.filter((node) => node.alive);
  const hidden = nodes.filter(({ admin }) => admin === null).map(({ id }) => id);
  const hint = `the config has no admin address for ${memberOrMembers(hidden)}: add one to ask each member`;
  if (alive.length === 0) {
    const why = hidden.length === 0 ? "is the cluster running?" : hint;
    throw new EnvironmentError("nobody-alive", `no member answers: ${why}`);
  }
  if (hidden.length > 0) stderr.write(`coterie: ${hint}\n`);
  const opinions = disagreement(nodes);
  if (opinions !== null)
    throw new EnvironmentError("no-agreement", `the members do not agree on a ${what}: ${opinions}`);
  if (hasLeaders && knowOfNone(nodes)) throw new EnvironmentError("no-leader", leaderless(alive, what));
}

type Asked = Pick<SurveyedNode, "id" | "alive" | "leader" | "admin" | "byzantine"> &
  Partial<Pick<ServiceNode, "hasQuorum">>;

function leaderless(alive: readonly Asked[], what: string): string {
  const alone = alive.filter(({ hasQuorum }) => hasQuorum === false).map(({ id }) => id);
  const why =
    alone.length === 0 ? "" : `: ${memberOrMembers(alone)} ${alone.length === 1 ? "does" : "do"} not reach a majority`;
  return `${memberOrMembers(alive.map(({ id }) => id))} ${alive.length === 1 ? "knows" : "know"} no ${what}${why}`;
}

const memberOrMembers = (ids: readonly number[]): string => `${ids.length === 1 ? "member" : "members"} ${list(ids)}`;

/** It loads all protocols. */
const readProtocolConfig = async (file: string) => (await import("../../cluster/protocol-config.ts")).readConfig(file);

/** The members that answered, and the report. */
async function asked({ admin = DEFAULT_ADMIN, config }: StatusOptions): Promise<{
  readonly nodes: readonly Asked[];
  /** Whether members should know a leader. */
  readonly hasLeaders: boolean;
  readonly report: Report;
  /** The noun for the leader, in errors. */
  readonly what: string;
}> {
  if (config !== undefined && !namesProtocol(config)) {
    const found = await servicesStatus(readServiceConfig(config), PATIENCE_MS);
    return {
      nodes: found.nodes,
      hasLeaders: true,
      report: servicesStatusReport(found),
      what: "leader",
    };
  }
  const found = config === undefined ? await surveyOf(admin) : await surveyMembers(await readProtocolConfig(config));
  return {
    nodes: found.nodes,
    hasLeaders: found.hasLeaders,
    report: protocolStatus(found),
    what: "leader",
  };
}

export function protocolStatus(survey: Survey): Report {
  const columns = survey.nodes.map((node) => {
    const isLeader = node.alive && node.id === node.leader;
    const cells = [
      String(node.id),
      String(node.pid ?? "-"),
      stateCell(node.alive, stateOf(node)),
      node.role ?? "-",
      String(node.leader ?? "-"),
      String(node.term ?? "-"),
    ];
    return isLeader ? cells.map((cell, at) => (at === STATE_COLUMN ? cell : styled("bold", cell))) : cells;
  });
  const head = ["NODE", "PID", "STATE", "ROLE", "LEADER", "TERM"];
  return { json: survey, sections: [[{ head, columns }], refusals(survey.nodes)] };
}

export function servicesStatusReport(status: ServicesStatus): Report {
  const { nodes, instances } = status;
  const members = nodes.map((node) => [
    ...[String(node.id), String(node.pid ?? "-"), stateCell(node.alive, serviceStateOf(node))],
    ...[String(node.leader ?? "-"), node.hasQuorum === null ? "-" : node.hasQuorum ? "yes" : "no"],
  ]);
  const grants = instances
    .filter(({ kind }) => kind !== "channel")
    .map(({ kind, name, holder, token, waiting }) => [
      ...[kind === "mutex" ? "lock" : kind, name],
      ...[String(holder ?? "-"), String(token ?? "-"), String(waiting)],
    ]);
  const channels = instances
    .filter(({ kind }) => kind === "channel")
    .map(({ name, channel, waiting }) => [
      ...[name, String(channel?.view ?? "-")],
      ...[channel?.members.join(", ") ?? "-", String(waiting)],
    ]);
  return {
    json: status,
    sections: [
      [{ head: ["NODE", "PID", "STATE", "LEADER", "MAJORITY"], columns: members }],
      refusals(nodes),
      table(["KIND", "NAME", "HOLDER", "TOKEN", "WAITING"], grants),
      table(["CHANNEL", "VIEW", "MEMBERS", "WAITING"], channels),
    ],
  };
}

const STATE_COLUMN = 2;
const stateCell = (alive: boolean, state: string): string => styled(alive ? "green" : "red", state);

const table = (head: readonly string[], columns: readonly (readonly string[])[]): Section =>
  columns.length === 0 ? [] : [{ head, columns }];

interface NodeRefusals {
  readonly id: NodeId;
  /** Empty for a member that does not answer. */
  readonly refusals: readonly Refused[];
}

/** Pairs of members without a link, with the reason. */
const refusals = (nodes: readonly NodeRefusals[]): Section =>
  nodes.flatMap(({ id, refusals: refused }) =>
    refused.map(({ node, reason, detail }) => `node ${id} has no link with node ${node}: ${reason}: ${detail}`),
  );

function serviceStateOf({ alive, admin }: ServiceNode): string {
  if (alive) return "running";
  return admin === null ? "no admin address" : "no answer";
}

function stateOf({ alive, process, admin, byzantine }: SurveyedNode): string {
  if (admin === null) return "no admin address";
  if (!alive && (process === "running" || process === "unknown")) return "no answer";
  return byzantine === undefined ? process : `${process}, Byzantine`;
}

/** `coterie status`: shows a cluster's members and its leader. */
import type { Command } from "commander";
import { type ClusterPlaces, namesProtocol, readServiceConfig } from "../../cluster/config.ts";
import { isOnOtherLoopback } from "../../cluster/other-machine.ts";
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
    .description("Shows a cluster's members, its leader, and the locks and channels in use.")
    .option("--admin <url>", `address of \`coterie up\` (default: ${DEFAULT_ADMIN})`, adminUrl("--admin"))
    .option("--config <file>", "query the members in this config file instead, at their admin addresses")
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
  exitCodes:
    "0 ok; 1 no member answered, or the running members know of no leader or of different leaders; 2 invalid arguments",
  details: `With \`--config\`, a member is queried only if the config contains its admin address:

\`\`\`json
"members": { "0": { "address": "127.0.0.1:7401", "admin": "127.0.0.1:7501" }, … }
\`\`\`

The first form of the table is for a config with a protocol, and the second for members that serve elections, locks and channels.
Members that reject each other's links are listed below the tables, with the [reason](errors.md#links-between-members).

With \`--json\`, a cluster with a protocol prints

\`\`\`json
{ "cluster", "protocol", "hasLeaders", "nodes": [{ "id", "pid", "alive", "leader", "term", "role", "process",
  "address", "admin", "refusals": [{ "node", "reason", "detail", "members" }] }] }
\`\`\`

\`admin\` is null if the config does not set it. Without a protocol, a node has \`id\`, \`pid\`, \`alive\`, \`leader\`, \`hasQuorum\`, \`address\`, \`admin\`
and \`refusals\`, and there are \`"instances": [{ "kind", "name", "holder", "token", "waiting" }]\`. A channel also has
\`"channel": { "view", "members" }\`.`,
};

async function status(options: StatusOptions, { stdout, stderr }: Invocation): Promise<void> {
  if (options.admin !== undefined && options.config !== undefined)
    throw new UsageError("bad-argument", "expected --admin or --config, got both");
  const { hasLeaders, members, nodes, report, what } = await asked(options);
  print(report, options, stdout);
  const alive = nodes.filter((node) => node.alive);
  const hidden = nodes.filter(({ admin }) => admin === null).map(({ id }) => id);
  const hint = `the config has no admin address for ${memberOrMembers(hidden)}: add one to query each member`;
  const apart = await onOtherMachines(nodes, members);
  const where = apart.length === 1 ? "has its admin address" : "have their admin addresses";
  const owner = apart.length === 1 ? "its own machine" : "their own machines";
  const elsewhere = `${memberOrMembers(apart)} ${where} on the loopback of ${owner}: run status there`;
  if (alive.length === 0) {
    const why = hidden.length > 0 ? hint : apart.length > 0 ? elsewhere : "is the cluster running?";
    throw new EnvironmentError("nobody-alive", `no member answers: ${why}`);
  }
  if (hidden.length > 0) stderr.write(`coterie: ${hint}\n`);
  if (apart.length > 0) stderr.write(`coterie: ${elsewhere}\n`);
  const opinions = disagreement(nodes);
  if (opinions !== null)
    throw new EnvironmentError("no-agreement", `the members do not agree on a ${what}: ${opinions}`);
  if (hasLeaders && knowOfNone(nodes)) throw new EnvironmentError("no-leader", leaderless(alive, what));
}

/** Returns the members that did not answer and whose admin pages can be reached only from their own machines. */
async function onOtherMachines(nodes: readonly Asked[], members: ClusterPlaces["members"]): Promise<readonly NodeId[]> {
  const silent = nodes.filter(({ alive, admin }) => !alive && admin !== null).map(({ id }) => id);
  const found = await Promise.all(
    silent.map(async (id) => (members[id] !== undefined && (await isOnOtherLoopback(members[id])) ? [id] : [])),
  );
  return found.flat();
}

type Asked = Pick<SurveyedNode, "id" | "alive" | "leader" | "admin" | "byzantine"> &
  Partial<Pick<ServiceNode, "hasQuorum">>;

function leaderless(alive: readonly Asked[], what: string): string {
  const alone = alive.filter(({ hasQuorum }) => hasQuorum === false).map(({ id }) => id);
  const why = alone.length === 0 ? "" : `: ${memberOrMembers(alone)} cannot reach a majority`;
  return `${memberOrMembers(alive.map(({ id }) => id))} ${alive.length === 1 ? "does" : "do"} not know of a ${what}${why}`;
}

const memberOrMembers = (ids: readonly number[]): string => `${ids.length === 1 ? "member" : "members"} ${list(ids)}`;

/** Reads a protocol config. The module loads all protocols, so it is imported only when needed. */
const readProtocolConfig = async (file: string) => (await import("../../cluster/protocol-config.ts")).loadConfig(file);

/** Returns the state of all members, including those that do not answer, and the report. */
async function asked({ admin = DEFAULT_ADMIN, config }: StatusOptions): Promise<{
  readonly nodes: readonly Asked[];
  /** The members listed in the config. Empty without a config. */
  readonly members: ClusterPlaces["members"];
  /** Whether the cluster elects a leader. If so, it is an error if no member knows who the leader is. */
  readonly hasLeaders: boolean;
  readonly report: Report;
  /** The noun used for the leader in error messages. */
  readonly what: string;
}> {
  if (config !== undefined && !namesProtocol(config)) {
    const read = readServiceConfig(config);
    const found = await servicesStatus(read, PATIENCE_MS);
    return {
      nodes: found.nodes,
      members: read.members,
      hasLeaders: true,
      report: servicesStatusReport(found),
      what: "leader",
    };
  }
  const read = config === undefined ? null : await readProtocolConfig(config);
  const found = read === null ? await surveyOf(admin) : await surveyMembers(read);
  return {
    nodes: found.nodes,
    members: read?.members ?? {},
    hasLeaders: found.hasLeaders,
    report: protocolStatus(found),
    what: "leader",
  };
}

/** Returns the report for a cluster that runs a protocol. */
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

/** Returns the report for a cluster created by `join()`. */
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
  /** The peers that are refused. Empty for a member that does not answer. */
  readonly refusals: readonly Refused[];
}

/** Lists the pairs of members without a link, and the reason. */
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

/** `coterie status`: who is alive, and who leads. */
import type { Command } from "commander";
import { z } from "zod";
import { askStatus, refusals } from "../cluster/admin-client.ts";
import type { ClusterConfig } from "../cluster/config.ts";
import { exchange } from "../cluster/http-exchange.ts";
import type { ClusterNodeStatus, ClusterStatus } from "../cluster/local-cluster.ts";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import { adminUrl, DEFAULT_PORT } from "./arguments.ts";
import type { Invocation } from "./invocation.ts";
import { refusalLines } from "./refusal-lines.ts";
import { servicesPicture, servicesStatus } from "./service-status.ts";
import { list, type Paint, paintFor, table } from "./terminal.ts";

const DEFAULT_ADMIN = `http://127.0.0.1:${DEFAULT_PORT}`;
const PATIENCE_MS = 2_000;

interface StatusOptions {
  readonly admin?: string;
  readonly config?: string;
  readonly json?: true;
}

/** One row: what `up` says of a node, or what can be known of it from afar. */
interface Row extends Omit<ClusterNodeStatus, "process" | "admin"> {
  readonly process: ClusterNodeStatus["process"] | "unknown";
  /** Null where the config does not say it: only who reads the member's output knows the port that it got. */
  readonly admin: string | null;
}
type Status = Omit<ClusterStatus, "nodes"> & { readonly nodes: readonly Row[] };

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Asks a cluster's members how they are.")
    .option("--admin <url>", `the pages of \`coterie up\` (default: ${DEFAULT_ADMIN})`, adminUrl("--admin"))
    .option("--config <file>", "ask the members of this config file instead, each at the admin address it has there")
    .option("--json", "print the answer as JSON")
    .addHelpText("after", EXPLANATION)
    .action((options: StatusOptions) => status(options, invocation));
}

const EXPLANATION = `
Example:
  $ coterie status --admin http://127.0.0.1:7400
  NODE  PID   STATE    ROLE      LEADER  TERM
  0     4711  running  follower  1       -
  1     4712  running  leader    1       -

With --config, a member can be asked only if its entry in the config has an admin address:
  "members": { "0": { "address": "127.0.0.1:7401", "admin": "127.0.0.1:7501" }, … }

With --json: { "cluster", "protocol", "nodes": [{ "id", "pid", "alive", "leader", "term", "role", "process", "address", "admin", "refusals" }] }
"admin" is null where the config does not give it.

Members that have no link since their lists of members differ, or since one has lost its folder, are told below:
  node 3 has no link with node 1: lost-journal: this node has come with a new journal, and node 1 remembers another: …
With --json: "refusals": [{ "node", "reason", "detail", "members" }] of each node.

A config that names no protocol is one of members that serve elections, locks and channels by name. Of these it says who
serves the default locks, as each of them has it, whether a majority can be heard of, which member holds which names, and which are in which channel:
  KIND  NAME            ALGORITHM       HOLDER  TOKEN      WAITING
  lock  nightly-backup  elected-server  1       268435457  2

  CHANNEL  ALGORITHM                   VIEW  MEMBERS  WAITING
  room     causal over view-synchrony  4     0, 1, 2  0
With --json: "nodes" with "id", "pid", "alive", "lockServer", "hasQuorum", "address", "admin" and "refusals", and
"instances": [{ "kind", "name", "algorithm", "holder", "token", "waiting" }], of a channel "channel": { "view", "members" } as well.
Exit codes: 0 ok; 1 if nobody answers, or if those alive do not name the same leader, or lock server; 2 wrong arguments.`;

async function status(options: StatusOptions, { stdout, stderr }: Invocation): Promise<void> {
  if (options.admin !== undefined && options.config !== undefined)
    throw new UsageError("bad-argument", "expected --admin or --config, got both");
  const { nodes, text, what } = await asked(options, paintFor(stdout));
  stdout.write(text);
  const alive = nodes.filter((node) => node.alive);
  const hidden = nodes.filter(({ admin }) => admin === null).map(({ id }) => id);
  const hint = `the config does not say where to ask ${hidden.length === 1 ? "member" : "members"} ${list(hidden)}: give each member an admin address in the config`;
  if (alive.length === 0) {
    const why = hidden.length === 0 ? "is the cluster running?" : hint;
    throw new EnvironmentError("nobody-alive", `no member answers: ${why}`);
  }
  if (hidden.length > 0) stderr.write(`coterie: ${hint}\n`);
  const honest = alive.filter(({ byzantine }) => byzantine === undefined);
  const leaders = new Set(honest.map(({ leader }) => leader));
  if (leaders.size > 1)
    throw new EnvironmentError("no-agreement", `the members do not agree on a ${what}: ${opinions(honest)}`);
}

/** Who answered, and the answer in words or as JSON. */
async function asked(
  { admin = DEFAULT_ADMIN, config, json }: StatusOptions,
  paint: Paint,
): Promise<{
  readonly nodes: readonly Pick<Row, "id" | "alive" | "leader" | "admin" | "byzantine">[];
  readonly text: string;
  /** What each of them names. */
  readonly what: string;
}> {
  const configs = config === undefined ? null : await import("../cluster/config.ts"); // It loads all protocols.
  if (config !== undefined && configs?.namesProtocol(config) === false) {
    const found = await servicesStatus(configs.readServiceConfig(config), PATIENCE_MS);
    const nodes = found.nodes.map(({ lockServer, ...node }) => ({ ...node, leader: lockServer }));
    return {
      nodes,
      text: json === true ? `${JSON.stringify(found)}\n` : servicesPicture(found, paint),
      what: "lock server",
    };
  }
  const found =
    config === undefined || configs === null ? await fromUp(admin) : await fromMembers(configs.readConfig(config));
  return {
    nodes: found.nodes,
    text: json === true ? `${JSON.stringify(found)}\n` : picture(found, paint),
    what: "leader",
  };
}

const answerSchema = z.object({
  cluster: z.string(),
  protocol: z.string(),
  nodes: z.array(
    z.object({
      id: z.number(),
      pid: z.number().nullable(),
      alive: z.boolean(),
      leader: z.number().nullable(),
      term: z.number().nullable(),
      role: z.string().nullable(),
      process: z.enum(["starting", "running", "paused", "exited"]),
      address: z.string(),
      admin: z.string(),
      byzantine: z.string().exactOptional(),
      refusals,
    }),
  ),
});

async function fromUp(admin: string): Promise<Status> {
  const hint = "start one with `coterie up`, or name another with --admin";
  const answer = await exchange(`${admin}/status`, { timeoutMs: PATIENCE_MS }).catch((error: unknown) => {
    throw new EnvironmentError("unreachable", `no cluster answers at ${admin}: ${hint}`, { cause: error });
  });
  const parsed = answerSchema.safeParse(answer.body);
  if (!parsed.success)
    throw new EnvironmentError("unreachable", `what answers at ${admin} is not \`coterie up\`: ${hint}`);
  return parsed.data;
}

async function fromMembers({ cluster, protocol, members }: ClusterConfig): Promise<Status> {
  const nodes = Object.entries(members).map(async ([key, member]): Promise<Row> => {
    const id = Number(key);
    const admin = member.admin.port === 0 ? null : `http://${formatHostPort(member.admin)}`;
    const answer = admin === null ? null : await askStatus(admin, id, PATIENCE_MS);
    const known = answer?.cluster === cluster ? answer : null;
    const { pid = null, leader = null, term = null, role = null, refusals: refused = [] } = known ?? {};
    const alive = known !== null;
    const lying = known?.byzantine === undefined ? {} : { byzantine: known.byzantine };
    return {
      id,
      pid,
      alive,
      leader,
      term,
      role,
      process: alive ? "running" : "unknown",
      address: formatHostPort(member.address),
      admin,
      ...lying,
      refusals: refused,
    };
  });
  return { cluster, protocol, nodes: await Promise.all(nodes) };
}

function picture({ nodes }: Status, paint: Paint): string {
  const rows = nodes.map((node) => [
    String(node.id),
    String(node.pid ?? "-"),
    stateOf(node),
    node.role ?? "-",
    String(node.leader ?? "-"),
    String(node.term ?? "-"),
  ]);
  const lines = table([["NODE", "PID", "STATE", "ROLE", "LEADER", "TERM"], ...rows], (cell, row, column) => {
    if (row === 0) return paint("dim", cell);
    const node = nodes[row - 1];
    if (column === 2) return paint(node?.alive === true ? "green" : "red", cell);
    return node?.alive === true && node.id === node.leader ? paint("bold", cell) : cell;
  });
  return `${[...lines, ...refusalLines(nodes)].join("\n")}\n`;
}

function stateOf({ alive, process, admin, byzantine }: Row): string {
  if (admin === null) return "no admin address";
  if (!alive && (process === "running" || process === "unknown")) return "no answer";
  return byzantine === undefined ? process : `${process}, lies`;
}

function opinions(alive: readonly Pick<Row, "id" | "leader">[]): string {
  return alive.map(({ id, leader }) => `node ${id} ${leader === null ? "knows of none" : `says ${leader}`}`).join(", ");
}

/** What `coterie status` reports: of members that run a protocol, or of members that serve elections, locks and channels. */
import type { ServiceNode, ServicesStatus } from "../cluster/services-survey.ts";
import type { Survey, SurveyedNode } from "../cluster/survey.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Refused } from "../runtime/transport/identity.ts";
import { type Report, type Section, styled } from "./report.ts";

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

/** Which members have no link with which nodes, and why. */
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

/** `coterie status` for members that serve elections, locks and channels by name, on a terminal. */
import type { ServiceNode, ServicesStatus } from "../cluster/services-survey.ts";
import { refusalLines } from "./refusal-lines.ts";
import { type Paint, table } from "./terminal.ts";

export function servicesPicture({ nodes, instances }: ServicesStatus, paint: Paint): string {
  const members = nodes.map((node) => [
    ...[String(node.id), String(node.pid ?? "-"), stateOf(node), String(node.leader ?? "-")],
    node.hasQuorum === null ? "-" : node.hasQuorum ? "yes" : "no",
  ]);
  const head = ["NODE", "PID", "STATE", "LEADER", "MAJORITY"];
  const lines = table([head, ...members], (cell, row, column) => {
    if (row === 0) return paint("dim", cell);
    return column === 2 ? paint(nodes[row - 1]?.alive === true ? "green" : "red", cell) : cell;
  });
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
  const held = titled(["KIND", "NAME", "HOLDER", "TOKEN", "WAITING"], grants, paint);
  const open = titled(["CHANNEL", "VIEW", "MEMBERS", "WAITING"], channels, paint);
  return `${[...lines, ...refusalLines(nodes), ...held, ...open].join("\n")}\n`;
}

/** A table below others; nothing where there are no rows. */
function titled(head: readonly string[], rows: readonly (readonly string[])[], paint: Paint): readonly string[] {
  if (rows.length === 0) return [];
  return ["", ...table([head, ...rows], (cell, row) => (row === 0 ? paint("dim", cell) : cell))];
}

function stateOf({ alive, admin }: ServiceNode): string {
  if (alive) return "running";
  return admin === null ? "no admin address" : "no answer";
}

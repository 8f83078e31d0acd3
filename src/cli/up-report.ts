/** What `coterie up` says: to people on a terminal, or in JSON to a program. */
import type { LifecycleEvent } from "../cluster/local/lifecycle.ts";
import type { NodeId } from "../core/protocol.ts";
import { wrapped } from "../experiment/paragraph.ts";
import { DEFAULT_PORT } from "./arguments.ts";
import { list, type Paint, paintFor, table } from "./terminal.ts";

export interface Report {
  readonly onEvent: (event: LifecycleEvent) => void;
  /** A line of a member's log. */
  readonly log: (node: NodeId, line: string) => void;
}

type EventNamed<E extends LifecycleEvent["event"]> = Extract<LifecycleEvent, { event: E }>;

export function jsonReport(studio: string | null, admin: string): Report {
  return {
    onEvent(event) {
      const { event: name, ...rest } = event;
      const line = name === "ready" ? { event: name, studio, admin, ...rest } : event;
      process.stdout.write(`${JSON.stringify(line)}\n`);
    },
    log: logLine(paintFor(process.stderr)),
  };
}

export interface TextReportOptions {
  readonly name: string;
  readonly protocol: string;
  readonly studio: string | null;
  readonly admin: string;
  /** The base port as it was asked for: 0 for any. */
  readonly port: number;
  readonly restart?: true;
}

export function textReport(options: TextReportOptions): Report {
  const paint = paintFor(process.stdout);
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  let leader: NodeId | null = null;
  let everybody: readonly NodeId[] = [];
  let isStopping = false;
  return {
    onEvent(event) {
      if (isStopping) return; // That every member ends now is no news.
      if (event.event === "ready") {
        ({ leader } = event);
        everybody = event.nodes.map(({ id }) => id);
        return say(welcome(event, options, paint));
      }
      if (event.event === "leader") {
        if (event.leader === leader) return;
        ({ leader } = event);
      }
      if (event.event === "disagreement") leader = null; // The next leader is news, even the one that led before.
      isStopping = event.event === "stopping";
      if (isStopping && process.stdout.isTTY) say(""); // The terminal has just written ^C.
      say(`${paint("dim", clock())}  ${sentence(event, everybody, paint)}`);
    },
    log: logLine(paintFor(process.stderr)),
  };
}

function logLine(paint: Paint): Report["log"] {
  return (node, line) => void process.stderr.write(`${paint("dim", `node ${node} │`)} ${line}\n`);
}

function welcome({ nodes, leader, seed }: EventNamed<"ready">, options: TextReportOptions, paint: Paint): string {
  const { name, protocol, studio, admin } = options;
  const count = nodes.length === 1 ? "1 member" : `${nodes.length} members`;
  const rows = nodes.map((node) => [
    `  ${node.id === leader ? "★" : " "} node ${node.id}`,
    `pid ${node.pid}`,
    node.address,
    [node.id === leader ? "leads" : "", node.byzantine === undefined ? "" : `lies: ${node.byzantine}`]
      .filter((word) => word !== "")
      .join(", "),
  ]);
  const lines = table(rows, (cell, row) => (nodes[row]?.id === leader ? paint("bold", cell) : cell));
  return [
    "",
    `${paint("bold", `Cluster ${name}`)}: ${count} on this machine, running ${protocol}`,
    "",
    ...lines,
    "",
    ...(seed === undefined ? [] : [`  Who lies chooses by --seed ${seed}`, ""]),
    ...(studio === null ? [] : [`  Studio  ${paint(["bold", "underline"], studio)}`, ""]),
    "Try",
    ...suggestions(nodes, leader, options, admin, paint),
    "",
    "Ctrl-C stops everything.",
    "",
  ].join("\n");
}

function suggestions(
  nodes: EventNamed<"ready">["nodes"],
  leader: NodeId | null,
  { studio, restart, port }: TextReportOptions,
  admin: string,
  paint: Paint,
): string[] {
  const victim = nodes.find(({ id }) => id === leader) ?? nodes[0];
  const told = admin.endsWith(`:${DEFAULT_PORT}`) ? "" : ` --admin ${admin}`;
  const same = port === DEFAULT_PORT ? "" : ` --port ${port}`;
  const rows = [
    [
      `  kill -9 ${victim?.pid}`,
      leader === null ? "a member dies" : "the leader dies, and another takes over within a second",
    ],
    [`  npx coterie status${told}`, "who is alive, and who leads"],
    ...(studio === null ? [] : [["  open the studio", "press Kill, pause a member, cut a link, split the cluster"]]),
    ...(restart ? [] : [[`  npx coterie up --restart${same}`, "next time: the dead come back by themselves"]]),
  ];
  const width = Math.max(...rows.map(([command = ""]) => command.length));
  return rows.map(
    ([command = "", what = ""]) => `${paint("cyan", command.padEnd(width))}  ${wrapped(what, width + 2)}`,
  );
}

function sentence(
  event: Exclude<LifecycleEvent, { event: "ready" }>,
  everybody: readonly NodeId[],
  paint: Paint,
): string {
  switch (event.event) {
    case "started":
      return `${paint("green", `node ${event.node} started`)}, pid ${event.pid}`;
    case "paused":
      return paint("yellow", `node ${event.node} is paused`);
    case "resumed":
      return paint("green", `node ${event.node} goes on`);
    case "exited":
      return `${paint("red", `node ${event.node} ${howItEnded(event)}`)}${whatNow(event)}`;
    case "leader":
      return `${paint("bold", `★ node ${event.leader} leads`)}${followers(event)}`;
    case "disagreement":
      return paint("yellow", `no agreement: ${event.opinions.map(opinion).join("; ")}`);
    case "network":
      return paint(
        event.act.type === "mend" || event.act.type === "heal" ? "green" : "yellow",
        network(event, everybody),
      );
    case "stopping":
      return "stopping every member";
  }
}

function howItEnded({ signal, code }: EventNamed<"exited">): string {
  if (signal !== null) return `was killed by ${signal}`;
  return code === null ? "could not be started" : `ended with exit code ${code}`;
}

function whatNow({ restartInMs, code }: EventNamed<"exited">): string {
  if (restartInMs !== null) return `; it starts again in ${restartInMs / 1_000} s`;
  return code === 2 ? "; it would end so again, so it stays down: its log says why" : "";
}

function followers({ leader, agreed }: EventNamed<"leader">): string {
  const others = agreed.filter((node) => node !== leader);
  return others.length === 0 ? "" : `, and ${list(others)} ${others.length === 1 ? "follows" : "follow"}`;
}

function opinion({ leader, nodes }: EventNamed<"disagreement">["opinions"][number]): string {
  return `${list(nodes)} ${nodes.length === 1 ? "follows" : "follow"} ${leader ?? "nobody"}`;
}

function network({ act, dropRate, delayMs: [min, max] }: EventNamed<"network">, everybody: readonly NodeId[]): string {
  switch (act.type) {
    case "cut":
      return `the link between ${list(act.nodes)} is cut`;
    case "mend":
      return `the link between ${list(act.nodes)} is mended`;
    case "split": {
      const alone = everybody.filter((node) => !act.groups.flat().includes(node)).map((node) => [node]);
      const groups = [...act.groups.filter((group) => group.length > 0), ...alone];
      return groups.length === 1 ? "every link is mended" : `the network is split: ${groups.map(list).join(" | ")}`;
    }
    case "heal":
      return "the network is whole, and nothing is dropped or delayed";
    case "link-conditions":
      return `of all messages ${Math.round(dropRate * 100)} % are dropped, the others delayed by ${min} to ${max} ms`;
  }
}

function clock(): string {
  return new Date().toTimeString().slice(0, 8);
}

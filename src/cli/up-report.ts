/** What `coterie up` reports as it happens: text for people, or a line of JSON for each event. */
import type { LifecycleEvent } from "../cluster/local/lifecycle.ts";
import type { NodeId } from "../core/protocol.ts";
import { DEFAULT_PORT } from "./arguments.ts";
import { type Block, list, printText, styled, textOf } from "./report.ts";

export interface Announcer {
  readonly onEvent: (event: LifecycleEvent) => void;
  /** A line of a member's log. */
  readonly log: (node: NodeId, line: string) => void;
}

type EventNamed<E extends LifecycleEvent["event"]> = Extract<LifecycleEvent, { event: E }>;

export function jsonReport(studio: string | null, admin: string): Announcer {
  return {
    onEvent(event) {
      const { event: name, ...rest } = event;
      const line = name === "ready" ? { event: name, studio, admin, ...rest } : event;
      process.stdout.write(`${JSON.stringify(line)}\n`);
    },
    log: logLine,
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

export function textReport(options: TextReportOptions): Announcer {
  const say = (text: string): void => printText(`${text}\n`, process.stdout);
  let leader: NodeId | null = null;
  let everybody: readonly NodeId[] = [];
  let isStopping = false;
  return {
    onEvent(event) {
      if (isStopping) return; // That every member ends now is no news.
      if (event.event === "ready") {
        ({ leader } = event);
        everybody = event.nodes.map(({ id }) => id);
        return say(welcome(event, options));
      }
      if (event.event === "leader") {
        if (event.leader === leader) return;
        ({ leader } = event);
      }
      if (event.event === "disagreement") leader = null; // The next leader is news, even the one that led before.
      isStopping = event.event === "stopping";
      if (isStopping && process.stdout.isTTY) say(""); // The terminal has just written ^C.
      say(`${styled("dim", clock())}  ${sentence(event, everybody)}`);
    },
    log: logLine,
  };
}

const logLine: Announcer["log"] = (node, line) =>
  printText(`${styled("dim", `node ${node} │`)} ${line}\n`, process.stderr);

function welcome({ nodes, leader, seed }: EventNamed<"ready">, options: TextReportOptions): string {
  const { name, protocol, studio } = options;
  const count = nodes.length === 1 ? "1 member" : `${nodes.length} members`;
  const columns = nodes.map((node) => {
    const isLeader = node.id === leader;
    const notes = [
      ...(isLeader ? ["leads"] : []),
      ...(node.byzantine === undefined ? [] : [`Byzantine: ${node.byzantine}`]),
    ];
    const cells = [`  ${isLeader ? "★" : " "} node ${node.id}`, `pid ${node.pid}`, node.address, notes.join(", ")];
    return isLeader ? cells.map((cell) => styled("bold", cell)) : cells;
  });
  return `\n${textOf([
    [`${styled("bold", `Cluster ${name}`)}: ${count} on this machine, running ${protocol}`],
    [{ columns }],
    seed === undefined ? [] : [`  Byzantine members choose by --seed ${seed}`],
    studio === null ? [] : [`  Studio  ${styled(["bold", "underline"], studio)}`],
    ["Try", suggestions(nodes, leader, options)],
    ["Ctrl-C stops everything."],
  ])}`;
}

function suggestions(
  nodes: EventNamed<"ready">["nodes"],
  leader: NodeId | null,
  { studio, restart, port, admin }: TextReportOptions,
): Block {
  const victim = nodes.find(({ id }) => id === leader) ?? nodes[0];
  const address = admin.endsWith(`:${DEFAULT_PORT}`) ? "" : ` --admin ${admin}`;
  const same = port === DEFAULT_PORT ? "" : ` --port ${port}`;
  const rows: [string, string][] = [
    [
      `  kill -9 ${victim?.pid}`,
      leader === null ? "a member dies" : "the leader dies, and another takes over within a second",
    ],
    [`  npx coterie status${address}`, "the members that are alive, and the leader"],
    ...(studio === null
      ? []
      : ([["  open the studio", "press Kill, pause a member, cut a link, split the cluster"]] as [string, string][])),
    ...(restart
      ? []
      : ([[`  npx coterie up --restart${same}`, "next time: crashed members start again"]] as [string, string][])),
  ];
  return { named: rows.map(([command, what]) => [styled("cyan", command), what]) };
}

function sentence(event: Exclude<LifecycleEvent, { event: "ready" }>, everybody: readonly NodeId[]): string {
  switch (event.event) {
    case "started":
      return `${styled("green", `node ${event.node} started`)}, pid ${event.pid}`;
    case "paused":
      return styled("yellow", `node ${event.node} is paused`);
    case "resumed":
      return styled("green", `node ${event.node} has resumed`);
    case "exited":
      return `${styled("red", `node ${event.node} ${howItEnded(event)}`)}${whatNow(event)}`;
    case "leader":
      return `${styled("bold", `★ node ${event.leader} leads`)}${followers(event)}`;
    case "disagreement":
      return styled("yellow", `no agreement: ${event.opinions.map(opinion).join("; ")}`);
    case "network":
      return styled(
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
  return code === 2 ? "; it is not restarted, as it would end in the same way: see its log" : "";
}

function followers({ leader, agreed }: EventNamed<"leader">): string {
  const others = agreed.filter((node) => node !== leader);
  return others.length === 0 ? "" : `, and ${list(others)} ${others.length === 1 ? "follows" : "follow"}`;
}

function opinion({ leader, nodes }: EventNamed<"disagreement">["opinions"][number]): string {
  return `${list(nodes)} ${nodes.length === 1 ? "follows" : "follow"} ${leader ?? "no leader"}`;
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
      return `${Math.round(dropRate * 100)} % of all messages are dropped, the others delayed by ${min} to ${max} ms`;
  }
}

function clock(): string {
  return new Date().toTimeString().slice(0, 8);
}

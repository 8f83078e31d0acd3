/** `coterie up`: runs and monitors a cluster of real processes on this machine, until Ctrl-C. */
import { randomInt } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { join, resolve } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { type Command, Option } from "commander";
import { requireClusterName } from "../../cluster/config.ts";
import { type Caretaker, startCaretaker } from "../../cluster/local/caretaker.ts";
import type { LifecycleEvent } from "../../cluster/local/lifecycle.ts";
import { type Recorder, record } from "../../cluster/local/recorder.ts";
import { LocalCluster } from "../../cluster/local-cluster.ts";
import { parseConfig } from "../../cluster/protocol-config.ts";
import { studioPages } from "../../cluster/studio-server.ts";
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { liars, requireKnown } from "../../experiment/experiment.ts";
import { recordingHeader } from "../../experiment/recording.ts";
import { type BehaviourName, behaviourSummaries } from "../../protocols/byzantine.ts";
import { protocolNamed } from "../../protocols/index.ts";
import { makeKeys, needsKeys } from "../../runtime/member-keys.ts";
import { packageFile } from "../../runtime/package-files.ts";
import { type Manual, withManual } from "../manual.ts";
import { DEFAULT_PORT, MAX_SEED, port, seed, wholeNumber } from "../options.ts";
import { type Block, list, printText, styled, textOf } from "../output.ts";
import { adminPort, HOST, MAX_NODES, memberPort, takePorts } from "./ports.ts";

const DEFAULT_NODES = 5;

interface UpOptions {
  readonly nodes: number;
  readonly protocol: string;
  readonly port: number;
  readonly name: string;
  readonly restart?: true;
  readonly json?: true;
  readonly studio: boolean;
  readonly record?: string;
  readonly force?: true;
  readonly data?: string;
  readonly byzantine: Readonly<Record<NodeId, BehaviourName>>;
  readonly seed: number;
}

export function declare(command: Command): void {
  withManual(command, manual)
    .description("Starts each member as a process on this machine, supervises the processes, and serves the studio.")
    .option("--nodes <n>", `number of members, 1 to ${MAX_NODES}`, wholeNumber("--nodes", 1, MAX_NODES), DEFAULT_NODES)
    .option("--protocol <name>", "protocol that the members run; see `coterie protocols`", knownProtocol, "bully")
    .option("--port <p>", "base port; 0 chooses a free range of ports", port, DEFAULT_PORT)
    .option("--name <name>", "name of the cluster", soundName, "demo")
    .option("--restart", "restart members that crash, except after exit code 2")
    .option("--data <dir>", "folder that keeps the journals for the next start")
    .addOption(
      new Option("--byzantine <list>", "Byzantine members, such as 2 or 2,4=equivocate")
        .argParser((text) => liars(text, "--byzantine"))
        .default({}, "none"),
    )
    .option("--seed <n>", "with --byzantine: seed for the members' choices (default: random)", seed)
    .option("--no-studio", "serve only /status, not the studio")
    .option("--record <file>", "record a trace of all members")
    .option("--force", "overwrite the file that --record names")
    .option("--json", "print events as JSON lines on stdout")
    .action((options: Given) => up(settled(options)));
}

type Given = Omit<UpOptions, "seed"> & { readonly seed?: number };

/** @throws UsageError if an id does not belong to any member */
function settled(options: Given): UpOptions {
  const { byzantine, nodes, seed: given } = options;
  const ids = Array.from({ length: nodes }, (_, node) => node);
  for (const id of Object.keys(byzantine)) requireKnown("--byzantine", ids, Number(id));
  if (given !== undefined && Object.keys(byzantine).length === 0)
    throw new UsageError("bad-argument", "expected --byzantine with --seed, such as --byzantine 2=equivocate");
  return { ...options, seed: given ?? randomInt(MAX_SEED + 1) };
}

const manual: Manual = {
  examples: [
    "coterie up --nodes 5 --restart",
    "coterie up --protocol raft --data journals",
    "coterie up --nodes 4 --protocol pbft --byzantine 2=equivocate",
    "coterie up --record live.jsonl",
  ],
  exitCodes: "0 stopped by Ctrl-C; 1 the cluster could not start, or a port is taken; 2 invalid arguments",
  details: `While it runs, kill a member in another terminal with \`kill -9 PID\`, or open the studio and press **Kill**. Ctrl-C stops all
members; a second Ctrl-C kills them. Members also stop if this process is killed.

Ports: the studio and \`GET /status\` use the base port P, member i uses P+1+i, and its admin pages use P+101+i.

Without \`--data\`, journals last as long as the command runs, so a restarted member still has its journal. With \`--data DIR\`, each
member keeps its journal in \`DIR/node-ID\`.

A Byzantine member runs the correct algorithm, but its messages are altered. Its choices depend on \`--seed\`. The behaviors are:

| Behavior | Effect |
|---|---|
${Object.entries(behaviourSummaries)
  .map(([name, summary]) => `| \`${name}\` | ${summary} |`)
  .join("\n")}

An id without a behavior means \`adversary\`. Byzantine members' opinions about the leader do not count.

\`--record\` writes a trace for \`coterie trace\`. If the disk is too slow, entries are left out and the gap is marked in the file.

The members' logs go to stderr. With \`--json\`, stdout has one object per line. The first is

\`\`\`json
{ "event": "ready", "studio": url | null, "admin": url, "leader", "nodes": [{ "id", "pid", "address", "admin", "byzantine"? }], "seed"? }
\`\`\`

followed by these events:

| Event | Fields | Meaning |
|---|---|---|
| \`leader\` | \`leader\`, \`agreed\` | all running members agree on a leader, and that leader is running |
| \`exited\` | \`node\`, \`pid\`, \`signal\`, \`code\`, \`restartInMs\` | a process ended; \`restartInMs\` is null if it is not restarted |
| \`started\`, \`paused\`, \`resumed\` | \`node\`, \`pid\` | a process started, was paused or was resumed |
| \`disagreement\` | \`opinions\`: each with a leader and its nodes | members have disagreed for more than 0.3 s |
| \`network\` | \`act\`, \`cuts\`, \`dropRate\`, \`delayMs\` | the faults on the links changed |
| \`stopping\` | none | all members are about to stop |`,
};

function knownProtocol(name: string): string {
  protocolNamed(name);
  return name;
}

function soundName(name: string): string {
  return requireClusterName(name, "--name", "bad-argument");
}

async function up(options: UpOptions): Promise<void> {
  const { base, server } = await takePorts(options.port, options.nodes);
  const admin = `http://${HOST}:${base}`;
  const studio = options.studio ? admin : null;
  const report = options.json === true ? jsonReport(studio, admin) : textReport({ ...options, studio, admin });
  const recorder = options.record === undefined ? null : recorderFor(options.record, options);
  const caretaker = startCaretaker();
  const cluster = localCluster(options, base, caretaker, report, recorder);
  const stopped = stopOnSignal(cluster);
  const answer = getRequestListener(studioPages({ cluster, port: base, studio: options.studio }).fetch);
  server.on("request", (request, response) => void answer(request, response));
  try {
    if (await cluster.start()) await stopped;
  } finally {
    await cluster.stop();
    await closed(server);
    caretaker.release();
    const entries = await recorder?.close();
    if (entries !== undefined) say(`recorded ${entries.toLocaleString("en")} entries to ${options.record}`);
  }
}

function recorderFor(file: string, { protocol, nodes, force, byzantine }: UpOptions): Recorder {
  return record({
    file,
    force: force === true,
    header: recordingHeader(
      protocol,
      Array.from({ length: nodes }, (_, node) => node),
      byzantine,
    ),
    onFailure: ({ message }) => say(`${message}; the cluster continues without a recording`),
  });
}

/** Writes to stderr, because stdout may be read by a program. */
const say = (text: string): void => void process.stderr.write(`coterie: ${text}\n`);

function localCluster(
  options: UpOptions,
  base: number,
  caretaker: Caretaker,
  report: Announcer,
  recorder: Recorder | null,
): LocalCluster {
  const { byzantine, seed } = options;
  const configFile = join(caretaker.folder, "cluster.json");
  const config = configFor(options, base, resolve(options.data ?? caretaker.folder));
  writeFileSync(configFile, JSON.stringify(config, null, 2));
  return new LocalCluster({
    config: parseConfig(config, caretaker.folder),
    launch: {
      entry: packageFile("dist/cli/coterie.js"),
      configFile,
      wordsFor(node) {
        const behaviour = byzantine[node];
        return behaviour === undefined ? [] : ["--byzantine", behaviour, "--seed", String(seed)];
      },
    },
    liars: byzantine,
    seed,
    restarts: options.restart === true,
    caretaker,
    onEvent(event) {
      report.onEvent(event);
      // The recording does not include the shutdown of the members.
      if (event.event === "stopping") void recorder?.close();
    },
    log: report.log,
    recorder,
  });
}

/**
 * Returns the content of the members' config file. If the protocol uses signatures, also creates keys. A member keeps
 * its key for as long as it keeps its journal.
 */
function configFor({ name, protocol, nodes }: UpOptions, base: number, journals: string): object {
  const ids = Array.from({ length: nodes }, (_, node) => node);
  const members = ids.map((node) => [
    node,
    { address: `${HOST}:${memberPort(base, node)}`, admin: `${HOST}:${adminPort(base, node)}` },
  ]);
  const dataDir = join(journals, "node-{id}");
  const config = { cluster: name, protocol, members: Object.fromEntries(members), dataDir };
  if (!needsKeys(protocolNamed(protocol).node())) return config;
  const keys = { own: join(dataDir, "signing.key"), all: join(journals, "keys", "{id}.pub") };
  makeKeys(keys, ids);
  return { ...config, keys };
}

/** Resolves once the cluster has stopped after a signal. */
function stopOnSignal(cluster: LocalCluster): Promise<void> {
  return new Promise((resolve, reject) => {
    let asked = false;
    const stop = (): void => {
      if (asked) return cluster.kill();
      asked = true;
      cluster.stop().then(resolve, reject);
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
    process.stdout.on("error", () => asked || stop()); // The reader of stdout has closed the pipe.
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** Prints the events of a local cluster. */
export interface Announcer {
  readonly onEvent: (event: LifecycleEvent) => void;
  /** Prints a line from a member's log. */
  readonly log: (node: NodeId, line: string) => void;
}

type EventNamed<E extends LifecycleEvent["event"]> = Extract<LifecycleEvent, { event: E }>;

/** Returns an announcer that prints each event as a line of JSON. */
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
  /** The base port from `--port`. With 0, the command chooses one. */
  readonly port: number;
  readonly restart?: true;
}

/** Returns an announcer that prints events as sentences. */
export function textReport(options: TextReportOptions): Announcer {
  const say = (text: string): void => printText(`${text}\n`, process.stdout);
  let leader: NodeId | null = null;
  let all: readonly NodeId[] = [];
  let isStopping = false;
  return {
    onEvent(event) {
      if (isStopping) return; // Members are expected to exit now.
      if (event.event === "ready") {
        ({ leader } = event);
        all = event.nodes.map(({ id }) => id);
        return say(welcome(event, options));
      }
      if (event.event === "leader") {
        if (event.leader === leader) return;
        ({ leader } = event);
      }
      if (event.event === "disagreement") leader = null; // Report the next leader, even if it is the same as before.
      isStopping = event.event === "stopping";
      if (isStopping && process.stdout.isTTY) say(""); // The terminal has just printed ^C.
      say(`${styled("dim", clock())}  ${sentence(event, all)}`);
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
    seed === undefined ? [] : [`  Seed of the Byzantine members: ${seed}`],
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
      leader === null ? "kill a member" : "kill the leader; another takes over within a second",
    ],
    [`  npx coterie status${address}`, "show the members and the leader"],
    ...(studio === null
      ? []
      : ([["  open the studio", "kill or pause a member, cut a link, split the cluster"]] as [string, string][])),
    ...(restart
      ? []
      : ([[`  npx coterie up --restart${same}`, "next time: restart members that crash"]] as [string, string][])),
  ];
  return { named: rows.map(([command, what]) => [styled("cyan", command), what]) };
}

function sentence(event: Exclude<LifecycleEvent, { event: "ready" }>, all: readonly NodeId[]): string {
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
      return styled(event.act.type === "mend" || event.act.type === "heal" ? "green" : "yellow", network(event, all));
    case "stopping":
      return "stopping all members";
  }
}

function howItEnded({ signal, code }: EventNamed<"exited">): string {
  if (signal !== null) return `was killed by ${signal}`;
  return code === null ? "could not be started" : `ended with exit code ${code}`;
}

function whatNow({ restartInMs, code }: EventNamed<"exited">): string {
  if (restartInMs !== null) return `; it restarts in ${restartInMs / 1_000} s`;
  return code === 2 ? "; it is not restarted, because the same error would occur again: see its log" : "";
}

function followers({ leader, agreed }: EventNamed<"leader">): string {
  const others = agreed.filter((node) => node !== leader);
  return others.length === 0 ? "" : `, and ${list(others)} ${others.length === 1 ? "follows" : "follow"}`;
}

function opinion({ leader, nodes }: EventNamed<"disagreement">["opinions"][number]): string {
  return `${list(nodes)} ${nodes.length === 1 ? "follows" : "follow"} ${leader ?? "no leader"}`;
}

function network({ act, dropRate, delayMs: [min, max] }: EventNamed<"network">, all: readonly NodeId[]): string {
  switch (act.type) {
    case "cut":
      return `the link between ${list(act.nodes)} is cut`;
    case "mend":
      return `the link between ${list(act.nodes)} is repaired`;
    case "split": {
      const alone = all.filter((node) => !act.groups.flat().includes(node)).map((node) => [node]);
      const groups = [...act.groups.filter((group) => group.length > 0), ...alone];
      return groups.length === 1 ? "every link is repaired" : `the network is split: ${groups.map(list).join(" | ")}`;
    }
    case "heal":
      return "all links work, and no message is dropped or delayed";
    case "link-conditions":
      return `${Math.round(dropRate * 100)} % of messages are dropped, and the others are delayed by ${min} to ${max} ms`;
  }
}

function clock(): string {
  return new Date().toTimeString().slice(0, 8);
}

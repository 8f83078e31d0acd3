/** `coterie up`: a cluster of real processes on this machine, watched over until Ctrl-C. */
import { randomInt } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { getRequestListener } from "@hono/node-server";
import type { Command } from "commander";
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
import { protocolNamed, protocolNames } from "../../protocols/index.ts";
import { makeKeys, needsKeys } from "../../runtime/member-keys.ts";
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
  command
    .description("Starts members as processes of their own on this machine, watches over them, and serves the studio.")
    .option("--nodes <n>", `how many members, 1 to ${MAX_NODES}`, wholeNumber("--nodes", 1, MAX_NODES), DEFAULT_NODES)
    .option("--protocol <name>", `what they run: ${protocolNames.join(", ")}`, knownProtocol, "bully")
    .option("--port <p>", "base port; 0: any free range", port, DEFAULT_PORT)
    .option("--name <name>", "the cluster's name", soundName, "demo")
    .option("--restart", "start a member again when it dies, but not after exit code 2, which would come back")
    .option("--data <dir>", "keep the members' journals there; else they go when this ends")
    .option(
      "--byzantine <list>",
      "members that lie, for the others to be seen beside them: 2, or 2,4=equivocate",
      (text) => liars(text, "--byzantine"),
      {},
    )
    .option("--seed <n>", "with --byzantine: equal seeds choose alike (default: any)", seed)
    .option("--no-studio", "serve the status only, no page")
    .option("--record <file>", "record what every member does, as a trace")
    .option("--force", "overwrite the file of --record")
    .option("--json", "say what happens as JSON lines on stdout")
    .addHelpText("after", EXPLANATION)
    .action((options: Given) => up(settled(options)));
}

type Given = Omit<UpOptions, "seed"> & { readonly seed?: number };

/** @throws UsageError for members that are none */
function settled(options: Given): UpOptions {
  const { byzantine, nodes, seed: given } = options;
  const ids = Array.from({ length: nodes }, (_, node) => node);
  for (const id of Object.keys(byzantine)) requireKnown("--byzantine", ids, Number(id));
  if (given !== undefined && Object.keys(byzantine).length === 0)
    throw new UsageError("bad-argument", "expected --seed to come with --byzantine, such as --byzantine 2=equivocate");
  return { ...options, seed: given ?? randomInt(MAX_SEED + 1) };
}

const EXPLANATION = `
Example:
  $ coterie up --nodes 5 --restart
  then, in another terminal, kill -9 the leader's pid, or open the studio and press Kill.

Ports: the studio and GET /status use the base port P, member i uses P+1+i, and its admin pages P+101+i.

With --json, stdout has one object per line. The first is
  { "event": "ready", "studio": url | null, "admin": url, "leader", "nodes": [{ "id", "pid", "address", "admin" }] }
followed, as things happen, by
  { "event": "leader", "leader", "agreed": [id, …] }   every running member agrees, and the leader runs
  { "event": "exited", "node", "pid", "signal", "code", "restartInMs" }   null: it is not started again
  { "event": "started" | "paused" | "resumed", "node", "pid" }
  { "event": "disagreement", "opinions": [{ "leader": id | null, "nodes": [id, …] }] }   for more than 0.3 s
  { "event": "network", "act": { "type": "cut", … }, "cuts": [[from, to], …], "dropRate", "delayMs": [min, max] }
  { "event": "stopping" }
GET {admin}/status answers
  { "cluster", "protocol", "nodes": [{ "id", "pid", "alive", "leader", "term", "role", "process", "address", "admin", "refusals" }] }
The members' logs go to stderr.

A member of --byzantine runs the true algorithm, but what it sends is changed, by choices that come from --seed:
${Object.entries(behaviourSummaries)
  .map(([name, summary]) => `  ${name.padEnd(12)}${summary}`)
  .join("\n")}
2 alone means that it says anything. "ready" then has "byzantine" at these nodes, and "seed"; their opinions do not count.

--record writes what every member does to a file, for \`coterie trace\`. If the disk is too slow, entries are left out, and
the file says so.

With --data, members keep their journals in DIR/node-ID and find them there the next time. Without it, journals last as
long as this command, so a member that is killed and started again still has its own.

Ctrl-C stops everything; a second Ctrl-C kills it. Members also stop if this process is killed.
Exit codes: 0 stopped as asked; 1 the cluster could not start; 2 wrong arguments, or a port is taken.`;

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
    onFailure: ({ message }) => say(`${message}; the cluster goes on without a recording`),
  });
}

/** On stderr: stdout may be read by a program. */
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
      entry: fileURLToPath(new URL("../coterie.js", import.meta.url)),
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
      // That every member ends now is not part of the run.
      if (event.event === "stopping") void recorder?.close();
    },
    log: report.log,
    recorder,
  });
}

/** The config file that every member reads. What signs gets keys, each member's own in its directory: they last as long as its journal. */
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

/** Resolves when somebody asked for the end and it has come. */
function stopOnSignal(cluster: LocalCluster): Promise<void> {
  return new Promise((resolve, reject) => {
    let asked = false;
    const stop = (): void => {
      if (asked) return cluster.kill();
      asked = true;
      cluster.stop().then(resolve, reject);
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
    process.stdout.on("error", () => asked || stop()); // Nobody listens any more.
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

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

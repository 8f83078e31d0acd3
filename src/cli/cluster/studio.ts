/** `coterie studio`: serves the laboratory, or the studio for members running elsewhere, until Ctrl-C. */
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Command } from "commander";
import { AttachedCluster } from "../../cluster/attached-cluster.ts";
import { type Recorder, record } from "../../cluster/local/recorder.ts";
import { laboratoryPages, studioPages } from "../../cluster/studio-server.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { recordingHeader } from "../../experiment/recording.ts";
import { type Manual, withManual } from "../manual.ts";
import { adminUrl, DEFAULT_PORT, port } from "../options.ts";
import { HOST } from "./ports.ts";

interface StudioOptions {
  readonly attach?: readonly string[];
  readonly port: number;
  readonly record?: string;
  readonly force?: true;
  readonly json?: true;
}

export function declare(command: Command): void {
  const attach = adminUrl("--attach", "http://127.0.0.1:7501");
  withManual(command, manual)
    .description("Serves the laboratory or, with --attach, the studio for members running elsewhere.")
    .option(
      "--attach <url...>",
      "admin address of a member; repeat for more members of the same cluster",
      (text: string, before: readonly string[] = []) => [...before, attach(text)],
    )
    .option("--port <p>", "port of the studio; 0 chooses a free port", port, DEFAULT_PORT)
    .option("--record <file>", "record a trace of the members")
    .option("--force", "overwrite the file that --record names")
    .option("--json", "print one line of JSON on stdout when the studio is ready")
    .action(studio);
}

const manual: Manual = {
  examples: [
    "coterie studio",
    "coterie studio --attach http://127.0.0.1:7501 --attach http://127.0.0.1:7502",
    "coterie studio --attach http://127.0.0.1:7501 --record live.jsonl",
  ],
  exitCodes: "0 stopped by Ctrl-C; 1 a member does not answer, or the port is taken; 2 invalid arguments",
  details: `Without \`--attach\`, the command serves the laboratory, in the browser: run, step through, break and check any algorithm.

Set a member's admin address with \`join({ admin: "127.0.0.1:7501" })\` or in its config file. The studio shows only attached members,
and never starts, kills or pauses a process. It can cut and slow down links if all attached members were started with
\`join({ faultInjector: true })\` or \`--fault-injector\`.

With \`--json\`, stdout has one line: \`{ "event": "ready", "studio": url, "cluster", "protocol", "nodes": [{ "id", "admin" }] }\`. The
laboratory prints \`{ "event": "ready", "studio": url }\`.`,
};

async function studio(options: StudioOptions): Promise<void> {
  const { attach, record } = options;
  if (attach !== undefined) return attached(attach, options);
  if (record !== undefined)
    throw new UsageError("bad-argument", "expected --attach with --record: the laboratory has no members");
  await laboratory(options);
}

async function laboratory({ port: wanted, json }: StudioOptions): Promise<void> {
  const server = await listening(wanted);
  const { port: bound } = server.address() as { port: number };
  const answer = getRequestListener(laboratoryPages(bound).fetch);
  server.on("request", (request, response) => void answer(request, response));
  const url = `http://${HOST}:${bound}/laboratory.html`;
  const text = `laboratory: ${url}\nCtrl-C stops it.`;
  process.stdout.write(`${json === true ? JSON.stringify({ event: "ready", studio: url }) : text}\n`);
  await stopSignal();
  server.close();
  server.closeAllConnections();
}

async function attached(attach: readonly string[], options: StudioOptions): Promise<void> {
  const { record: file } = options;
  const recorders: Recorder[] = [];
  const cluster = await AttachedCluster.to(attach, ({ protocol }, nodes) => {
    if (file === undefined) return null;
    const recorder = recorderFor(file, options.force === true, protocol, nodes);
    recorders.push(recorder);
    return recorder;
  });
  let server: Server | null = null;
  try {
    server = await listening(options.port);
    const { port: bound } = server.address() as { port: number };
    const answer = getRequestListener(studioPages({ cluster, port: bound, studio: true }).fetch);
    server.on("request", (request, response) => void answer(request, response));
    sayReady(cluster, `http://${HOST}:${bound}`, options.json === true);
    await stopSignal();
  } finally {
    await cluster.close();
    server?.close();
    server?.closeAllConnections();
    for (const recorder of recorders)
      say(`recorded ${(await recorder.close()).toLocaleString("en")} entries to ${file}`);
  }
}

function sayReady({ picture }: AttachedCluster, url: string, asJson: boolean): void {
  const { name: cluster, protocol } = picture;
  const nodes = picture.nodes.map(({ id, admin }) => ({ id, admin }));
  const ready = { event: "ready", studio: url, cluster, protocol, nodes };
  const text = `studio of ${cluster} (${protocol}, ${nodes.length === 1 ? "1 member" : `${nodes.length} members`}): ${url}\nCtrl-C stops it; the members continue.`;
  process.stdout.write(`${asJson ? JSON.stringify(ready) : text}\n`);
}

function recorderFor(file: string, force: boolean, protocol: string, nodes: readonly NodeId[]): Recorder {
  const header = recordingHeader(protocol, nodes);
  return record({ file, force, header, onFailure: ({ message }) => say(`${message}; the studio stays open`) });
}

/** Writes to stderr, because stdout may be read by a program. */
const say = (text: string): void => void process.stderr.write(`coterie: ${text}\n`);

/** @throws EnvironmentError if the port is in use */
function listening(wanted: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", ({ code, message }: NodeJS.ErrnoException) => {
      const why = code === "EADDRINUSE" ? "taken" : `not usable (${code ?? message})`;
      const text = `port ${wanted} is ${why}: choose another with --port (0: any free port)`;
      reject(new EnvironmentError("cannot-listen", text));
    });
    server.listen(wanted, HOST, () => resolve(server));
  });
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve());
    process.stdout.on("error", () => resolve()); // The reader of stdout has closed the pipe.
  });
}

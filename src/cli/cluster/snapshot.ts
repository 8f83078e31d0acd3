/** `coterie snapshot`: what members share, saved to a file, looked at, and a new cluster founded from it. */

import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Command } from "commander";
import { readServiceConfig } from "../../cluster/config.ts";
import { restoreCluster } from "../../cluster/snapshot/restored-folders.ts";
import { salvageFolders } from "../../cluster/snapshot/salvaged-folders.ts";
import { readSnapshotFile, type Snapshot, type SnapshotHeader } from "../../cluster/snapshot/snapshot-file.ts";
import { UsageError } from "../../core/errors.ts";
import { counted } from "../../experiment/paragraph.ts";
import { OWN_NAMES } from "../../protocols/service/coordination-service/operations.ts";
import { entriesOf, keysOf, valuesOf } from "../../protocols/service/coordination-service/table.ts";
import { docsPage } from "../../runtime/docs-page.ts";
import { type DataOptions, withDataOptions } from "../client/endpoints.ts";
import { codeAfter, ExitWith, type Invocation, progressLine, say } from "../output.ts";
import { snapshotFrom } from "./member-call.ts";
import { blameTheCaller } from "./own-member.ts";

export function declare(command: Command, invocation: Invocation): void {
  declareSave(command, invocation);
  declareShow(command, invocation);
  declareRestore(command, invocation);
  command.addHelpText("after", GROUP);
}

const GROUP = `
Example:
  $ coterie snapshot save demo.snapshot --endpoints http://10.0.0.1:7300
  $ coterie snapshot restore --help      what it takes, in full`;

interface SaveOptions extends DataOptions {
  readonly from?: readonly string[];
}

function declareSave(command: Command, invocation: Invocation): void {
  const save = command
    .command("save")
    .summary("save what the members share to a file")
    .description(
      "Saves all that the members share to a file: linearizable, while they work. With --from, out of folders, where no majority is left.",
    )
    .argument("<file>", "takes the place of one of this name once it is whole");
  withDataOptions(save)
    .option("--from <dirs...>", "instead of a cluster: the folders of members that are left, all of them stopped")
    .addHelpText("after", SAVE)
    .action((file: string, options: SaveOptions) => run(() => saveTo(file, options, invocation)));
}

const SAVE = `
Example:
  $ coterie snapshot save demo.snapshot --endpoints http://10.0.0.1:7300
  saved demo.snapshot: revision 1207 of demo
  $ coterie snapshot save demo.snapshot --from journal-2

It needs the role admin. The file is not encrypted: protect it as you protect the data.
--from reads the longest log of the given folders; their members must be stopped. What was acknowledged but reached none of
these folders is lost, and what was not acknowledged may be in the file. When to use it: ${docsPage("operate/recovery.md")}
With --json: { "file", "cluster", "revision", "salvaged" }.

Exit codes: 0 saved; 1 no member answers in time, or the disk refuses; 2 wrong arguments, not allowed, or unusable folders;
130 after Ctrl-C. No file is written unless it is 0.`;

async function saveTo(file: string, options: SaveOptions, invocation: Invocation): Promise<void> {
  const { from, json } = options;
  if (from !== undefined && options.endpoints !== undefined)
    throw new UsageError("bad-argument", "expected --from or --endpoints, got both");
  let isComplete = true;
  const { header } = await written(file, async (part, signal) => {
    if (from === undefined) return downloadTo(part, options, signal, invocation);
    const salvaged = await salvageFolders(from);
    isComplete = salvaged.isComplete;
    for await (const bytes of salvaged.bytes) await part.write(bytes);
  });
  const { cluster, revision, salvaged } = header;
  if (!isComplete)
    invocation.stderr.write(
      `coterie: these are not the folders of a majority of the members that voted, ${salvaged?.voters.join(", ")}: what was acknowledged and reached none of them is lost\n`,
    );
  const text = `saved ${file}: revision ${revision} of ${cluster}`;
  invocation.stdout.write(`${json === true ? JSON.stringify({ file, cluster, revision, salvaged }) : text}\n`);
}

async function downloadTo(part: FileHandle, options: SaveOptions, signal: AbortSignal, { stderr }: Invocation) {
  const line = progressLine(stderr);
  let bytes = 0;
  const take = async (chunk: Buffer): Promise<void> => {
    await part.write(chunk);
    bytes += chunk.length;
    line.show(() => `saving: ${bytes} bytes`);
  };
  await snapshotFrom(options, { signal, take }).finally(() => line.clear());
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Beside the file, which it becomes once it is whole and durable. @throws ExitWith after a signal */
async function written(
  file: string,
  write: (part: FileHandle, signal: AbortSignal) => Promise<unknown>,
): Promise<Snapshot> {
  const name = `${file}.part-${process.pid}`;
  const stopped = new AbortController();
  const stop = (signal: NodeJS.Signals): void => stopped.abort(new ExitWith(codeAfter(signal)));
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    const part = await open(name, "wx", 0o600).catch((error: unknown) => {
      throw new UsageError("cannot-write", `cannot write beside ${file}: ${(error as Error).message}`);
    });
    try {
      await write(part, stopped.signal);
      await part.sync();
    } finally {
      await part.close();
    }
    const snapshot = await readSnapshotFile(name);
    stopped.signal.throwIfAborted();
    await rename(name, file);
    await syncFolder(dirname(file));
    return snapshot;
  } finally {
    await rm(name, { force: true });
    for (const signal of SIGNALS) process.off(signal, stop);
  }
}

/** So that the name is durable, too. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function declareShow(command: Command, { stdout }: Invocation): void {
  command
    .command("show")
    .summary("what a snapshot holds")
    .description("Says what a snapshot holds, after it has looked whether the file is whole.")
    .argument("<file>", "a snapshot")
    .option("--json", "print it as JSON")
    .addHelpText("after", SHOW)
    .action(async (file: string, { json }: { json?: true }) => {
      const contents = contentsOf(await readSnapshotFile(file));
      const lines = Object.entries(inWords(contents)).map(([name, value]) => `${name.padEnd(10)} ${value}\n`);
      stdout.write(json === true ? `${JSON.stringify(contents)}\n` : lines.join(""));
    });
}

const SHOW = `
Example:
  $ coterie snapshot show demo.snapshot
  cluster    demo
  saved      2026-11-23T16:40:00.000Z by member 2
  revision   1207
  maps       3 with 120 keys
  …

With --json: { "cluster", "member", "at", "revision", "salvaged", "maps", "keys", "counters", "queues", "items", "machines",
"sessions", "leasedKeys", "grants" }: counts, but "at" is in milliseconds since 1970, "salvaged" null or { "folders", "voters",
"uncertain" }, and "machines" a list of names.

Exit codes: 0 it is whole; 2 it is no snapshot, is cut off or was altered, or there is none.`;

interface RestoreOptions {
  readonly config: string;
  readonly data?: string;
  readonly json?: true;
}

function declareRestore(command: Command, { stdout }: Invocation): void {
  command
    .command("restore")
    .summary("found a new cluster from a snapshot")
    .description(
      "Founds a new cluster from a snapshot: makes the folders of all its members, each of which is then brought to its machine.",
    )
    .argument("<file>", "a snapshot")
    .requiredOption("--config <file>", "the config of the new cluster; its name and members may be the old ones")
    .option(
      "--data <dir>",
      "where the folders are made, {id} stands for the member's id, instead of the config's dataDir",
    )
    .option("--json", "print what was made as JSON")
    .addHelpText("after", RESTORE)
    .action((file: string, options: RestoreOptions) =>
      run(async () => {
        const { cluster, members, dataDir } = readServiceConfig(options.config);
        const ids = Object.keys(members).map(Number);
        const folder = folderFor(options.data ?? dataDir, ids);
        const folderOf = (id: number): string => folder.replaceAll("{id}", String(id));
        const of = { cluster, members: ids, folderOf, log: { warn: say } };
        const { revision } = await restoreCluster(await readSnapshotFile(file), of);
        const folders = Object.fromEntries(ids.map((id) => [id, folderOf(id)]));
        const lines = ids.map((id) => `made ${folderOf(id)}: start member ${id} with it\n`);
        stdout.write(options.json === true ? `${JSON.stringify({ cluster, revision, folders })}\n` : lines.join(""));
      }),
    );
}

/** @throws UsageError if the folders of several members would be one */
function folderFor(folder: string | null, ids: readonly number[]): string {
  if (folder === null)
    throw new UsageError(
      "bad-argument",
      "expected --data, or a dataDir in the config, to say where the folders are made",
    );
  if (ids.length === 1 || folder.includes("{id}")) return folder;
  throw new UsageError("bad-argument", `expected {id} in ${folder}, as each of the ${ids.length} members has its own`);
}

const RESTORE = `
Example:
  $ coterie snapshot restore demo.snapshot --config cluster.json --data 'new/{id}'
  made new/1: start member 1 with it
  …

Stop all members of the old cluster first, and never use their folders again: a majority of them would go on as a separate
cluster. Tokens and revisions continue above the old ones. Sessions end: their locks are free, their leased keys are gone,
and items that they had taken are back in the queues. More: ${docsPage("operate/recovery.md")}
Folders must be empty.
With --json: { "cluster", "revision", "folders": { id: folder } }.

Exit codes: 0 made; 1 the disk refuses; 2 wrong arguments, a file that is no snapshot, or a folder that is in use.`;

async function run(work: () => Promise<void>): Promise<void> {
  await work().catch(blameTheCaller);
}

/** As `--json` prints it. */
export interface SnapshotContents extends SnapshotHeader {
  readonly maps: number;
  readonly keys: number;
  readonly counters: number;
  readonly queues: number;
  /** Those that were taken among them. */
  readonly items: number;
  /** By name. */
  readonly machines: readonly string[];
  /** What a restored cluster has none of: sessions, and the keys and grants that end with them. */
  readonly sessions: number;
  readonly leasedKeys: number;
  readonly grants: number;
}

export function contentsOf({ header, data }: Snapshot): SnapshotContents {
  const isOfUsers = (name: string): boolean => !name.startsWith(OWN_NAMES);
  const maps = [...entriesOf(data.maps)].filter(([name]) => isOfUsers(name)).map(([, map]) => map);
  const keys = maps.flatMap(valuesOf);
  return {
    ...header,
    maps: maps.length,
    keys: keys.length,
    counters: keysOf(data.counters).filter(isOfUsers).length,
    queues: data.queues.size,
    items: valuesOf(data.queues).reduce((sum, queue) => sum + queue.items.length + queue.taken.length, 0),
    machines: keysOf(data.machines),
    sessions: data.sessions.length,
    leasedKeys: keys.filter(({ session }) => session !== null).length,
    grants: valuesOf(data.locks).reduce((sum, lock) => sum + lock.holders.length, 0),
  };
}

const some = (count: number, one: string, more = `${one}s`): string => counted(count, { one, more });

/** By what it is, in the order in which it is shown. */
export function inWords(contents: SnapshotContents): Readonly<Record<string, string | number>> {
  const { cluster, member, at, revision, salvaged, machines } = contents;
  const saved = `${new Date(at).toISOString()} by member ${member}`;
  const gone = [
    some(contents.sessions, "session"),
    some(contents.leasedKeys, "leased key"),
    some(contents.grants, "grant"),
  ];
  return {
    cluster,
    saved: salvaged === null ? saved : `${saved}, out of the folders of ${salvaged.folders.join(", ")}`,
    revision,
    ...(salvaged !== null && {
      uncertain: `${some(salvaged.uncertain, "entry", "entries")} at the end of the log`,
    }),
    maps: `${contents.maps} with ${some(contents.keys, "key")}`,
    counters: contents.counters,
    queues: `${contents.queues} with ${some(contents.items, "item")}`,
    machines: machines.length === 0 ? "none" : machines.join(", "),
    over: `${gone.join(", ")}: a restored cluster has none of them`,
  };
}

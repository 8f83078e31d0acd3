/** `coterie snapshot`: saves the shared state to a file, shows such a file, and founds a new cluster from it. */

import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Command } from "commander";
import { readServiceConfig } from "../../cluster/config.ts";
import { restoreCluster } from "../../cluster/snapshot/restored-folders.ts";
import { salvageFolders } from "../../cluster/snapshot/salvaged-folders.ts";
import { readSnapshotFile, type Snapshot, type SnapshotHeader } from "../../cluster/snapshot/snapshot-file.ts";
import { UsageError } from "../../core/errors.ts";
import { counted } from "../../experiment/paragraph.ts";
import { isCounterKey, isOwn, placeOf } from "../../protocols/service/keyspace/layout.ts";
import { sessionOfLease } from "../../protocols/service/keyspace/store.ts";
import { keysOf, valuesOf } from "../../protocols/service/keyspace/table.ts";
import { type DataOptions, withDataOptions } from "../client/endpoints.ts";
import { type Manual, withManual } from "../manual.ts";
import { codeAfter, ExitWith, type Invocation, progressLine, say } from "../output.ts";
import { snapshotFrom } from "./member-call.ts";
import { blameTheCaller } from "./own-member.ts";

export function declare(command: Command, invocation: Invocation): void {
  declareSave(command, invocation);
  declareShow(command, invocation);
  declareRestore(command, invocation);
  withManual(command, {
    examples: [
      "coterie snapshot save demo.snapshot",
      "coterie snapshot show demo.snapshot",
      "coterie snapshot restore demo.snapshot --config cluster.json",
    ],
    exitCodes:
      "0 done; 1 no member answered in time, or the disk failed; 2 invalid arguments, not allowed, or an invalid file",
    details: "[Recovery](../operate/recovery.md) explains when to use snapshots.",
  });
}

interface SaveOptions extends DataOptions {
  readonly from?: readonly string[];
}

function declareSave(command: Command, invocation: Invocation): void {
  const save = command
    .command("save")
    .summary("save the shared state to a file")
    .description(
      "Saves the shared state to a file while the members keep running. With --from, reads the folders of stopped members instead, for use when no majority is left.",
    )
    .argument("<file>", "output file, replaced once the snapshot is complete");
  withManual(withDataOptions(save), saveManual)
    .option("--from <dirs...>", "folders of stopped members to read instead")
    .action((file: string, options: SaveOptions) => run(() => saveTo(file, options, invocation)));
}

const saveManual: Manual = {
  examples: [
    `coterie snapshot save demo.snapshot
saved demo.snapshot: revision 1207 of demo`,
    "coterie snapshot save demo.snapshot --from journal-2",
  ],
  exitCodes:
    "0 done; 1 no member answered in time, or the disk failed; 2 invalid arguments, not allowed, or unusable folders; 130 after Ctrl-C",
  details: `The snapshot is linearizable. The command needs the role admin. The file is not encrypted: protect it as you protect the data. No file
is written unless the exit code is 0.

\`--from\` reads the longest log in the given folders, whose members must be stopped. An acknowledged write that reached none of these
folders is lost, and an unacknowledged write may be in the file. [Recovery](../operate/recovery.md) explains when to use it.

With \`--json\`: \`{ "file", "cluster", "revision", "salvaged" }\`.`,
};

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
      `coterie: these folders do not belong to a majority of the voters ${salvaged?.voters.join(", ")}: acknowledged writes that reached none of the folders are lost\n`,
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

/**
 * Writes a temporary file, and renames it once it is complete and durable.
 * @throws ExitWith after a signal
 */
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
      throw new UsageError("cannot-write", `cannot write next to ${file}: ${(error as Error).message}`);
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

/** Makes the file's new name durable by syncing its folder. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function declareShow(command: Command, { stdout }: Invocation): void {
  withManual(command.command("show"), showManual)
    .summary("check a snapshot and show its contents")
    .description("Checks that a snapshot is complete and shows its content.")
    .argument("<file>", "snapshot file")
    .option("--json", "print the content as JSON")
    .action(async (file: string, { json }: { json?: true }) => {
      const contents = contentsOf(await readSnapshotFile(file));
      const lines = Object.entries(inWords(contents)).map(([name, value]) => `${name.padEnd(10)} ${value}\n`);
      stdout.write(json === true ? `${JSON.stringify(contents)}\n` : lines.join(""));
    });
}

const showManual: Manual = {
  examples: [
    `coterie snapshot show demo.snapshot
cluster    demo
saved      2026-11-23T16:40:00.000Z by member 2
revision   1207
maps       3 with 120 keys
…`,
    "coterie snapshot show demo.snapshot --json",
  ],
  exitCodes: "0 the snapshot is complete; 2 the file is missing, incomplete, altered or not a snapshot",
  details: `The line \`ended\` counts sessions, leased keys and grants. A restored cluster does not have any of them.

With \`--json\`: \`{ "cluster", "member", "at", "revision", "salvaged", "maps", "keys", "counters", "otherKeys", "queues", "items",
"machines", "sessions", "leasedKeys", "grants" }\`. Most fields are counts. \`at\` is in milliseconds since 1970, \`salvaged\` is null or
\`{ "folders", "voters", "uncertain" }\`, and \`machines\` is a list of names.`,
};

interface RestoreOptions {
  readonly config: string;
  readonly data?: string;
  readonly json?: true;
}

function declareRestore(command: Command, { stdout }: Invocation): void {
  withManual(command.command("restore"), restoreManual)
    .summary("create a new cluster from a snapshot")
    .description(
      "Creates the folders for all members of a new cluster from a snapshot. You then move each folder to its machine.",
    )
    .argument("<file>", "snapshot file")
    .requiredOption(
      "--config <file>",
      "config file of the new cluster, which can have the same name and members as the old one",
    )
    .option("--data <dir>", "new folders, with {id} in place of a member's id; overrides dataDir in the config")
    .option("--json", "print the new folders as JSON")
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

/** @throws UsageError if several members would share a folder */
function folderFor(folder: string | null, ids: readonly number[]): string {
  if (folder === null)
    throw new UsageError("bad-argument", "expected --data, or dataDir in the config, for the new folders");
  if (ids.length === 1 || folder.includes("{id}")) return folder;
  throw new UsageError(
    "bad-argument",
    `expected {id} in ${folder}, because each of the ${ids.length} members needs its own folder`,
  );
}

const restoreManual: Manual = {
  examples: [
    "coterie snapshot restore demo.snapshot --config cluster.json",
    `coterie snapshot restore demo.snapshot --config cluster.json --data 'new/{id}'
made new/1: start member 1 with it
…`,
  ],
  exitCodes: "0 done; 1 the disk failed; 2 invalid arguments, a file that is not a snapshot, or a folder in use",
  details: `Stop all members of the old cluster first, and never use their folders again: a majority of those members would continue as a
separate cluster. The new folders must be empty.

New tokens and revisions are higher than the old ones. Sessions end: their locks are released, their leased keys are deleted, and
items that they had taken return to the queues. See [recovery](../operate/recovery.md).

With \`--json\`: \`{ "cluster", "revision", "folders": { id: folder } }\`.`,
};

async function run(work: () => Promise<void>): Promise<void> {
  await work().catch(blameTheCaller);
}

/** The contents of a snapshot, as printed by `--json`. */
export interface SnapshotContents extends SnapshotHeader {
  readonly maps: number;
  readonly keys: number;
  readonly counters: number;
  /** The number of keys that belong to no map and are no counter. Clients of etcd have written them. */
  readonly otherKeys: number;
  readonly queues: number;
  /** The number of items, including those that have been taken. */
  readonly items: number;
  /** The names of the state machines. */
  readonly machines: readonly string[];
  /**
   * The number of sessions. A restored cluster contains neither the sessions nor the keys and grants that end with
   * them.
   */
  readonly sessions: number;
  readonly leasedKeys: number;
  readonly grants: number;
}

/** Counts the contents of a snapshot, excluding names that are reserved for members. */
export function contentsOf({ header, data }: Snapshot): SnapshotContents {
  const entries = valuesOf(data.keyspace.keys).filter(({ key }) => !isOwn(key));
  const maps = entries.flatMap(({ key }) => placeOf(key)?.map ?? []);
  const counters = entries.filter(({ key }) => isCounterKey(key)).length;
  return {
    ...header,
    maps: new Set(maps).size,
    keys: maps.length,
    counters,
    otherKeys: entries.length - maps.length - counters,
    queues: data.queues.size,
    items: valuesOf(data.queues).reduce((sum, queue) => sum + queue.items.length + queue.taken.length, 0),
    machines: keysOf(data.machines),
    sessions: data.sessions.length,
    leasedKeys: entries.filter(({ lease }) => sessionOfLease(lease) !== null).length,
    grants: valuesOf(data.locks).reduce((sum, lock) => sum + lock.holders.length, 0),
  };
}

const some = (count: number, one: string, more = `${one}s`): string => counted(count, { one, more });

/** Returns the rows printed by `coterie snapshot show`, in order. */
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
    saved: salvaged === null ? saved : `${saved}, from the folders of ${salvaged.folders.join(", ")}`,
    revision,
    ...(salvaged !== null && {
      uncertain: `${some(salvaged.uncertain, "entry", "entries")} at the end of the log`,
    }),
    maps: `${contents.maps} with ${some(contents.keys, "key")}`,
    counters: contents.counters,
    "other keys": contents.otherKeys,
    queues: `${contents.queues} with ${some(contents.items, "item")}`,
    machines: machines.length === 0 ? "none" : machines.join(", "),
    ended: `${gone.join(", ")} (not in a restored cluster)`,
  };
}

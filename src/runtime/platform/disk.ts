/** The file system, as used by a journal. */
import { constants, readFileSync, readSync, write } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { claim } from "./claim.ts";
import type { Disk, DiskFile, Folder } from "./platform.ts";

/** This machine's disks. */
export const disk: Disk = {
  async makeFolder(folder) {
    const path = resolve(folder);
    const first = await mkdir(path, { recursive: true });
    if (first === undefined) return; // The folder already existed.
    // A new folder survives a power failure only if its parent is durable.
    for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
  },
  async claim(path) {
    const held = await claim(path);
    return folderAt(path, () => held.release());
  },
};

const folderAt = (path: string, release: Folder["release"]): Folder => ({
  open: (name) => open(join(path, name), "r+").then((handle) => fileOn(handle, join(path, name)), nullIfMissing),
  create: async (name) => fileOn(await open(join(path, name), "w+"), join(path, name)),
  async rename(from, to) {
    await rename(join(path, from), join(path, to));
    await syncFolder(path);
  },
  list: () => readdir(path),
  read: (name) => readFileSync(join(path, name)),
  remove: (name) => rm(join(path, name), { force: true }),
  release,
});

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

/**
 * Opens a second handle to the same file. Writes through it are durable when they return, as after `fdatasync`. This
 * takes one round trip to Node's thread pool instead of two. Returns null if such a write guarantees less than
 * `fdatasync` on this system, or if the file cannot be opened twice.
 */
const durably = (path: string): Promise<FileHandle | null> =>
  process.platform === "linux"
    ? open(path, constants.O_WRONLY | constants.O_DSYNC).catch(() => null)
    : Promise.resolve(null);

const fileOn = async (handle: FileHandle, path: string): Promise<DiskFile> => fileOf(handle, await durably(path));

const fileOf = (handle: FileHandle, synced: FileHandle | null): DiskFile => ({
  size: async () => (await handle.stat()).size,
  async readAll() {
    const bytes = Buffer.allocUnsafe((await handle.stat()).size);
    let got = 0;
    for (let count = -1; got < bytes.length && count !== 0; got += count)
      count = (await handle.read(bytes, got, bytes.length - got, got)).bytesRead;
    return bytes.subarray(0, got);
  },
  read(into, at) {
    let got = 0;
    for (let count = -1; got < into.length && count !== 0; got += count)
      count = readSync(handle.fd, into, got, into.length - got, at + got);
    return got;
  },
  write: (bytes, at) => writeAll(handle, bytes, at),
  async writeDurably(bytes, at) {
    await writeAll(synced ?? handle, bytes, at);
    if (synced === null) await handle.datasync();
  },
  truncate: (length) => handle.truncate(length),
  datasync: () => handle.datasync(),
  sync: () => handle.sync(),
  async close() {
    await synced?.close();
    await handle.close();
  },
});

/** Writes with a callback, because Node's promise API would cost more than the write itself. */
const writeAll = ({ fd }: FileHandle, bytes: Buffer, at: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const writeFrom = (from: number): void =>
      write(fd, bytes, from, bytes.length - from, at + from, (error, count) => {
        if (error !== null) reject(error);
        else if (from + count < bytes.length) writeFrom(from + count);
        else resolve();
      });
    writeFrom(0);
  });

/** Errors from file systems that cannot sync a folder. There, a rename is as durable as the file system makes it. */
const UNSUPPORTED = ["EINVAL", "EBADF", "ENOTSUP", "ENOSYS"];

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } catch (error) {
    if (!UNSUPPORTED.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    await handle.close();
  }
}

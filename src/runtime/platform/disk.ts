/** The file system, as a journal uses it. */
import { readSync } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { claim } from "./claim.ts";
import type { Disk, DiskFile, Folder } from "./platform.ts";

export const disk: Disk = {
  async makeFolder(folder) {
    const path = resolve(folder);
    const first = await mkdir(path, { recursive: true });
    if (first === undefined) return; // It was there.
    // A new folder is there after a power cut once the one around it is durable.
    for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
  },
  async claim(path) {
    const held = await claim(path);
    return folderAt(path, () => held.release());
  },
};

const folderAt = (path: string, release: Folder["release"]): Folder => ({
  open: (name) => open(join(path, name), "r+").then(fileOn, nullIfMissing),
  create: async (name) => fileOn(await open(join(path, name), "w+")),
  async rename(from, to) {
    await rename(join(path, from), join(path, to));
    await syncFolder(path);
  },
  remove: (name) => rm(join(path, name), { force: true }),
  release,
});

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}

const fileOn = (handle: FileHandle): DiskFile => ({
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
  async write(bytes, at) {
    for (let written = 0; written < bytes.length; ) {
      const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, at + written);
      written += bytesWritten;
    }
  },
  truncate: (length) => handle.truncate(length),
  datasync: () => handle.datasync(),
  sync: () => handle.sync(),
  close: () => handle.close(),
});

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

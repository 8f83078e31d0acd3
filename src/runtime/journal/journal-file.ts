/** The journal's file: written at its end, made durable, replaced as a whole. Whatever the disk refuses is said in words. */
import { randomInt } from "node:crypto";
import { readSync } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { EnvironmentError } from "../../core/errors.ts";
import { header, type Scan, scan } from "./batches.ts";

const FILE = "journal";
/** A journal that is being rewritten, or was when its process ended. */
const REWRITTEN = "journal.rewritten";

export class JournalFile {
  private constructor(
    readonly path: string,
    readonly salt: number,
    private readonly handle: FileHandle,
    /** Where the next bytes go. */
    public end: number,
  ) {}

  /** Opens the journal in `directory`, or begins one there, and tells what it holds. A torn end is cut off. */
  static async open(directory: string, maxBytes: number): Promise<{ file: JournalFile; held: Scan; cutBytes: number }> {
    const path = join(directory, FILE);
    try {
      await rm(join(directory, REWRITTEN), { force: true });
      const handle = await open(path, "r+").catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      });
      if (handle === null) {
        const file = await JournalFile.begin(directory);
        await file.install(directory);
        return { file, held: { salt: file.salt, number: 0, isMarked: true, entries: [], end: file.end }, cutBytes: 0 };
      }
      return await JournalFile.read(path, handle, maxBytes);
    } catch (error) {
      throw isOfSystem(error) ? cannot("open", path, error) : error;
    }
  }

  /** A new file beside the journal, which `install` puts into its place. */
  static async begin(directory: string): Promise<JournalFile> {
    const path = join(directory, REWRITTEN);
    const salt = randomInt(2 ** 32);
    const handle = await open(path, "w+");
    const file = new JournalFile(join(directory, FILE), salt, handle, 0);
    await file.write(header(salt));
    return file;
  }

  private static async read(path: string, handle: FileHandle, maxBytes: number) {
    try {
      const { size } = await handle.stat();
      if (size > maxBytes) throw full(path, maxBytes);
      const held = scan(await handle.readFile(), path);
      if (held.end < size) {
        await handle.truncate(held.end);
        await handle.datasync();
      }
      return { file: new JournalFile(path, held.salt, handle, held.end), held, cutBytes: size - held.end };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Appends. The bytes may be torn by a crash until `sync` has returned. */
  async write(bytes: Buffer): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      const { bytesWritten } = await this.handle.write(bytes, written, bytes.length - written, this.end + written);
      written += bytesWritten;
    }
    this.end += bytes.length;
  }

  sync(): Promise<void> {
    return this.handle.datasync();
  }

  /** Makes this file the journal, also for whoever opens it after a power cut. */
  async install(directory: string): Promise<void> {
    await this.handle.sync();
    await rename(join(directory, REWRITTEN), this.path);
    await syncDirectory(directory);
  }

  read(at: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    let got = 0;
    while (got < length) {
      const count = readSync(this.handle.fd, bytes, got, length - got, at + got);
      if (count === 0) throw new EnvironmentError("cannot-read-journal", `the journal ${this.path} became shorter`);
      got += count;
    }
    return bytes;
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** @throws EnvironmentError where there can be no such directory. */
export async function makeDirectory(directory: string): Promise<void> {
  try {
    const path = resolve(directory);
    const first = await mkdir(path, { recursive: true });
    if (first === undefined) return; // It was there.
    // A new directory is there after a power cut once the one around it is durable.
    for (let made = path; made.length >= first.length; made = dirname(made)) await syncDirectory(dirname(made));
  } catch (error) {
    throw cannot("make", directory, error);
  }
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function full(path: string, maxBytes: number): EnvironmentError {
  return new EnvironmentError(
    "journal-full",
    `the journal ${path} would be larger than its limit of ${maxBytes} bytes: raise the limit, or let the protocol compact it`,
  );
}

const WORDS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the user's share of the disk is used up",
  EIO: "the disk failed",
  EROFS: "the file system is read-only",
  EACCES: "this user may not",
  EPERM: "this user may not",
  ENOTDIR: "a part of its path is a file",
  EEXIST: "a file is in the place of the directory",
  EISDIR: "it is a directory",
  EMFILE: "too many files are open",
};

/** Whether the operating system refused something. */
export const isOfSystem = (error: unknown): boolean => error instanceof Error && "syscall" in error;

/** What the disk refused, in words; the cause has the system's own. */
export function cannot(what: "open" | "make" | "write", path: string, cause: unknown): EnvironmentError {
  const { code = "", message } = cause as NodeJS.ErrnoException;
  const subject = what === "make" ? `the journal's directory ${path}` : `the journal ${path}`;
  const why = WORDS[code] === undefined ? message : `${WORDS[code]} (${code})`;
  const then = what === "write" ? ". The node stops, for what was not confirmed yet may be lost" : "";
  return new EnvironmentError(`cannot-${what}-journal`, `cannot ${what} ${subject}: ${why}${then}`, { cause });
}

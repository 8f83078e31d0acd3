/** The journal's file, which can be appended to, synced, and replaced as a whole. Disk errors get readable messages. */
import { join } from "node:path";
import { EnvironmentError } from "../../core/errors.ts";
import type { DiskFile, Folder, Platform } from "../platform/platform.ts";
import { header, type Scan, scan } from "./batches.ts";

const FILE = "journal";
/** The name of a new journal file until it is installed. A crash may leave this file behind. */
export const REWRITTEN = "journal.rewritten";

export interface Place {
  readonly path: string;
  readonly folder: Folder;
  readonly random: Platform["random"];
}

export class JournalFile {
  readonly #content: DiskFile;
  private constructor(
    readonly path: string,
    readonly salt: number,
    content: DiskFile,
    /** The offset of the next write. */
    public end: number,
  ) {
    this.#content = content;
  }

  /** Opens the journal in `directory`, or creates one, and returns its content. A torn write at the end is cut off. */
  static async open(place: Place, maxBytes: number): Promise<{ file: JournalFile; held: Scan; cutBytes: number }> {
    const path = join(place.path, FILE);
    try {
      await place.folder.remove(REWRITTEN).catch(() => {}); // A leftover file only wastes space.
      const content = await place.folder.open(FILE);
      if (content === null) {
        const file = await JournalFile.begin(place);
        await file.sync();
        await file.install(place);
        return { file, held: { salt: file.salt, number: 0, isMarked: true, entries: [], end: file.end }, cutBytes: 0 };
      }
      return await JournalFile.#read(path, content, maxBytes);
    } catch (error) {
      throw isOfSystem(error) ? cannot("open", path, error) : error;
    }
  }

  /** Creates a new file next to the journal. `install` replaces the journal with it. */
  static async begin({ path, folder, random }: Place): Promise<JournalFile> {
    const salt = random.natural(2 ** 32);
    const file = new JournalFile(join(path, FILE), salt, await folder.create(REWRITTEN), 0);
    try {
      await file.write(header(salt));
    } catch (error) {
      await file.close();
      throw error;
    }
    return file;
  }

  static async #read(path: string, content: DiskFile, maxBytes: number) {
    try {
      const size = await content.size();
      if (size > maxBytes) throw full(path, maxBytes);
      const held = scan(await content.readAll(), path);
      if (held.end < size) {
        await content.truncate(held.end);
        await content.datasync();
      }
      return { file: new JournalFile(path, held.salt, content, held.end), held, cutBytes: size - held.end };
    } catch (error) {
      await content.close();
      throw error;
    }
  }

  /** Appends bytes. A crash may tear them until a later call to `settle` has resolved. */
  async write(bytes: Buffer): Promise<void> {
    await this.#content.write(bytes, this.end);
    this.end += bytes.length;
  }

  /** Appends bytes. They are durable once this resolves, provided that all bytes before them are, too. */
  async writeDurably(bytes: Buffer): Promise<void> {
    await this.#content.writeDurably(bytes, this.end);
    this.end += bytes.length;
  }

  /** Makes everything written so far durable. */
  settle(): Promise<void> {
    return this.#content.datasync();
  }

  /** Makes the whole file durable, including its metadata. */
  sync(): Promise<void> {
    return this.#content.sync();
  }

  /** Makes this file the journal. The file must already be durable. The replacement is durable once this resolves. */
  install({ folder }: Place): Promise<void> {
    return folder.rename(REWRITTEN, FILE);
  }

  read(at: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    if (this.#content.read(bytes, at) < length)
      throw new EnvironmentError("cannot-read-journal", `the journal ${this.path} became shorter`);
    return bytes;
  }

  close(): Promise<void> {
    return this.#content.close();
  }
}

/** Returns the error for a journal that would exceed its limit. */
export function full(path: string, maxBytes: number): EnvironmentError {
  return new EnvironmentError(
    "journal-full",
    `the journal ${path} would exceed its limit of ${maxBytes} bytes: raise the limit, or let the protocol compact the journal`,
  );
}

const WORDS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the user's disk quota is exceeded",
  EIO: "the disk failed",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ENOTDIR: "a part of its path is a file",
  EEXIST: "a file exists at this path",
  EISDIR: "it is a directory",
  EMFILE: "too many files are open",
};

/** Whether the error comes from the operating system. */
export const isOfSystem = (error: unknown): boolean => error instanceof Error && "syscall" in error;

/** Returns the cause of a disk error, as a readable message if the error code is known. */
export function reasonOf(cause: unknown): string {
  const { code = "", message } = cause as NodeJS.ErrnoException;
  return WORDS[code] === undefined ? message : `${WORDS[code]} (${code})`;
}

/** Returns an error that describes a disk failure. Its cause has the operating system's own message. */
export function cannot(what: "open" | "make" | "write", path: string, cause: unknown): EnvironmentError {
  const subject = what === "make" ? `the journal's directory ${path}` : `the journal ${path}`;
  const why = reasonOf(cause);
  const then = what === "write" ? ". The node stops, because unconfirmed writes may be lost" : "";
  return new EnvironmentError(`cannot-${what}-journal`, `cannot ${what} ${subject}: ${why}${then}`, { cause });
}

/**
 * A machine's disk with folders and files. If the power fails, writes that were not synced may be lost: the most recent
 * ones, all of them, or individual sectors within a write. Reads see all writes, whether or not they are durable.
 */
import { EnvironmentError } from "../core/errors.ts";
import type { Random } from "../core/random.ts";
import type { Disk, DiskFile, Folder } from "../runtime/platform/platform.ts";
import type { Delay } from "../sim/delay.ts";
import { sampler } from "../sim/delay.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** The speed of a disk. */
export interface DiskModel {
  /** How long a sync takes. Default: 0.2 to 2 ms. */
  readonly syncMs?: Delay;
}

const SYNC_MS: Delay = [0.2, 2];
/** How long every other operation takes. */
const ACCESS_MS = 0.05;
/** How much a disk writes atomically. */
const SECTOR_BYTES = 512;

type Change = { readonly at: number; readonly bytes: Buffer } | { readonly length: number };

/** A machine's disk. It outlives the machine's processes. */
export class SimulatedDisk {
  readonly #folders = new Map<string, SimulatedFolder>();
  readonly #usualSyncMs: () => number;
  #syncMs: () => number;
  #refusal: string | null = null;
  #fillings = 0;

  constructor(
    { syncMs = SYNC_MS }: DiskModel,
    readonly chance: Random,
  ) {
    this.#usualSyncMs = sampler(syncMs, chance, "disk.syncMs");
    this.#syncMs = this.#usualSyncMs;
  }

  /** Returns the disk as seen by one of the machine's processes. */
  of(process: SimulatedProcess): Disk {
    return {
      makeFolder: (path) => this.access(process, () => void this.#folder(path)),
      claim: (path) => this.access(process, () => this.#folder(path).claimedBy(process)),
    };
  }

  /** Makes the next sync fail with this system error code. */
  failNext(code: string): void {
    this.#refusal = code;
  }

  /**
   * Fills the disk. Creating a file or making it longer fails until the returned function is called. Calls may overlap.
   */
  fill(): () => void {
    let isOver = false;
    this.#fillings += 1;
    return () => {
      if (!isOver) this.#fillings -= 1;
      isOver = true;
    };
  }

  get isFull(): boolean {
    return this.#fillings > 0;
  }

  /**
   * Writes as much as there is room for. Existing bytes in a file can be overwritten, and some of the rest may still
   * fit.
   */
  write(file: FileContent, bytes: Buffer, at: number): void {
    const room = this.isFull ? file.length - at : bytes.length;
    if (bytes.length <= room) return file.change({ at, bytes });
    const fits = Math.max(0, room) + this.chance.below(bytes.length - Math.max(0, room));
    if (fits > 0) file.change({ at, bytes: bytes.subarray(0, fits) });
    throw refusedBySystem("write", "ENOSPC");
  }

  /** Makes syncs take `syncMs` until the returned function is called. */
  slowDown(syncMs: Delay): () => void {
    this.#syncMs = sampler(syncMs, this.chance, "syncMs");
    return () => {
      this.#syncMs = this.#usualSyncMs;
    };
  }

  /** Simulates a power failure. Data that is not durable may be lost at random. */
  losePower(): void {
    for (const folder of this.#folders.values()) folder.losePower();
  }

  wipe(): void {
    this.#folders.clear();
  }

  get isEmpty(): boolean {
    return this.#folders.size === 0;
  }

  /** Runs `act` once the request has reached the disk. */
  access<T>(process: SimulatedProcess, act: () => T, ms = ACCESS_MS): Promise<T> {
    return new Promise((resolve) => {
      process.after(ms, () => resolve(Promise.resolve().then(act)));
    });
  }

  sync(process: SimulatedProcess, file: FileContent): Promise<void> {
    const settle = file.beginSync();
    const end = (): void => {
      const code = this.#refusal;
      this.#refusal = null;
      if (code !== null) throw refusedBySystem("fdatasync", code);
      settle();
    };
    return this.access(process, end, this.#syncMs());
  }

  #folder(path: string): SimulatedFolder {
    const known = this.#folders.get(path) ?? new SimulatedFolder(this, path);
    this.#folders.set(path, known);
    return known;
  }
}

class SimulatedFolder {
  readonly #disk: SimulatedDisk;
  readonly #path: string;
  #files = new Map<string, FileContent>();
  #writer: SimulatedProcess | null = null;

  constructor(disk: SimulatedDisk, path: string) {
    this.#disk = disk;
    this.#path = path;
  }

  claimedBy(process: SimulatedProcess): Folder {
    if (this.#writer?.isAlive)
      throw new EnvironmentError(
        "journal-in-use",
        `the journal in ${this.#path} is in use by another process on this machine`,
      );
    this.#writer = process;
    const disk = this.#disk;
    return {
      open: (name) =>
        disk.access(process, () => {
          const content = this.#files.get(name);
          return content === undefined ? null : fileOn(disk, process, content);
        }),
      create: (name) =>
        disk.access(process, () => {
          if (disk.isFull) throw refusedBySystem("open", "ENOSPC");
          const content = new FileContent();
          this.#files.set(name, content);
          return fileOn(disk, process, content);
        }),
      rename: (from, to) =>
        disk.access(process, () => {
          const content = this.#files.get(from);
          if (content === undefined) throw refusedBySystem("rename", "ENOENT");
          this.#files.delete(from);
          this.#files.set(to, content);
        }),
      list: () => disk.access(process, () => [...this.#files.keys()]),
      read: (name) => {
        const content = this.#files.get(name);
        if (content === undefined) throw refusedBySystem("open", "ENOENT");
        return Buffer.from(content.read(0, content.length));
      },
      remove: (name) => disk.access(process, () => void this.#files.delete(name)),
      release: () =>
        disk.access(process, () => {
          this.#writer = null;
        }),
    };
  }

  losePower(): void {
    for (const [name, content] of this.#files) {
      content.losePower(this.#disk.chance);
      if (!content.wasSynced && this.#disk.chance.below(2) === 0) this.#files.delete(name);
    }
  }
}

const fileOn = (disk: SimulatedDisk, process: SimulatedProcess, content: FileContent): DiskFile => ({
  size: () => disk.access(process, () => content.length),
  readAll: () => disk.access(process, () => Buffer.from(content.read(0, content.length))),
  read: (into, at) => content.read(at, into.length).copy(into),
  write: (bytes, at) => disk.access(process, () => disk.write(content, Buffer.from(bytes), at)),
  async writeDurably(bytes, at) {
    await disk.access(process, () => disk.write(content, Buffer.from(bytes), at));
    await disk.sync(process, content);
  },
  truncate: (length) => disk.access(process, () => content.change({ length })),
  datasync: () => disk.sync(process, content),
  sync: () => disk.sync(process, content),
  close: () => disk.access(process, () => {}),
});

/** A file's content. It stores undo functions for the changes that are not yet durable. */
export class FileContent {
  wasSynced = false;
  readonly #bytes = new Bytes();
  /** The changes that are not yet durable, in order, each with its undo function. */
  #unsynced: { readonly change: Change; readonly takeBack: () => void }[] = [];
  /** The number of changes that have become durable. */
  #settled = 0;

  get length(): number {
    return this.#bytes.length;
  }

  read(at: number, length: number): Buffer {
    return this.#bytes.read(at, length);
  }

  change(change: Change): void {
    this.#unsynced.push({ change, takeBack: this.#bytes.change(change) });
  }

  /** Starts a sync. All changes made so far are durable once the returned function is called. */
  beginSync(): () => void {
    const begun = this.#settled + this.#unsynced.length;
    return () => {
      this.#settle(begun - this.#settled);
      this.wasSynced = true;
    };
  }

  /**
   * Simulates a power failure. Some of the first unsynced changes survive, the next one is torn, and later ones are
   * lost.
   */
  losePower(chance: Random): void {
    const lost = this.#unsynced.map(({ change }) => change);
    for (const { takeBack } of this.#unsynced.reverse()) takeBack();
    this.#settle(lost.length);
    const whole = chance.below(lost.length + 1);
    for (const change of lost.slice(0, whole)) this.#bytes.change(change);
    const torn = lost[whole];
    if (torn !== undefined && "bytes" in torn) this.#tear(torn, chance);
  }

  /** Removes up to `count` changes that are now durable. An overlapping sync may already have removed some of them. */
  #settle(count: number): void {
    if (count <= 0) return;
    this.#unsynced.splice(0, count);
    this.#settled += count;
  }

  /**
   * Writes some of the change's sectors, or none. They may be the first ones or any others, since a disk may write
   * sectors in any order.
   */
  #tear({ at, bytes }: { readonly at: number; readonly bytes: Buffer }, chance: Random): void {
    const inOrder = chance.below(2) === 0;
    if (inOrder && chance.below(2) === 0) return;
    const end = inOrder ? at + chance.below(bytes.length + 1) : at + bytes.length;
    for (let from = at; from < end; ) {
      const to = Math.min(end, (Math.floor(from / SECTOR_BYTES) + 1) * SECTOR_BYTES);
      if (inOrder || chance.below(2) === 0) this.#bytes.change({ at: from, bytes: bytes.subarray(from - at, to - at) });
      from = to;
    }
  }
}

/** Bytes that can be written at any offset. Gaps are filled with zeros. */
class Bytes {
  length = 0;
  #room = Buffer.alloc(0);

  read(at: number, length: number): Buffer {
    return this.#room.subarray(at, Math.max(at, Math.min(at + length, this.length)));
  }

  /**
   * Changes the bytes.
   * @returns an undo function. Call it after the undo functions of all later changes.
   */
  change(change: Change): () => void {
    const { length } = this;
    const [from, to] = "length" in change ? [change.length, length] : [change.at, change.at + change.bytes.length];
    const before = Buffer.from(this.read(from, to - from));
    if ("length" in change) this.#cutTo(change.length);
    else {
      this.#makeRoom(to);
      change.bytes.copy(this.#room, from);
      this.length = Math.max(length, to);
    }
    return () => {
      this.#cutTo(length);
      before.copy(this.#room, from);
    };
  }

  #cutTo(length: number): void {
    this.#room.fill(0, length);
    this.length = length;
    this.#makeRoom(length);
  }

  #makeRoom(length: number): void {
    if (length <= this.#room.length) return;
    const wider = Buffer.alloc(Math.max(length, 2 * this.#room.length, 1024));
    this.#room.copy(wider);
    this.#room = wider;
  }
}

/**
 * Returns a system error with a `code` and `syscall`, as Node would throw it. It has no stack, which would show only
 * this folder and take time to create.
 */
export function refusedBySystem(syscall: string, code: string): NodeJS.ErrnoException {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error(`${code}: ${syscall} failed: simulated disk fault`);
  Error.stackTraceLimit = stackTraceLimit;
  return Object.assign(error, { code, syscall });
}

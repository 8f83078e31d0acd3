/**
 * A machine's disk: folders with files. What was written and not synced may be lost when the power fails, in any part: the
 * end of it, all of it, or sectors in the midst of a write. Reading sees what was written, durable or not.
 */
import { EnvironmentError } from "../core/errors.ts";
import type { Random } from "../core/random.ts";
import type { Disk, DiskFile, Folder } from "../runtime/platform/platform.ts";
import type { Delay } from "../sim/delay.ts";
import { sampler } from "../sim/delay.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

export interface DiskModel {
  /** How long a sync takes. Default: 0.2 to 2 ms. */
  readonly syncMs?: Delay;
}

const SYNC_MS: Delay = [0.2, 2];
/** Whatever else is asked of the disk. */
const ACCESS_MS = 0.05;
/** What a disk writes as a whole. */
const SECTOR_BYTES = 512;

type Change = { readonly at: number; readonly bytes: Buffer } | { readonly length: number };

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

  /** As a process of the machine sees it. */
  of(process: SimulatedProcess): Disk {
    return {
      makeFolder: (path) => this.access(process, () => void this.#folder(path)),
      claim: (path) => this.access(process, () => this.#folder(path).claimedBy(process)),
    };
  }

  /** The next sync fails, with this code of the system. */
  failNext(code: string): void {
    this.#refusal = code;
  }

  /** Until the function that is returned is called, and as long as anybody else has filled it, no file gets longer and none is made. */
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

  /** Writes, as far as there is room: what a file has already can be written anew, and of what is more a part may still fit. */
  write(file: FileContent, bytes: Buffer, at: number): void {
    const room = this.isFull ? file.length - at : bytes.length;
    if (bytes.length <= room) return file.change({ at, bytes });
    const fits = Math.max(0, room) + this.chance.below(bytes.length - Math.max(0, room));
    if (fits > 0) file.change({ at, bytes: bytes.subarray(0, fits) });
    throw refusedBySystem("write", "ENOSPC");
  }

  /** Syncs take so long until the function that is returned is called. */
  slowDown(syncMs: Delay): () => void {
    this.#syncMs = sampler(syncMs, this.chance, "syncMs");
    return () => {
      this.#syncMs = this.#usualSyncMs;
    };
  }

  /** Without power, what is not durable is at the mercy of chance. */
  losePower(): void {
    for (const folder of this.#folders.values()) folder.losePower();
  }

  wipe(): void {
    this.#folders.clear();
  }

  get isEmpty(): boolean {
    return this.#folders.size === 0;
  }

  /** Does something when the disk has come to it. */
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
        `the journal in ${this.#path} is in use by a process of this machine`,
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

/** What a file holds, and what of it is durable: all but the changes that can be taken back still. */
export class FileContent {
  wasSynced = false;
  readonly #bytes = new Bytes();
  /** What is not durable, in order, each with what takes it back. */
  #unsynced: { readonly change: Change; readonly takeBack: () => void }[] = [];
  /** How many changes are not among those any more. */
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

  /** What has changed by now is durable once the function that is returned is called. */
  beginSync(): () => void {
    const begun = this.#settled + this.#unsynced.length;
    return () => {
      this.#settle(begun - this.#settled);
      this.wasSynced = true;
    };
  }

  /** Of what was not synced some changes are there, one is torn, and later ones are not. */
  losePower(chance: Random): void {
    const lost = this.#unsynced.map(({ change }) => change);
    for (const { takeBack } of this.#unsynced.reverse()) takeBack();
    this.#settle(lost.length);
    const whole = chance.below(lost.length + 1);
    for (const change of lost.slice(0, whole)) this.#bytes.change(change);
    const torn = lost[whole];
    if (torn !== undefined && "bytes" in torn) this.#tear(torn, chance);
  }

  /** Another sync may have come to some of them before. */
  #settle(count: number): void {
    if (count <= 0) return;
    this.#unsynced.splice(0, count);
    this.#settled += count;
  }

  /** Some of its sectors reach the disk, or none: the first ones, or any, for a disk may write them in any order. */
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

/** Bytes that can be written anywhere: what is left out before them is zero. */
class Bytes {
  length = 0;
  #room = Buffer.alloc(0);

  read(at: number, length: number): Buffer {
    return this.#room.subarray(at, Math.max(at, Math.min(at + length, this.length)));
  }

  /** @returns what takes it back, if all later changes have been taken back */
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

/** As Node words it: without a stack, which would be of this folder alone, and takes its time. */
export function refusedBySystem(syscall: string, code: string): NodeJS.ErrnoException {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const error = new Error(`${code}: ${syscall} failed, as the world wishes`);
  Error.stackTraceLimit = stackTraceLimit;
  return Object.assign(error, { code, syscall });
}

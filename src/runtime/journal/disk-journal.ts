/**
 * A journal in a directory that only one process at a time may write to. All records appended in one tick, or while the
 * disk is busy, share one write and one `fdatasync`. Once more than half of the file has been replaced, the journal is
 * copied to a new file while it stays in use. If copying fails before the new file is renamed, the new file is removed
 * and the journal remains unchanged.
 *
 * Once a write or sync has failed, the journal never reports anything as durable again. After a failed sync, the
 * content of the disk is unknown, and a later successful sync does not confirm earlier writes (Rebello et al., USENIX
 * ATC 2020).
 */
import { EnvironmentError, InvariantViolation, UsageError, unexpected } from "../../core/errors.ts";
import { slotReplacedBy } from "../../core/journal-slots.ts";
import { problem, type Shape, type ShapeNode, struct, text } from "../../core/shape.ts";
import type { Log } from "../log.ts";
import { type JournalCounts, measure } from "../metrics.ts";
import type { Platform } from "../platform/platform.ts";
import { codecOf, type Writer } from "../wire.ts";
import {
  Batch,
  type Declaration,
  damaged,
  type Entry,
  MAX_SLOT,
  type RecordKind,
  RecordReader,
  readDeclaration,
  type Scan,
  writeDeclaration,
} from "./batches.ts";
import { ChunkFiles } from "./chunk-files.ts";
import type { Journal, Slot } from "./journal.ts";
import { cannot, full, isOfSystem, JournalFile, type Place, reasonOf } from "./journal-file.ts";
import { defaultLimits, type JournalLimits } from "./journal-limits.ts";
import { Rewriting } from "./rewriting.ts";
import { isSame, type Kept, MAX_NAME_LENGTH, NOBODY, newlyKept, requireFree, tooMany } from "./slots.ts";

export interface JournalOptions {
  readonly platform: Pick<Platform, "clock" | "timers" | "random" | "disk">;
  /**
   * The owner of the journal. If the directory contains another owner's journal, it is rejected, because that journal's
   * promises are not this owner's.
   */
  readonly owner: string;
  readonly log: Pick<Log, "warn">;
  /**
   * Called once if the disk fails or is too slow, or if the journal is full. After that, nothing is reported as
   * durable.
   */
  readonly onFailure: (error: EnvironmentError) => void;
  readonly limits?: Partial<JournalLimits>;
  /** Counters for the bytes and records written and the time that the disk takes. */
  readonly counts?: JournalCounts;
}

/**
 * Opens the journal in `directory`. Creates the directory if it does not exist.
 * @throws EnvironmentError if another process is using the journal, if it is damaged, or if the disk fails
 */
export async function openJournal(directory: string, options: JournalOptions): Promise<Journal> {
  const limits = { ...defaultLimits, ...options.limits };
  const { disk, random } = options.platform;
  await disk.makeFolder(directory).catch((error: unknown) => {
    throw cannot("make", directory, error);
  });
  const folder = await disk.claim(directory).catch((error: unknown) => {
    throw error instanceof EnvironmentError ? error : cannot("open", directory, error);
  });
  const place: Place = { path: directory, folder, random };
  try {
    const { file, held: scan, cutBytes } = await JournalFile.open(place, limits.maxFileBytes);
    if (cutBytes > 0)
      options.log.warn(`the journal ${file.path} ended with an unconfirmed write: removed ${cutBytes} bytes`, {
        event: "journal-cut",
        bytes: cutBytes,
      });
    try {
      const journal = new DiskJournal(place, file, scan, await folder.list(), { ...options, limits });
      if (!scan.isMarked) await journal.mark();
      requireOwner(journal, directory, options.owner);
      return journal;
    } catch (error) {
      await file.close();
      throw isOfSystem(error) ? cannot("write", file.path, error) : error;
    }
  } catch (error) {
    await folder.release();
    throw error;
  }
}

function requireOwner(journal: Journal, directory: string, owner: string): void {
  const slot = journal.slot<{ owner: string }>("owner", struct({ owner: text(1_000) }));
  const [known] = slot.records;
  if (known === undefined) slot.append({ owner });
  else if (known.owner !== owner)
    throw new EnvironmentError(
      "foreign-journal",
      `${unexpected(`the journal in ${directory}`, `owned by ${owner}`, known.owner)}: give each member its own directory`,
    );
}

/** How much space to reserve for a slot's next replacement, relative to the size of the last one. */
const SPARE = 1.125;

/** A failed copy is retried at the first write after this time. */
const COPY_AGAIN_MS = 60_000;

class DiskJournal implements Journal {
  readonly #place: Place;
  readonly #options: JournalOptions & { readonly limits: JournalLimits };
  readonly #chunks: ChunkFiles;
  /** Whether records have been replaced since the last time chunk files were deleted. */
  #hasReplaced = true;
  readonly #slots = new Map<string, Kept>();
  readonly #numbered: Kept[] = [];
  /** Deleted slots. Their numbers can be reused. */
  readonly #free: Kept[] = [];
  #file: JournalFile;
  /** The number of the last batch in the file. */
  #number: number;
  #isMarked: boolean;
  /** The length of the file right after it was last rewritten. */
  #rewrittenTo = 0;
  #pending = new Batch();
  /** The batch that is being written. */
  #leaving: Batch | null = null;
  /** A finished batch whose buffer can be reused. */
  #done: Batch | null = null;
  #working: Promise<void> | null = null;
  /** The rewrite in progress, which creates the file that will replace the current one. Null if there is none. */
  #rewriting: Rewriting | null = null;
  /** The time of the last failed copy. Null if a later copy succeeded. */
  #copyFailedAt: number | null = null;
  #phase: "open" | "closed" | "failed" = "open";
  #closed: Promise<void> | null = null;

  constructor(
    place: Place,
    file: JournalFile,
    scan: Scan,
    names: readonly string[],
    options: JournalOptions & { readonly limits: JournalLimits },
  ) {
    this.#place = place;
    this.#options = options;
    this.#chunks = new ChunkFiles(place, names);
    this.#file = file;
    this.#number = scan.number;
    this.#isMarked = scan.isMarked;
    for (const entry of scan.entries) this.#apply(entry, entry.at, (at, length) => file.read(at, length));
    for (const kept of this.#numbered) {
      const { name } = kept.declared;
      if (name === NOBODY.name) this.#free.push(kept);
      else this.#slots.set(name, kept);
    }
  }

  slot<R>(name: string, shape: Shape<R>): Slot<R> {
    this.#requireOpen();
    const kept = this.#slots.get(name) ?? this.#newSlot(name, shape);
    requireFree(kept, name);
    const records = this.#recordsOf(kept);
    if (!isSame(kept.shape, shape)) this.#requireShape(name, shape, records);
    kept.isTaken = true;
    const codec = codecOf<unknown>(shape);
    const add = (kind: RecordKind, record: unknown): void => this.#add(kept, kind, (into) => codec.write(record, into));
    if (!isSame(kept.shape, shape)) {
      kept.shape = shape;
      this.#add(kept, "declare", (into) => writeDeclaration({ name, shape }, into));
      for (const record of records) add("append", record);
    }
    const read = (): R[] => this.#recordsOf(kept) as R[];
    return {
      get records() {
        return read();
      },
      append: (record) => add("append", record),
      compact: (records) => {
        slotReplacedBy(records, () => name);
        const batch = this.#pending; // All records are in one batch, so if one is rejected, none are written.
        const mark = batch.mark();
        batch.reserve(Math.ceil(kept.compactedBytes * SPARE));
        try {
          for (const [i, record] of records.entries()) add(i === 0 ? "compact" : "append", record);
        } catch (error) {
          batch.takeBackTo(mark);
          throw error;
        }
        kept.compactedBytes = batch.mark().end - mark.end;
      },
      whenDurable: (then) => this.#whenDurable(then),
      release: () => {
        kept.isTaken = false;
      },
    };
  }

  has(name: string): boolean {
    return this.#slots.has(name);
  }

  forget(name: string): void {
    this.#requireOpen();
    const kept = this.#slots.get(name);
    if (kept === undefined) return;
    requireFree(kept, name);
    this.#slots.delete(name);
    this.#add(kept, "declare", (into) => writeDeclaration(NOBODY, into));
    this.#free.push(kept);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Writes an empty batch, which shows that everything before it was durable. */
  async mark(): Promise<void> {
    await this.#write(new Batch());
    this.#isMarked = true;
  }

  #requireOpen(): void {
    if (this.#phase === "closed")
      throw new UsageError(
        "journal-closed",
        `expected the journal in ${this.#place.path} to be open, but it is closed`,
      );
  }

  #newSlot(name: string, shape: ShapeNode): Kept {
    if (name.length === 0 || name.length > MAX_NAME_LENGTH)
      throw new UsageError("bad-slot", unexpected("the slot name", `1 to ${MAX_NAME_LENGTH} characters`, name));
    const { maxSlots } = this.#options.limits;
    const free = this.#free.pop();
    if (free !== undefined) return this.#declareAs(free, { name, shape });
    const number = this.#numbered.length;
    if (number >= maxSlots || number > MAX_SLOT) throw tooMany(maxSlots, name);
    const kept = newlyKept(number, NOBODY, shape);
    this.#numbered.push(kept);
    return this.#declareAs(kept, { name, shape });
  }

  #declareAs(kept: Kept, declaration: Declaration): Kept {
    kept.shape = declaration.shape;
    this.#add(kept, "declare", (into) => writeDeclaration(declaration, into));
    this.#slots.set(declaration.name, kept);
    return kept;
  }

  #add({ number }: Kept, kind: RecordKind, write: (into: Writer) => void): void {
    this.#requireOpen();
    if (this.#phase === "failed") return; // The node has already been stopped.
    const { maxRecordBytes, maxPendingBytes } = this.#options.limits;
    const writeRecord = (into: Writer): void => {
      const start = into.position;
      write(into);
      if (kind !== "declare" && into.position - start > maxRecordBytes)
        throw new InvariantViolation(
          "large-record",
          unexpected("a journal record", `at most ${maxRecordBytes} bytes`, into.position - start),
        );
    };
    this.#pending.add(number, kind, writeRecord, this.#chunks);
    if (this.#pending.bytes + this.#chunks.waitingBytes > maxPendingBytes)
      return this.#fail(
        new EnvironmentError(
          "slow-disk",
          `the disk is too slow for the journal ${this.#file.path}: more than ${maxPendingBytes} bytes are waiting to be written. The node stops`,
        ),
      );
    this.#working ??= this.#work();
  }

  #whenDurable(then: () => void): void {
    if (this.#phase === "failed") return;
    const batch = this.#pending.isEmpty ? this.#leaving : this.#pending;
    if (batch === null) queueMicrotask(then);
    else batch.waiting.push(then);
  }

  /**
   * Writes until nothing is pending. First waits for the end of this turn of the event loop, so that everything added
   * in it is written in one batch.
   */
  async #work(): Promise<void> {
    await new Promise<void>((resolve) => this.#options.platform.timers.soon(resolve));
    while (this.#hasWork && this.#phase !== "failed") {
      const waiting = await this.#writeNext().catch((error: unknown) => this.#fail(error));
      for (const then of waiting ?? []) then();
      if (this.#hasReplaced) await this.#removeChunks();
      if (this.#phase === "open" && this.#rewriting === null && this.#isMostlyReplaced()) this.#beginRewriting();
    }
    this.#working = null;
  }

  get #hasWork(): boolean {
    return !this.#pending.isEmpty || this.#rewriting?.isCopied === true;
  }

  /**
   * Writes the pending batch, after switching to the rewritten file if that is ready.
   * @returns the callbacks waiting for the batch
   */
  async #writeNext(): Promise<Batch["waiting"]> {
    if (this.#rewriting?.isCopied === true) await this.#changeFile(this.#rewriting);
    const batch = this.#pending;
    if (batch.isEmpty) return [];
    this.#pending = new Batch(this.#done);
    this.#done = null;
    this.#leaving = batch;
    for (const { chunks = [] } of batch.entries) for (const number of chunks) await this.#writeChunk(number);
    const start = this.#file.end; // Read this after the switch, because the file may have changed.
    await this.#write(batch);
    for (const entry of batch.entries) {
      this.#apply(entry, start + entry.at, () => batch.payload(entry));
      this.#rewriting?.note(entry, start + entry.at);
    }
    this.#leaving = null;
    this.#done = batch;
    return batch.waiting;
  }

  async #writeChunk(number: number): Promise<void> {
    const bytes = await this.#chunks.write(number);
    if (this.#options.counts !== undefined) this.#options.counts.bytes += bytes;
  }

  /** Deletes the files of chunks that are not referred to by any durable or pending record. */
  async #removeChunks(): Promise<void> {
    this.#hasReplaced = false;
    if (this.#chunks.isEmpty) return;
    const named = new Set<number>();
    for (const kept of this.#numbered) for (const number of this.#chunksOf(kept)) named.add(number);
    for (const { chunks = [] } of this.#pending.entries) for (const number of chunks) named.add(number);
    await this.#chunks.keep(named);
  }

  #chunksOf(kept: Kept): ReadonlySet<number> {
    if (kept.chunks === null) this.#recordsOf(kept);
    return kept.chunks ?? new Set();
  }

  async #write(batch: Batch): Promise<void> {
    const { counts, limits, platform } = this.#options;
    const { maxFileBytes } = limits;
    if (this.#file.end + batch.bytes > maxFileBytes) throw full(this.#file.path, maxFileBytes);
    const bytes = batch.sealed(this.#number + 1, this.#file.salt);
    const began = platform.clock.now();
    await this.#file.writeDurably(bytes);
    if (counts !== undefined) {
      measure(counts.syncing, platform.clock.now() - began);
      counts.bytes += batch.bytes;
      counts.records += batch.entries.length;
    }
    this.#number += 1;
    this.#isMarked = false;
  }

  /** Registers an entry that is now durable at this position in the file. */
  #apply({ slot, kind, length, chunks }: Entry, at: number, payload: (at: number, length: number) => Buffer): void {
    if (kind === "declare") return this.#declare(slot, readDeclaration(payload(at, length)));
    const kept = this.#numbered[slot];
    if (kept === undefined) throw damaged(this.#file.path, at, "it has a record for a slot that it does not declare");
    if (kind === "compact") this.#forgetRecords(kept);
    kept.places.push(at, length);
    kept.bytes += length;
    for (const number of chunks ?? []) kept.chunks?.add(number);
  }

  #forgetRecords(kept: Kept): void {
    kept.places = [];
    kept.bytes = 0;
    kept.chunks?.clear();
    this.#hasReplaced = true;
  }

  #declare(number: number, declared: Declaration): void {
    const known = this.#numbered[number];
    if (known !== undefined) {
      known.declared = declared;
      if (!known.isTaken) known.shape = declared.shape;
      return this.#forgetRecords(known);
    }
    this.#numbered[number] = newlyKept(number, declared, declared.shape);
  }

  /** Returns a slot's records, including those that are waiting to be written. */
  #recordsOf(kept: Kept): unknown[] {
    const { places, declared, number } = kept;
    let codec = codecOf<unknown>(declared.shape);
    let records: unknown[] = [];
    const named = new Set<number>();
    const read = (payload: Buffer): void => {
      const reader = new RecordReader(payload, (reference) => this.#chunks.chunkAt(reference));
      records.push(codec.read(reader));
      for (const chunk of reader.named) named.add(chunk);
    };
    for (let i = 0; i < places.length; i += 2) read(this.#file.read(places[i] as number, places[i + 1] as number));
    kept.chunks ??= new Set(named);
    for (const batch of [this.#leaving, this.#pending])
      for (const entry of batch?.entries ?? []) {
        if (entry.slot !== number) continue;
        const payload = (batch as Batch).payload(entry);
        if (entry.kind === "declare") codec = codecOf(readDeclaration(payload).shape);
        if (entry.kind !== "append") records = [];
        if (entry.kind !== "declare") read(payload);
      }
    return records;
  }

  #requireShape(name: string, shape: ShapeNode, records: readonly unknown[]): void {
    for (const [i, record] of records.entries()) {
      const wrong = problem(shape, record, `record ${i + 1} of “${name}”`);
      if (wrong !== null)
        throw new EnvironmentError(
          "other-journal",
          `the journal ${this.#file.path} belongs to another protocol or version: ${wrong}. Use another directory, or run the program that wrote it`,
        );
    }
  }

  #isMostlyReplaced(): boolean {
    const { end } = this.#file;
    if (this.#copyFailedAt !== null && this.#options.platform.clock.now() < this.#copyFailedAt + COPY_AGAIN_MS)
      return false;
    // The file must double in size between rewrites, so that copying remains a bounded share of all writes even for
    // small records.
    if (end < Math.max(this.#options.limits.rewriteFromBytes, 2 * this.#rewrittenTo)) return false;
    return this.#liveBytes * 2 < end;
  }

  /** The total size of the records that have not been replaced. */
  get #liveBytes(): number {
    return this.#numbered.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Starts copying the live records to a new file while the journal stays in use. */
  #beginRewriting(): void {
    const left = this.#numbered.map(({ number, declared, places }) => ({ number, declared, places: [...places] }));
    const rewriting = new Rewriting(this.#place, this.#file, left, (error) => {
      if (error !== undefined) void this.#abandonCopy(rewriting, error).catch((cause: unknown) => this.#fail(cause));
      else if (this.#phase === "open") this.#working ??= this.#work();
    });
    this.#rewriting = rewriting;
  }

  /**
   * Replaces the old file with the new one once the new one is durable. If the rename fails, it is unknown which of the
   * two files is the journal.
   */
  async #changeFile(rewriting: Rewriting): Promise<void> {
    const rewritten = await rewriting.finish().catch((error: unknown) => this.#abandonCopy(rewriting, error));
    if (rewritten === undefined) return;
    const { file, number, places, copiedBytes } = rewritten;
    await file.install(this.#place);
    const old = this.#file;
    this.#rewriting = null;
    this.#copyFailedAt = null;
    this.#file = file;
    this.#rewrittenTo = file.end - (copiedBytes - this.#liveBytes);
    if (this.#options.counts !== undefined) this.#options.counts.bytes += file.end;
    this.#number = number;
    for (const kept of this.#numbered) kept.places = places.get(kept.number) ?? [];
    await old.close().catch(() => {}); // The old file is no longer the journal.
  }

  /** @throws the error unless it is caused by the disk or a limit */
  async #abandonCopy(rewriting: Rewriting, error: unknown): Promise<void> {
    if (!isOfSystem(error) && !(error instanceof EnvironmentError)) throw error;
    if (this.#copyFailedAt === null)
      this.#options.log.warn(
        `cannot compact the journal ${this.#file.path}: ${reasonOf(error)}. The member keeps using the uncompacted journal, which continues to grow, and retries every ${COPY_AGAIN_MS / 1_000} s. Free disk space if the disk is full`,
        { event: "journal-not-compacted" },
      );
    this.#copyFailedAt = this.#options.platform.clock.now();
    await rewriting.abandon();
    this.#rewriting = null;
  }

  #fail(cause: unknown): void {
    if (this.#phase === "failed") return;
    this.#phase = "failed";
    if (this.#options.counts !== undefined) this.#options.counts.failures += 1;
    const told = cause instanceof EnvironmentError ? cause : cannot("write", this.#file.path, cause);
    this.#options.onFailure(told);
  }

  async #close(): Promise<void> {
    if (this.#phase === "open") this.#phase = "closed";
    while (this.#working !== null) await this.#working;
    await this.#rewriting?.abandon();
    if (this.#phase === "closed" && !this.#isMarked) await this.mark().catch((error: unknown) => this.#fail(error));
    try {
      await this.#file.close();
    } finally {
      await this.#place.folder.release();
    }
  }
}

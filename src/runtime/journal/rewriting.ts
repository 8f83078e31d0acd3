/**
 * Rewrites a journal while it stays in use. It first copies the live records, then everything written to the journal in
 * the meantime. Writers are blocked only during the last part, just before the new file replaces the old one.
 */
import { Batch, type Declaration, type Entry, type RecordKind, writeDeclaration } from "./batches.ts";
import { JournalFile, type Place, REWRITTEN } from "./journal-file.ts";

/** A slot to copy: its declaration, and the positions of its records in the old file. */
export interface Left {
  readonly number: number;
  readonly declared: Declaration;
  readonly places: readonly number[];
}

/** A record that was written to the old file during the copy. */
interface Since {
  readonly slot: number;
  readonly kind: RecordKind;
  readonly at: number;
  readonly length: number;
}

/** A journal's new file. */
export interface Rewritten {
  readonly file: JournalFile;
  /** The number of the file's last batch. */
  readonly number: number;
  /** The positions of each slot's records in the new file. */
  readonly places: ReadonlyMap<number, number[]>;
  /** The total size of the copied records, including those that were replaced during the copy. */
  readonly copiedBytes: number;
}

/** The number of bytes copied at a time. */
const COPY_BYTES = 256 * 1024;
/** The maximum number of attempts to catch up with the writers. */
const MAX_ROUNDS = 8;

/** A rewrite in progress. */
export class Rewriting {
  readonly #place: Place;
  readonly #from: JournalFile;
  /** Whether the copy has almost caught up. If so, call `finish` while nothing else is being written. */
  isCopied = false;
  readonly #copied: Promise<void>;
  readonly #moved = new Map<number, number[]>();
  #batch = new Batch();
  /** The number of the last batch. */
  #number = 0;
  #copiedBytes = 0;
  #since: Since[] = [];
  #sinceBytes = 0;
  #next: JournalFile | null = null;
  #isAbandoned = false;
  #abandoned: Promise<void> | null = null;

  /**
   * @param left the live records. These lists must not change
   * @param onEnd called when the copy is complete or has failed, unless the rewrite was abandoned
   */
  constructor(place: Place, from: JournalFile, left: readonly Left[], onEnd: (error?: unknown) => void) {
    this.#place = place;
    this.#from = from;
    const end = (error?: unknown): void => {
      if (!this.#isAbandoned) onEnd(error);
    };
    this.#copied = this.#copy(left).then(() => end(), end);
  }

  /** Call this when a record becomes durable in the old file. */
  note({ slot, kind, length }: Entry, at: number): void {
    this.#since.push({ slot, kind, at, length });
    this.#sinceBytes += length;
  }

  /** Copies the rest and makes the copy durable, so that it can be installed. */
  async finish(): Promise<Rewritten> {
    await this.#catchUp();
    const file = this.#next as JournalFile; // By now the copy exists.
    await file.sync();
    return { file, number: this.#number, places: this.#moved, copiedBytes: this.#copiedBytes };
  }

  /**
   * Removes the copy to free its space. Never rejects. If the copy cannot be removed now, it is removed when the
   * journal is next opened.
   */
  abandon(): Promise<void> {
    this.#abandoned ??= this.#abandon();
    return this.#abandoned;
  }

  async #abandon(): Promise<void> {
    this.#isAbandoned = true;
    await this.#copied;
    await this.#next?.close().catch(() => {});
    await this.#place.folder.remove(REWRITTEN).catch(() => {});
  }

  async #copy(left: readonly Left[]): Promise<void> {
    const next = await JournalFile.begin(this.#place);
    this.#next = next;
    for (const { number, declared, places } of left) {
      this.#batch.add(number, "declare", (into) => writeDeclaration(declared, into));
      for (let i = 0; i < places.length && !this.#isAbandoned; i += 2)
        await this.#add({ slot: number, kind: "append", at: places[i] as number, length: places[i + 1] as number });
    }
    await this.#flush();
    for (let round = 0; round < MAX_ROUNDS && !this.#isAbandoned; round++) {
      const isMuch = this.#sinceBytes > COPY_BYTES;
      await this.#catchUp();
      await next.settle();
      if (!isMuch) break;
    }
    this.isCopied = !this.#isAbandoned;
  }

  async #catchUp(): Promise<void> {
    const since = this.#since;
    this.#since = [];
    this.#sinceBytes = 0;
    for (const record of since) if (!this.#isAbandoned) await this.#add(record);
    await this.#flush();
  }

  async #add({ slot, kind, at, length }: Since): Promise<void> {
    const payload = this.#from.read(at, length);
    this.#batch.add(slot, kind, (into) => into.append(payload));
    if (kind !== "declare") this.#copiedBytes += length;
    if (this.#batch.bytes > COPY_BYTES) await this.#flush();
  }

  async #flush(): Promise<void> {
    const [next, batch] = [this.#next as JournalFile, this.#batch];
    if (batch.isEmpty) return;
    const start = next.end;
    this.#batch = new Batch();
    this.#number += 1;
    await next.write(batch.sealed(this.#number, next.salt));
    for (const { slot, kind, at, length } of batch.entries) {
      if (kind !== "append") this.#moved.set(slot, []);
      if (kind !== "declare") this.#moved.get(slot)?.push(start + at, length);
    }
  }
}

/** A folder with a journal for tests, which can be opened, closed, crashed, and damaged by hand. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { EnvironmentError } from "../../src/core/errors.ts";
import { natural, type Shape, text, variants } from "../../src/core/shape.ts";
import { type JournalOptions, openJournal } from "../../src/runtime/journal/disk-journal.ts";
import type { Journal, Slot } from "../../src/runtime/journal/journal.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { closedAfterEach } from "../network/closing.ts";

export type Note = { type: "note"; number: number; words: string };
export const noteShape: Shape<Note> = variants<Note>({ note: { number: natural, words: text(1_000) } });
export const note = (number: number, words = ""): Note => ({ type: "note", number, words });

export const durable = (slot: Slot<Note>): Promise<void> => new Promise((resolve) => slot.whenDurable(resolve));

export class JournalFolder {
  path = "";
  warnings: string[] = [];
  failures: EnvironmentError[] = [];
  readonly #closing = closedAfterEach();

  get file(): string {
    return join(this.path, "journal");
  }

  async open(options: Partial<JournalOptions> = {}, at = this.path): Promise<Journal> {
    const log = { warn: (line: string) => void this.warnings.push(line) };
    const onFailure = (error: EnvironmentError): void => void this.failures.push(error);
    return this.#closing(await openJournal(at, { platform: realPlatform, owner: "me", log, onFailure, ...options }));
  }

  /** Opens the journal, takes a slot, runs `act` and closes. Returns the final contents of the slot. */
  async session(act: (slot: Slot<Note>) => unknown = () => {}, options?: Partial<JournalOptions>) {
    const journal = await this.open(options);
    const slot = journal.slot("notes", noteShape);
    await act(slot);
    const { records } = slot;
    await journal.close();
    return records;
  }

  /** Runs a session that ends in a crash. The file keeps the contents that it has when `act` ends. */
  async crash(act: (slot: Slot<Note>) => unknown): Promise<void> {
    const copy = join(this.path, "crashed");
    await this.session(async (slot) => {
      await act(slot);
      copyFileSync(this.file, copy);
    });
    copyFileSync(copy, this.file);
    rmSync(copy);
  }

  flip(at: number, bits = 0x10): void {
    const bytes = readFileSync(this.file);
    bytes[at] = (bytes[at] as number) ^ bits;
    writeFileSync(this.file, bytes);
  }

  empty(): void {
    rmSync(this.path, { recursive: true, force: true });
    mkdirSync(this.path);
  }
}

/** Call once per test file. Creates a new folder for every test. */
export function journalFolder(): JournalFolder {
  const folder = new JournalFolder();
  beforeEach(() => {
    folder.path = mkdtempSync(join(tmpdir(), "coterie-journal-"));
    folder.warnings = [];
    folder.failures = [];
  });
  afterEach(() => rmSync(folder.path, { recursive: true, force: true }));
  return folder;
}

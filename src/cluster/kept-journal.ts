/** Reads a member's folder when no member is writing to it, because the member is lost, stopped or runs elsewhere. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { ShapeNode } from "../core/shape.ts";
import { type Declaration, RecordReader, readDeclaration, scan } from "../runtime/journal/batches.ts";
import { storedChunk } from "../runtime/journal/chunk-files.ts";
import type { GroupRecord } from "../runtime/journal/group-memory.ts";
import { codecOf } from "../runtime/wire.ts";

/** The content of a journal file. The file may be in use, since each record was durable before it took effect. */
export interface KeptJournal {
  readonly folder: string;
  readonly id: NodeId;
  readonly cluster: string;
  readonly group: GroupRecord;
  readonly slots: ReadonlyMap<string, { readonly shape: ShapeNode; readonly records: readonly AnyRecord[] }>;
}
/** A record from any protocol. */
export type AnyRecord = Readonly<Record<string, unknown>>;

/** @throws UsageError `folder-in-use` if the folder contains a journal */
export function requireEmpty(folder: string): void {
  let names: readonly string[] = [];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  if (names.length === 0) return;
  throw new UsageError(
    "folder-in-use",
    `expected ${folder} to be empty or absent: use another folder, or move its contents elsewhere`,
  );
}

/**
 * @param code the error code for a refusal
 * @throws UsageError if the folder is not a member's; EnvironmentError if it cannot be read
 */
export function readKept(folder: string, code: string): KeptJournal {
  const slots = readSlots(folder);
  const group = slots.get("group")?.records[0] as unknown as GroupRecord | undefined;
  const owner = /^member (\d+) of (.+)$/s.exec(String(slots.get("owner")?.records[0]?.owner));
  if (group === undefined || owner === null || !slots.has("members"))
    throw new UsageError(code, `expected ${folder} to be the dataDir of a member started with join(), but it is not`);
  return { folder, id: Number(owner[1]), cluster: owner[2] as string, group, slots };
}

function readSlots(folder: string): KeptJournal["slots"] {
  const path = join(folder, "journal");
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new EnvironmentError("cannot-open-journal", `cannot read ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const declared = new Map<number, Declaration>();
  const slots = new Map<string, { shape: ShapeNode; records: AnyRecord[] }>();
  for (const { slot, kind, at, length } of scan(bytes, path).entries) {
    const payload = bytes.subarray(at, at + length);
    if (kind === "declare") {
      const declaration = readDeclaration(payload);
      const before = declared.get(slot)?.name;
      // The slot now has a different name, so its records under the old name are obsolete.
      if (before !== undefined && before !== declaration.name) slots.delete(before);
      declared.set(slot, declaration);
      slots.set(declaration.name, { shape: declaration.shape, records: [] });
      continue;
    }
    const { name, shape } = declared.get(slot) as Declaration;
    const records = slots.get(name)?.records ?? [];
    if (kind === "compact") records.length = 0;
    const reader = new RecordReader(payload, (reference) =>
      storedChunk(reference, folder, (file) => readFileSync(join(folder, file))),
    );
    records.push(codecOf<AnyRecord>(shape).read(reader));
  }
  return slots;
}

/** The keys of an engine: maps, counters and locks by name, and keys that go with a session; and the form of a map's values. */
import { MAP_KEYS, refused, type StoreEntry } from "../store.ts";

/** Half a character, and the zero that PostgreSQL refuses. */
const UNFIT = /[\p{Cs}\0]/u;
const LEASED = "l/";

/** The id of the engine's history and the offset of tokens (`history.ts`). */
export const HISTORY_KEY = "h/history";

export const mapPrefix = (map: string): string => `${MAP_KEYS}${encodeURIComponent(map)}/`;
export const counterKey = (name: string): string => `c/${encodeURIComponent(name)}`;
export const lockKey = (name: string): string => `g/${encodeURIComponent(name)}`;
/** Beside each key that goes with a session, so that it is found without reading all others. */
export const leaseKey = (key: string): string => `${LEASED}${key}`;
export const isLeaseKey = (key: string): boolean => key.startsWith(LEASED);
export const leasedKey = (lease: string): string => lease.slice(LEASED.length);

/** @throws UsageError for a key that not every engine can keep. */
export function mapKey(map: string, key: string): string {
  if (UNFIT.test(key)) throw refused("bad-operation", "an engine's keys have no zero and no half characters");
  return mapPrefix(map) + key;
}

/** A value of a map, with its last writer and the session that it goes with. */
export interface KeptValue {
  /** 0: it stays. */
  readonly session: number;
  /** Names the write, so that a writer whose answer was lost finds out that it was done. */
  readonly writer: string;
  readonly text: string;
}

const FORM = /^(\d{1,16}) (\S{1,80}) (.*)$/s;

export const keptText = ({ session, writer, text }: KeptValue): string => `${session} ${writer} ${text}`;

export const isKept = ({ value }: Pick<StoreEntry, "value">): boolean => FORM.test(value);

/** @throws UsageError for what others have put there. */
export function keptValue({ key, value }: Pick<StoreEntry, "key" | "value">): KeptValue {
  const [, session, writer, text] = FORM.exec(value) ?? [];
  if (session !== undefined && writer !== undefined && text !== undefined)
    return { session: Number(session), writer, text };
  throw refused("bad-operation", `what stands at ${key} was not written by Coterie`);
}

/** The names of an engine's keys, for maps, counters, locks and leases, and the format of the values in a map. */
import { MAP_KEYS, refused, type StoreEntry } from "../store.ts";

/** Matches unpaired surrogates, and the NUL character, which PostgreSQL does not accept. */
const UNFIT = /[\p{Cs}\0]/u;
const LEASED = "l/";

/** The key for the history's id and the offset of tokens (`history.ts`). */
export const HISTORY_KEY = "h/history";

/** Returns the prefix for a map's keys. */
export const mapPrefix = (map: string): string => `${MAP_KEYS}${encodeURIComponent(map)}/`;
/** Returns the key for a counter. */
export const counterKey = (name: string): string => `c/${encodeURIComponent(name)}`;
/** Returns the key for a lock. */
export const lockKey = (name: string): string => `g/${encodeURIComponent(name)}`;
/**
 * Returns the key for the lease that accompanies each of a session's keys. Leases make it possible to find these keys
 * without reading all the others.
 */
export const leaseKey = (key: string): string => `${LEASED}${key}`;
/** Whether a key is a lease. */
export const isLeaseKey = (key: string): boolean => key.startsWith(LEASED);
/** Returns the key that a lease belongs to. */
export const leasedKey = (lease: string): string => lease.slice(LEASED.length);

/** @throws UsageError if any engine would be unable to store the key */
export function mapKey(map: string, key: string): string {
  if (UNFIT.test(key))
    throw refused("bad-operation", "keys on an external engine must not contain NUL or unpaired surrogates");
  return mapPrefix(map) + key;
}

/** A value in a map, with its last writer and the session that it belongs to. */
export interface KeptValue {
  /** The session that the value belongs to. 0: permanent. */
  readonly session: number;
  /** A name for the write. If the answer is lost, the writer uses it to find out whether the write was applied. */
  readonly writer: string;
  readonly text: string;
}

const FORM = /^(\d{1,16}) (\S{1,80}) (.*)$/s;

/** Encodes a value for the engine. */
export const keptText = ({ session, writer, text }: KeptValue): string => `${session} ${writer} ${text}`;

/** Whether a value has the format of `keptText`. */
export const isKept = ({ value }: Pick<StoreEntry, "value">): boolean => FORM.test(value);

/** @throws UsageError if another program wrote the value */
export function keptValue({ key, value }: Pick<StoreEntry, "key" | "value">): KeptValue {
  const [, session, writer, text] = FORM.exec(value) ?? [];
  if (session !== undefined && writer !== undefined && text !== undefined)
    return { session: Number(session), writer, text };
  throw refused("bad-operation", `the value at ${key} was not written by Coterie`);
}

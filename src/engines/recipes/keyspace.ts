/** The names of an engine's keys, for maps, counters, locks and leases, and the format of a map's values. */
import { MAP_KEYS, refused, type StoreEntry } from "../store.ts";

/** Unpaired surrogates, and the NUL that PostgreSQL refuses. */
const UNFIT = /[\p{Cs}\0]/u;
const LEASED = "l/";

/** The id of the engine's history and the offset of tokens (`history.ts`). */
export const HISTORY_KEY = "h/history";

export const mapPrefix = (map: string): string => `${MAP_KEYS}${encodeURIComponent(map)}/`;
export const counterKey = (name: string): string => `c/${encodeURIComponent(name)}`;
export const lockKey = (name: string): string => `g/${encodeURIComponent(name)}`;
/** The lease next to each key of a session, so that such keys are found without reading all others. */
export const leaseKey = (key: string): string => `${LEASED}${key}`;
export const isLeaseKey = (key: string): boolean => key.startsWith(LEASED);
export const leasedKey = (lease: string): string => lease.slice(LEASED.length);

/** @throws UsageError if some engine cannot store the key. */
export function mapKey(map: string, key: string): string {
  if (UNFIT.test(key)) throw refused("bad-operation", "keys of an engine must not contain NUL or unpaired surrogates");
  return mapPrefix(map) + key;
}

/** A value of a map, with its last writer and the session that it belongs to. */
export interface KeptValue {
  /** 0: permanent. */
  readonly session: number;
  /** Names the write, so that a writer whose answer was lost can find out that it was applied. */
  readonly writer: string;
  readonly text: string;
}

const FORM = /^(\d{1,16}) (\S{1,80}) (.*)$/s;

export const keptText = ({ session, writer, text }: KeptValue): string => `${session} ${writer} ${text}`;

export const isKept = ({ value }: Pick<StoreEntry, "value">): boolean => FORM.test(value);

/** @throws UsageError if another program wrote the value. */
export function keptValue({ key, value }: Pick<StoreEntry, "key" | "value">): KeptValue {
  const [, session, writer, text] = FORM.exec(value) ?? [];
  if (session !== undefined && writer !== undefined && text !== undefined)
    return { session: Number(session), writer, text };
  throw refused("bad-operation", `the value at ${key} was not written by Coterie`);
}

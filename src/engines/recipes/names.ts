/** Where things stand in an engine: maps, counters and locks by name, and whose keys go with a session. */
import { refusalOf } from "../../cluster/services/state/refusals.ts";
import { refuse } from "../../protocols/service/coordination-service/operations.ts";
import { MAP_KEYS } from "../store.ts";

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
  if (UNFIT.test(key)) throw refusalOf(refuse("bad-operation", "an engine's keys have no zero and no half characters"));
  return mapPrefix(map) + key;
}

/**
 * Names of keys. Maps and counters are keys, so clients of etcd see them too:
 *
 *     map/<map>/<key>                 a key of a map; its value is JSON, or the letter b followed by bytes in base64
 *     counter/<counter>               a counter, as a decimal number
 *     coterie/map/<map>/<key>         maps and counters of the service itself, whose names begin with `coterie/`;
 *     coterie/counter/<counter>       clients of etcd can neither read nor write these keys
 *
 * All of them are in UTF-8. In the name of a map, `%` is written as `%25` and `/` as `%2F`, so the name ends at the next
 * `/`. Keys of maps and names of counters are not escaped. A key that is not valid UTF-8, that is longer than the keys of
 * maps may be, or that lacks the name of its map or its own name, belongs to no map.
 */
import { bytesOfText, textOfBytes } from "./byte-text.ts";
import type { ByteText, Interval } from "./vocabulary.ts";

/** The prefix of the names and keys that are reserved for members. */
export const OWN_NAMES = "coterie/";
/** Returns whether a name or key is reserved for members. */
export const isOwn = (name: string): boolean => name.startsWith(OWN_NAMES);

/** The maximum length of a name, in UTF-8 bytes. */
export const MAX_NAME_BYTES = 256;
/** The maximum length of a map's key, in UTF-8 bytes. */
export const MAX_KEY_BYTES = 1_024;

const MAPS = "map/";
const COUNTERS = "counter/";

/** Returns the given name without the prefix of reserved names, and the prefix of its keys. */
const placed = (name: string): readonly [prefix: string, name: string] =>
  isOwn(name) ? [OWN_NAMES, name.slice(OWN_NAMES.length)] : ["", name];

/** Returns the prefix that a map's keys have in common. */
function mapPrefix(map: string): ByteText {
  const [prefix, name] = placed(map);
  return `${prefix}${MAPS}${bytesOfText(name.replaceAll("%", "%25").replaceAll("/", "%2F"))}/`;
}

/** Returns the name of a map's key in the keyspace. */
export const mapKey = (map: string, key: string): ByteText => mapPrefix(map) + bytesOfText(key);

/** Returns the interval with the keys of a map from `from` up to but not including `to`, or all that follow if null. */
export function mapInterval(map: string, from = "", to: string | null = null): Interval {
  const prefix = mapPrefix(map);
  return {
    key: prefix + bytesOfText(from),
    end: to === null ? `${prefix.slice(0, -1)}0` : prefix + bytesOfText(to), // 0 follows / in ASCII.
  };
}

/** Returns the map and the key that a key of the keyspace belongs to. Null if it belongs to no map. */
export function placeOf(bytes: ByteText): { map: string; key: string } | null {
  const prefix = isOwn(bytes) ? OWN_NAMES : "";
  const start = prefix.length + MAPS.length;
  const slash = bytes.indexOf("/", start);
  if (!bytes.startsWith(MAPS, prefix.length) || slash === -1 || bytes.length - slash > MAX_KEY_BYTES + 1) return null;
  const name = textOfBytes(bytes.slice(start, slash));
  const key = textOfBytes(bytes.slice(slash + 1));
  if (!name || !key) return null;
  const map = prefix + name.replaceAll("%2F", "/").replaceAll("%25", "%");
  const isName = bytesOfText(map).length <= MAX_NAME_BYTES && bytes.startsWith(mapPrefix(map)); // Written in the only valid way.
  return isName ? { map, key } : null;
}

/** Returns the name of a counter in the keyspace. */
export function counterKey(counter: string): ByteText {
  const [prefix, name] = placed(counter);
  return `${prefix}${COUNTERS}${bytesOfText(name)}`;
}

/** Returns whether the key belongs to a counter of the application. */
export const isCounterKey = (bytes: ByteText): boolean => bytes.startsWith(COUNTERS);

/** The paths of znodes. Converts keys to paths, and the names of znodes back to keys. */
import { MAP_KEYS } from "./store.ts";

/**
 * Matches the folder of a key. The children of the folder's znode are all of a map's keys, all of a map's leases, all
 * locks, or all counters.
 */
const FOLDER = /^(?:l\/)?m\/[^/]*\/|^[^/]*\//;
const SHARDS = 64;

/** Escapes characters that ZooKeeper does not accept. Never returns `.`, `..` or an empty name. */
const named = (text: string): string => `k${encodeURIComponent(text)}`;
const unnamed = (name: string): string => decodeURIComponent(name.slice(1));

/** Converts between keys and paths. */
export class ZookeeperPaths {
  readonly #root: string;

  /** @param root the path of the root, such as `/coterie` */
  constructor(root: string) {
    this.#root = root;
  }

  /** The root and its ancestors, starting at the top. */
  get roots(): readonly string[] {
    const names = this.#root.split("/").slice(1);
    return names.map((_name, at) => `/${names.slice(0, at + 1).join("/")}`);
  }

  get root(): string {
    return this.#root;
  }

  /** The znode that every change to an entry sets, and that processes watch. */
  get last(): string {
    return `${this.#root}/last`;
  }

  get entries(): string {
    return `${this.#root}/entries`;
  }

  get sessions(): string {
    return `${this.#root}/sessions`;
  }

  session(number: number): string {
    return `${this.sessions}/${number}`;
  }

  /** The znode that stores the number of the segment that changes are appended to. */
  get changes(): string {
    return `${this.#root}/changes`;
  }

  segment(number: number): string {
    return `${this.changes}/${number}`;
  }

  /** Returns the path for a segment's records, without the number that ZooKeeper appends. */
  records(segment: number): string {
    return `${this.segment(segment)}/r`;
  }

  record(segment: number, index: number): string {
    return this.records(segment) + String(index).padStart(10, "0");
  }

  get shards(): string {
    return `${this.#root}/deleted`;
  }

  get allShards(): readonly string[] {
    return Array.from({ length: SHARDS }, (_, at) => `${this.shards}/${at}`);
  }

  /** Returns the `deleted` znode for a key's share. It is set whenever a key in this share is deleted. */
  shard(key: string): string {
    let hash = 0;
    for (let at = 0; at < key.length; at++) hash = (hash * 31 + key.charCodeAt(at)) % 1_000_003;
    return `${this.shards}/${hash % SHARDS}`;
  }

  folder(key: string): string {
    return `${this.entries}/${named(folderOf(key))}`;
  }

  entry(key: string): string {
    return `${this.folder(key)}/${named(key.slice(folderOf(key).length))}`;
  }

  /**
   * Returns a znode's key.
   * @param name a znode in the folder of the key `beside`
   */
  key(beside: string, name: string): string {
    return folderOf(beside) + unnamed(name);
  }
}

/** Returns a key's folder, or an empty string. */
export const folderOf = (key: string): string => FOLDER.exec(key)?.[0] ?? "";
/** Whether the key belongs to a map, which means that its changes are retained. */
export const isOfMap = (key: string): boolean => key.startsWith(MAP_KEYS);

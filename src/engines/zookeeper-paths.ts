/** The znodes of keys and of everything else: converts keys to paths, and names back to keys. */
import { MAP_KEYS } from "./store.ts";

/** The folder of a key. Its znode has as children all keys of one map, all leases of one map, all locks, or all counters. */
const FOLDER = /^(?:l\/)?m\/[^/]*\/|^[^/]*\//;
const SHARDS = 64;

/** Escapes characters that ZooKeeper refuses; never yields `.`, `..` or an empty name. */
const named = (text: string): string => `k${encodeURIComponent(text)}`;
const unnamed = (name: string): string => decodeURIComponent(name.slice(1));

export class ZookeeperPaths {
  readonly #root: string;

  /** @param root such as `/coterie` */
  constructor(root: string) {
    this.#root = root;
  }

  /** The root and its ancestors, the topmost first. */
  get roots(): readonly string[] {
    const names = this.#root.split("/").slice(1);
    return names.map((_name, at) => `/${names.slice(0, at + 1).join("/")}`);
  }

  get root(): string {
    return this.#root;
  }

  /** Set by every change of an entry, and watched. */
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

  /** Its value is the number of the segment that changes are appended to. */
  get changes(): string {
    return `${this.#root}/changes`;
  }

  segment(number: number): string {
    return `${this.changes}/${number}`;
  }

  /** The path of a segment's records, without the number that ZooKeeper appends. */
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

  /** The `deleted` znode of a key's share: set whenever a key of this share is deleted. */
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

  /** @param name a znode in the folder of the key `beside`. */
  key(beside: string, name: string): string {
    return folderOf(beside) + unnamed(name);
  }
}

export const folderOf = (key: string): string => FOLDER.exec(key)?.[0] ?? "";
/** Whether its changes are retained. */
export const isOfMap = (key: string): boolean => key.startsWith(MAP_KEYS);

/** Where things stand in ZooKeeper: names of znodes that are made of keys, and back. */
import { MAP_KEYS } from "./store.ts";

/** Of a key: its znode is a child of another, whose children are all keys of one map, or all leases of one, or all locks, or all counters. */
const FOLDER = /^(?:l\/)?m\/[^/]*\/|^[^/]*\//;
const SHARDS = 64;

/** Escapes what ZooKeeper takes in no name, and is never `.`, `..` or empty. */
const named = (text: string): string => `k${encodeURIComponent(text)}`;
const unnamed = (name: string): string => decodeURIComponent(name.slice(1));

export class ZookeeperPaths {
  readonly #root: string;

  /** @param root such as `/coterie` */
  constructor(root: string) {
    this.#root = root;
  }

  /** It and those above it, from the first one. */
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

  /** What ZooKeeper numbers the records of a segment behind. */
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

  /** Of a key: set whenever one of its keys is deleted. */
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

  /** @param name of a znode in the folder of another key. */
  key(beside: string, name: string): string {
    return folderOf(beside) + unnamed(name);
  }
}

export const folderOf = (key: string): string => FOLDER.exec(key)?.[0] ?? "";
/** Whether its changes are remembered. */
export const isOfMap = (key: string): boolean => key.startsWith(MAP_KEYS);

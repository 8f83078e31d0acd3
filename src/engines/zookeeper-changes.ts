/**
 * The latest changes to maps, in ZooKeeper: one record per commit, numbered by ZooKeeper and grouped in segments. A
 * record is created in the same `multi` as the change, and only in the segment that is named in `changes`. All records
 * in one segment therefore precede the records in the next. The process that fills up a segment begins the next one,
 * and deletes all but the last two.
 */
import { KEPT_CHANGES, type StoreChange, type Write } from "./store.ts";
import type { ZookeeperConnection } from "./zookeeper-connection.ts";
import type { ZookeeperPaths } from "./zookeeper-paths.ts";
import { NO_NODE, NODE_EXISTS, OK, type Stat, type Step } from "./zookeeper-wire.ts";

interface Segment {
  readonly number: number;
  /** The version of the znode that names the segment. */
  readonly version: number;
}

interface ReadRecord {
  readonly revision: number;
  readonly writes: readonly Write[];
}

/** How many records to read first. Most reads are for very recent changes, and often there are none. */
const FIRST_READ = 1;
const MORE_EACH_TIME = 8;
const MOST_READ = 128;
const DELETED_AT_ONCE = 500;

/** Writes and reads the retained changes. */
export class ZookeeperChanges {
  readonly #paths: ZookeeperPaths;
  readonly #perSegment: number;
  #segment: Segment | null = null;
  #isBeginning = false;

  /** @param perSegment the number of records per segment. At least this many are retained. */
  constructor(paths: ZookeeperPaths, perSegment: number = KEPT_CHANGES) {
    this.#paths = paths;
    this.#perSegment = perSegment;
  }

  /** Returns the additional steps for a commit with these writes. */
  async steps(connection: ZookeeperConnection, writes: readonly Write[]): Promise<Step[]> {
    if (writes.length === 0) return [];
    this.#segment ??= await this.#current(connection);
    const { number, version } = this.#segment;
    return [
      { type: "check", path: this.#paths.changes, version },
      { type: "create", path: this.#paths.records(number), data: JSON.stringify(writes), kind: "sequential" },
    ];
  }

  /** Discards the cached segment, for example because another process has started a new one. */
  forgetSegment(): void {
    this.#segment = null;
  }

  /**
   * Call this when a record has been created. If it is the last one in its segment, begins the next segment.
   * @param path the record's path
   */
  async made(connection: ZookeeperConnection, path: string): Promise<void> {
    const segment = this.#segment;
    if (segment === null || Number(path.slice(-10)) < this.#perSegment - 1 || this.#isBeginning) return;
    this.#isBeginning = true;
    try {
      await this.#begin(connection, segment);
    } finally {
      this.#isBeginning = false;
    }
  }

  /**
   * Returns all the records after a revision that exist when this is called, in order. Returns null if some of them
   * have been deleted.
   * @throws StoreError
   */
  async since(connection: ZookeeperConnection, after: number): Promise<StoreChange[] | null> {
    const newest = (await this.#current(connection)).number;
    const found: ReadRecord[] = [];
    for (let segment = newest; segment >= 0; segment--) {
      const stat = await connection.done({ type: "stat", path: this.#paths.segment(segment) }, NO_NODE);
      if (stat.stat === undefined) return null;
      const isReached = await this.#readBack(connection, segment, stat.stat, after, found);
      if (isReached === null) return null;
      if (isReached) break;
    }
    return found
      .reverse()
      .flatMap(({ revision, writes }) => writes.map(({ key, value }) => ({ key, value, revision })));
  }

  /** @returns whether it reached a record at or below the revision, or null if a record is missing */
  async #readBack(
    connection: ZookeeperConnection,
    segment: number,
    { created }: Stat,
    after: number,
    found: ReadRecord[],
  ): Promise<boolean | null> {
    let size = FIRST_READ;
    for (let end = created; end > 0; ) {
      const begin = Math.max(0, end - size);
      const indices = Array.from({ length: end - begin }, (_, at) => end - 1 - at);
      const paths = indices.map((index) => this.#paths.record(segment, index));
      const answers = await Promise.all(
        paths.map((path) => connection.done({ type: "get", path, isWatched: false }, NO_NODE)),
      );
      for (const { stat, data } of answers) {
        if (stat === undefined || data === undefined) return null;
        if (stat.czxid <= after) return true;
        found.push({ revision: stat.czxid, writes: JSON.parse(data) as readonly Write[] });
      }
      end = begin;
      size = Math.min(MOST_READ, MORE_EACH_TIME * size);
    }
    return false;
  }

  async #current(connection: ZookeeperConnection): Promise<Segment> {
    const { data, stat } = await connection.done({ type: "get", path: this.#paths.changes, isWatched: false });
    return { number: Number(data), version: (stat as Stat).version };
  }

  async #begin(connection: ZookeeperConnection, { number, version }: Segment): Promise<void> {
    const next = { type: "create", path: this.#paths.segment(number + 1), data: "", kind: "persistent" } as const;
    await connection.done(next, NODE_EXISTS);
    const named = { type: "set", path: this.#paths.changes, data: String(number + 1), version } as const;
    const { code } = await connection.ask(named);
    if (code === OK) await this.#deleteBefore(connection, number);
  }

  async #deleteBefore(connection: ZookeeperConnection, number: number): Promise<void> {
    const { names = [] } = await connection.done({ type: "children", path: this.#paths.changes });
    for (const name of names.filter((each) => Number(each) < number)) {
      const path = `${this.#paths.changes}/${name}`;
      const { names: records = [] } = await connection.done({ type: "children", path }, NO_NODE);
      for (let at = 0; at < records.length; at += DELETED_AT_ONCE) {
        const some = records.slice(at, at + DELETED_AT_ONCE);
        await Promise.all(some.map((record) => this.#delete(connection, `${path}/${record}`)));
      }
      await this.#delete(connection, path);
    }
  }

  async #delete(connection: ZookeeperConnection, path: string): Promise<void> {
    await connection.done({ type: "delete", path, version: -1 }, NO_NODE);
  }
}

/**
 * An engine in virtual time. Its answers are delayed or lost, or it restarts before it answers. Sessions expire by the
 * engine's own clock.
 */
import { random as seededRandom } from "../../src/core/random.ts";
import { joinStore } from "../../src/engines/engine-member.ts";
import {
  behind,
  type Check,
  KEPT_CHANGES,
  MAP_KEYS,
  type Store,
  type StoreChange,
  type StoreEntry,
  StoreError,
  type Write,
} from "../../src/engines/store.ts";
import type { EngineJoinOptions, EngineMember } from "../../src/index.ts";
import type { Platform, Timer } from "../../src/runtime/platform/platform.ts";
import { type Due, VirtualTime } from "../../src/testing/virtual-time.ts";

export interface SimulatedFaults {
  /** The fractions of calls whose request is lost, and whose answer is lost. */
  readonly unheard: number;
  readonly unanswered: number;
  readonly delayMs: readonly [number, number];
}

/**
 * A process. While it is paused, it neither receives nor sends, and its timers wait. While it is cut off, its messages
 * and their answers are lost.
 */
export interface SimulatedProcess {
  isUp: boolean;
  isCutOff?: boolean;
  /** How often its connections were reset. Each reset loses the pending calls. */
  resets?: number;
}

const CALM: SimulatedFaults = { unheard: 0, unanswered: 0, delayMs: [0.2, 2] };
const LOST_MS = 1_000;

class Own implements Timer {
  constructor(
    readonly due: Due,
    public next: Due | null = null,
  ) {}
  unref(): this {
    return this;
  }
}

export class SimulatedEngine {
  faults = CALM;
  /** Whether the engine is down, so that it neither receives nor answers. */
  isDown = false;
  /** The error for all changes of keys, or null to apply them. */
  refusal: string | null = null;
  /** The number of calls. */
  calls = 0;
  readonly time = new VirtualTime();
  readonly random;
  #revision = 0;
  #entries = new Map<string, StoreEntry>();
  #changes: StoreChange[] = [];
  #sessions = new Map<number, { until: number; readonly ttlMs: number }>();
  readonly #hints = new Set<() => void>();

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  run<T>(body: () => Promise<T>, limitMs = 600_000): Promise<T> {
    return this.time.drive(body, limitMs);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.time.after(ms, resolve));
  }

  join(
    options: Omit<EngineJoinOptions, "engine"> = {},
    process: SimulatedProcess = { isUp: true },
  ): Promise<EngineMember> {
    const engine = { name: "simulated", join: () => Promise.reject(new Error("unused")) };
    return joinStore(this.#platform(process), () => Promise.resolve(this.#store(process)), { engine, ...options });
  }

  /** Ends all sessions, as after a restart of an engine that does not store them. */
  forgetSessions(): void {
    this.#sessions.clear();
  }

  /** @returns a copy of the state for `restore` */
  backUp() {
    const [entries, changes] = [new Map(this.#entries), [...this.#changes]];
    return { revision: this.#revision, entries, changes, sessions: new Map(this.#sessions) };
  }

  /** Restores the state of a backup. As in etcd, each session gets its whole time to live from now on. */
  restore({ revision, entries, changes, sessions }: ReturnType<SimulatedEngine["backUp"]>): void {
    this.#revision = revision;
    this.#entries = new Map(entries);
    this.#changes = [...changes];
    this.#sessions = new Map(
      [...sessions].map(([id, { ttlMs }]) => [id, { ttlMs, until: this.time.now + ttlMs }] as const),
    );
  }

  /** The stored keys, including keys of ended sessions. */
  keys(prefix: string): string[] {
    return [...this.#entries.keys()].filter((key) => key.startsWith(prefix));
  }

  /** Writes to the engine directly. */
  spoil(key: string, value: string): Promise<void> {
    this.#commit([], [{ key, value }]);
    return Promise.resolve();
  }

  #platform(process: SimulatedProcess): Pick<Platform, "clock" | "timers" | "random"> {
    const { time, random } = this;
    const whenUp = (run: () => void): void => {
      if (process.isUp) run();
      else time.after(1, () => whenUp(run));
    };
    const after = (ms: number, run: () => void): Own => new Own(time.after(Math.max(0, ms), () => whenUp(run)));
    const every = (ms: number, run: () => void): Own => {
      const own = new Own(time.after(0, () => {}));
      const again = (): void => {
        own.next = time.after(ms, () =>
          whenUp(() => {
            again();
            run();
          }),
        );
      };
      again();
      return own;
    };
    return {
      clock: { now: () => time.now, wall: () => time.now, stamp: () => time.now },
      timers: {
        after,
        every,
        soon: (run) => after(0, run),
        cancel: (timer) => {
          (timer as Own | null)?.due.cancel();
          (timer as Own | null)?.next?.cancel();
        },
      },
      random: {
        fraction: () => random.between(0, 1),
        natural: (below) => Math.floor(random.between(0, 1) * below),
        name: () => `p${Math.floor(random.between(0, 2 ** 40)).toString(36)}`,
      },
    };
  }

  #store(process: SimulatedProcess): Store {
    let isClosed = false;
    const mine = new Set<() => void>();
    const ask = <T>(work: () => T, changes = false): Promise<T> => {
      this.calls += 1;
      if (isClosed) return Promise.reject(new StoreError("simulated: closed", false));
      return this.#asked(process, work, changes);
    };
    return {
      name: "simulated",
      maxKeys: 128,
      get: (key) => ask(() => this.#entries.get(key) ?? null),
      range: ({ from, to, limit }) =>
        ask(() => {
          const entries = [...this.#entries.values()].filter(({ key }) => key >= from && key < to);
          entries.sort((a, b) => (a.key < b.key ? -1 : 1));
          return { revision: this.#revision, entries: entries.slice(0, limit), isMore: entries.length > limit };
        }),
      commit: (checks, writes) => {
        if (this.refusal !== null) return Promise.reject(new StoreError(`simulated: ${this.refusal}`, false));
        return ask(() => this.#commit(checks, writes), writes.length > 0);
      },
      changes: (prefix, after) =>
        ask(() => {
          if (after < this.#revision - KEPT_CHANGES) return null;
          const changes = this.#changes.filter(({ key, revision }) => revision > after && key.startsWith(prefix));
          return { revision: this.#revision, changes };
        }),
      revision: () => ask(() => this.#revision),
      openSession: (ttlMs) =>
        ask(() => {
          this.#revision += 1;
          const id = Math.floor(this.time.now * 1_000) * 1_000 + (this.#revision % 1_000);
          this.#sessions.set(id, { ttlMs, until: this.time.now + ttlMs });
          return id;
        }, true),
      keepAlive: (id) =>
        ask(() => {
          const session = this.#sessions.get(id);
          if (session === undefined || session.until <= this.time.now) return false;
          session.until = this.time.now + session.ttlMs;
          return true;
        }, true),
      endSession: (id) =>
        ask(() => {
          this.#sessions.delete(id);
          this.#hint();
        }, true),
      living: (ids) =>
        ask(() => {
          for (const id of ids) if ((this.#sessions.get(id)?.until ?? 0) <= this.time.now) this.#sessions.delete(id);
          return new Set(ids.filter((id) => this.#sessions.has(id)));
        }),
      onHint: (listener) => {
        mine.add(listener);
        this.#hints.add(listener);
        return () => void this.#hints.delete(listener);
      },
      close: () => {
        isClosed = true;
        for (const listener of mine) this.#hints.delete(listener);
        return Promise.resolve();
      },
    };
  }

  #commit(checks: readonly Check[], writes: readonly Write[]): number | null {
    if (checks.some(({ key, revision }) => (this.#entries.get(key)?.revision ?? 0) !== revision)) return null;
    if (writes.length === 0) return this.#revision;
    this.#revision += 1;
    for (const { key, value } of writes) {
      if (value === null) this.#entries.delete(key);
      else this.#entries.set(key, { key, value, revision: this.#revision });
      if (key >= MAP_KEYS && key < behind(MAP_KEYS)) this.#changes.push({ key, value, revision: this.#revision });
    }
    this.#hint();
    return this.#revision;
  }

  #hint(): void {
    for (const listener of this.#hints) if (this.random.between(0, 1) < 0.8) this.time.after(this.#delay(), listener);
  }

  #delay(): number {
    return this.random.between(...this.faults.delayMs);
  }

  #asked<T>(process: SimulatedProcess, work: () => T, changes: boolean): Promise<T> {
    const { resets } = process;
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new StoreError("simulated: the connection was reset", changes));
      const lose = (): void =>
        void this.time.after(LOST_MS, () => reject(new StoreError("simulated: no answer", changes)));
      this.time.after(this.#delay(), () => {
        if (process.resets !== resets) return fail();
        if (this.isDown || process.isCutOff || this.random.between(0, 1) < this.faults.unheard) return lose();
        const answer = work();
        if (this.random.between(0, 1) < this.faults.unanswered) return lose();
        this.time.after(this.#delay(), () => {
          if (process.resets !== resets) fail();
          else if (process.isCutOff) lose();
          else resolve(answer);
        });
      });
    });
  }
}

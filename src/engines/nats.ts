/**
 * The API of `join()` on NATS.
 *
 * All processes append their requests to a single JetStream stream and follow it, so each of them computes the same
 * state.
 *
 * @module coterie/engines/nats
 */
import type { ExternalEngine } from "../cluster/services/external-engine.ts";
import type { Rules } from "../cluster/services/known-options.ts";
import * as may from "../cluster/services/known-options.ts";
import { clientLibrary, externalEngine } from "./engine-member.ts";
import { NatsLog } from "./nats-log.ts";
import { type LogAnswer, MAX_STATE_LENGTH } from "./nats-state.ts";
import { JetStream, type JetStreamLibrary, type NatsLibrary, NoRoom } from "./nats-stream.ts";
import {
  type ChangeKind,
  type Check,
  Hints,
  type RangeRequest,
  refused,
  type Store,
  StoreError,
  type Write,
} from "./store.ts";

/** Options for the `nats` engine. */
export interface NatsOptions {
  /** The addresses of the servers, such as `nats://10.0.0.1:4222`. */
  readonly servers: readonly string[];
  /**
   * The JetStream stream, which is created if it does not exist. All processes that coordinate with each other must use
   * the same stream. Its name consists of letters, digits, `-` and `_`. Default: `coterie`.
   */
  readonly stream?: string | undefined;
  /** The number of servers that store the stream if this process creates it: 1, 3 or 5. Default: 1. */
  readonly replicas?: number | undefined;
  /** The user name, if the servers require one. */
  readonly user?: string | undefined;
  /** The password of `user`. */
  readonly password?: string | undefined;
  /** The token, if the servers require one instead of a user. */
  readonly token?: string | undefined;
  /** The `tls` option of `@nats-io/transport-node`. */
  readonly tls?: object | undefined;
}

/**
 * The maximum number of keys in a commit. In practice, the message size is the limit, since a request has little other
 * overhead.
 */
const MAX_KEYS = 256;

const isName = (value: unknown): boolean => typeof value === "string" && /^[\w-]{1,40}$/.test(value);

const rules: Rules<NatsOptions> = {
  servers: may.needed({
    wanted: 'a list of addresses such as "nats://127.0.0.1:4222"',
    accepts: (value) => Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string"),
  }),
  stream: { wanted: "a string of 1 to 40 letters, digits, - and _", accepts: isName },
  replicas: { wanted: "1, 3 or 5", accepts: (value) => value === 1 || value === 3 || value === 5 },
  user: may.text,
  password: may.text,
  token: may.text,
  tls: may.fields,
};

/**
 * Runs `join()` on NATS JetStream.
 *
 * @example
 * const member = await join({ engine: nats({ servers: ["nats://10.0.0.1:4222"] }) });
 * await using lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * @throws UsageError if an option is invalid; on joining, `no-library` without `@nats-io/transport-node` and
 * `@nats-io/jetstream`
 */
export function nats(options: NatsOptions): ExternalEngine {
  return externalEngine("nats", options, rules, (_options, random) => openNats(options, random.name()));
}

async function openNats(options: NatsOptions, writer: string): Promise<Store> {
  const { stream = "coterie", replicas = 1, servers, user, password, token, tls } = options;
  const library = await clientLibrary<NatsLibrary>("@nats-io/transport-node", "nats");
  const js = await clientLibrary<JetStreamLibrary>("@nats-io/jetstream", "nats");
  const connect = { servers: [...servers], user, pass: password, token, tls };
  return new NatsStore(new JetStream(library, js, connect, { name: stream, replicas }), writer);
}

class NatsStore implements Store {
  readonly name = "nats";
  readonly maxKeys = MAX_KEYS;
  readonly #stream: JetStream;
  readonly #log: NatsLog;
  readonly #hints = new Hints();
  readonly onHint = this.#hints.on;

  constructor(stream: JetStream, writer: string) {
    this.#stream = stream;
    this.#log = new NatsLog({
      stream,
      writer,
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref()),
      changed: this.#hints.send,
    });
    this.#log.start();
  }

  async get(key: string) {
    return (await this.#log.read()).get(key);
  }

  async range(range: RangeRequest) {
    return (await this.#log.read()).range(range);
  }

  async commit(checks: readonly Check[], writes: readonly Write[], change?: ChangeKind): Promise<number | null> {
    if (writes.length === 0) {
      const state = await this.#log.read();
      return state.holds(checks) ? state.at : null;
    }
    const isRelease = change === "release";
    const answer = await this.#log.append({ type: "commit", checks, writes, isRelease }).catch((error: unknown) => {
      // A release is retried until there is room for it.
      throw error instanceof NoRoom && !isRelease ? refused("too-many", error.message) : error;
    });
    if (answer.type === "full") {
      const text = `expected all keys and values to have at most ${MAX_STATE_LENGTH} characters, got more`;
      throw refused("too-many", `${text}: nothing was written`);
    }
    return answer.type === "committed" ? answer.revision : null;
  }

  async changes(prefix: string, after: number) {
    return (await this.#log.read()).changes(prefix, after);
  }

  async revision(): Promise<number> {
    return (await this.#log.read()).at;
  }

  async openSession(ttlMs: number): Promise<number> {
    const answer = await this.#log.append({ type: "open", ttlMs: Math.ceil(ttlMs) });
    const [session] = answer.type === "living" ? answer.sessions : [];
    if (session === undefined) throw new StoreError("nats: the session ended while it was being opened", false);
    return session;
  }

  async keepAlive(session: number): Promise<boolean> {
    return isLiving(await this.#log.append({ type: "keep", session }), session);
  }

  async endSession(session: number): Promise<void> {
    await this.#log.append({ type: "end", session });
  }

  async living(sessions: readonly number[]): Promise<ReadonlySet<number>> {
    const answer = await this.#log.append({ type: "living", sessions });
    return new Set(answer.type === "living" ? answer.sessions : []);
  }

  close(): Promise<void> {
    this.#log.close();
    return this.#stream.close();
  }
}

const isLiving = (answer: LogAnswer, session: number): boolean =>
  answer.type === "living" && answer.sessions.includes(session);

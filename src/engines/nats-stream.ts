/** A JetStream stream, based on the NATS client library. */
import type { KeptMessage, Stream, StreamBounds } from "./nats-log.ts";
import { StoreError } from "./store.ts";

/** The part of `@nats-io/transport-node` that is used here. */
export interface NatsLibrary {
  connect(options: object): Promise<Connection>;
}
interface Connection {
  readonly info?: { readonly max_payload: number };
  status(): AsyncIterable<{ readonly type: string }>;
  close(): Promise<void>;
}

/** The part of `@nats-io/jetstream` that is used here. */
export interface JetStreamLibrary {
  jetstream(connection: Connection, options: object): Client;
  jetstreamManager(connection: Connection, options: object): Promise<Manager>;
}
interface Client {
  publish(subject: string, data: Uint8Array, options: object): Promise<{ seq: number }>;
  readonly consumers: {
    get(stream: string, options: object): Promise<{ consume(options: object): Promise<Messages> }>;
  };
}
interface Messages extends AsyncIterable<{ seq: number; timestampNanos: bigint; data: Uint8Array }> {
  stop(): void;
  status(): AsyncIterable<{ readonly type: string }>;
}
interface Manager {
  readonly streams: {
    info(stream: string): Promise<StreamInfo>;
    add(config: object): Promise<unknown>;
    purge(stream: string, options: { seq: number }): Promise<unknown>;
  };
}
interface StreamInfo {
  readonly created: string;
  readonly config: { readonly num_replicas: number };
  readonly state: { readonly first_seq: number; readonly last_seq: number };
}

const MAX_BYTES = 1024 * 1024;
const CALL_MS = 5_000;
/**
 * The timeout for reading the bounds and for starting a consumer. While servers elect a leader, none of them answers,
 * and the call is repeated.
 */
const ASK_MS = 1_000;
/** The interval between heartbeats. A consumer that has missed two of them is restarted. */
const HEARTBEAT_MS = 1_000;
const EXPIRES_MS = 10_000;
const FEW = 500;
/**
 * The options for reconnecting. Once connected, the library reconnects quickly and retries indefinitely. After two
 * unanswered pings, the connection is replaced.
 */
const RECONNECTING = {
  maxReconnectAttempts: -1,
  reconnectTimeWait: 200,
  timeout: 3_000,
  pingInterval: 1_000,
  maxPingOut: 2,
} as const;

interface Opened {
  readonly connection: Connection;
  readonly client: Client;
  readonly manager: Manager;
}

/** A JetStream stream. */
export class JetStream implements Stream {
  readonly #name: string;
  readonly #replicas: number;
  readonly #connect: () => Promise<Opened>;
  /** The opened stream. Null before the first call and after a failed attempt, so that the next call tries again. */
  #opened: Promise<Opened> | null = null;
  #isClosed = false;
  #maxBytes = MAX_BYTES;
  #isMade = false;
  #messages: Messages | null = null;

  /** @param options the options for `connect` */
  constructor(nats: NatsLibrary, js: JetStreamLibrary, options: object, stream: { name: string; replicas: number }) {
    this.#name = stream.name;
    this.#replicas = stream.replicas;
    this.#connect = async () => {
      const connection = await nats.connect({ ...options, ...RECONNECTING });
      this.#maxBytes = connection.info?.max_payload ?? MAX_BYTES;
      void this.#stopWhen(["disconnect"], connection);
      const client = js.jetstream(connection, { timeout: ASK_MS });
      return {
        connection,
        client,
        manager: await js.jetstreamManager(connection, { checkAPI: false, timeout: ASK_MS }),
      };
    };
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  async bounds(): Promise<StreamBounds> {
    const { manager } = await this.#open();
    if (!this.#isMade) await this.#make(manager);
    try {
      const { created, config, state } = await manager.streams.info(this.#name);
      const isReplicated = config.num_replicas > 1;
      return { first: Math.max(1, state.first_seq), last: state.last_seq, made: created, isReplicated };
    } catch (error) {
      this.#isMade = false;
      throw failure(error as Error, false);
    }
  }

  async append(data: Uint8Array): Promise<{ seq: number }> {
    const { client } = await this.#open();
    try {
      const expect = { streamName: this.#name };
      return await client.publish(this.#subject, data, { timeout: CALL_MS, retries: 1, expect });
    } catch (error) {
      throw failure(error as Error, true);
    }
  }

  async *follow(from: number): AsyncIterable<KeptMessage> {
    const { client } = await this.#open();
    const start = { deliver_policy: "by_start_sequence", opt_start_seq: from };
    const consumer = await client.consumers.get(this.#name, start);
    const limits = { max_messages: FEW, expires: EXPIRES_MS, idle_heartbeat: HEARTBEAT_MS };
    const messages = await consumer.consume(limits);
    this.#messages = messages;
    void this.#stopWhen(["heartbeats_missed", "stream_not_found"], messages);
    try {
      for await (const { seq, timestampNanos, data } of messages) {
        yield { seq, ms: Number(timestampNanos / 1_000_000n), data };
      }
    } finally {
      messages.stop();
    }
  }

  async cutOff(below: number): Promise<void> {
    const { manager } = await this.#open();
    await manager.streams.purge(this.#name, { seq: below });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#messages?.stop();
    await this.#opened?.then(({ connection }) => connection.close()).catch(() => {});
  }

  get #subject(): string {
    return `${this.#name}.log`;
  }

  async #open(): Promise<Opened> {
    if (this.#isClosed) throw new StoreError("nats: it has been closed", false);
    this.#opened ??= this.#connect();
    const opened = this.#opened;
    try {
      return await opened;
    } catch (error) {
      if (this.#opened === opened) this.#opened = null;
      throw failure(error as Error, false);
    }
  }

  /** Creates the stream if it does not exist. */
  async #make(manager: Manager): Promise<void> {
    try {
      await manager.streams.add({
        name: this.#name,
        subjects: [this.#subject],
        storage: "file",
        num_replicas: this.#replicas,
        description: "Coterie: locks, elections and maps",
      });
    } catch (error) {
      // The stream exists with different settings, for example another number of replicas. Use it as it is.
      if (!/already in use/.test((error as Error).message)) throw failure(error as Error, false);
    }
    this.#isMade = true;
  }

  /**
   * Stops `follow` when one of these events occurs, so that the caller starts following again. A server that comes back
   * may have lost messages.
   */
  async #stopWhen(types: readonly string[], watched: { status(): AsyncIterable<{ type: string }> }): Promise<void> {
    for await (const { type } of watched.status()) if (types.includes(type)) this.#messages?.stop();
  }
}

/** Thrown if JetStream refuses a message because its disk, account or stream is full. Nothing was stored. */
export class NoRoom extends StoreError {}

/** JetStream error codes for exhausted resources of the account, the server, its memory or its storage. */
const NO_ROOM: readonly unknown[] = [10_002, 10_023, 10_028, 10_047];

/**
 * Converts an error. Without an answer, the request is known to be lost only if no server was available to receive it.
 */
function failure(error: Error, changes: boolean): StoreError {
  const { code } = error as { code?: unknown };
  if (NO_ROOM.includes(code))
    return new NoRoom(`nats: JetStream has no room: ${error.message}`, false, { cause: error });
  const isUnheard = error.name === "NoRespondersError" || error.name === "ConnectionError";
  return new StoreError(`nats: ${error.message}`, changes && !isUnheard, { cause: error });
}

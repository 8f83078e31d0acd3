/** The keyspace as a member's etcd server uses it: commands through the log, linearizable reads, and change events. */

import { problem } from "../../core/shape.ts";
import { MAX_VALUE_BYTES } from "../../protocols/service/coordination-service/operations.ts";
import { isOwn } from "../../protocols/service/keyspace/layout.ts";
import { keyspaceCommandShape } from "../../protocols/service/keyspace/shapes.ts";
import type {
  KeyspaceChange,
  KeyspaceCommand,
  KeyspaceQuestion,
  KeyspaceResponse,
  Refused,
} from "../../protocols/service/keyspace/vocabulary.ts";
import type { Timers } from "../../runtime/platform/platform.ts";
import { CoordinationError } from "../services/coordination-error.ts";
import type { ServiceHost } from "../services/state/service-host.ts";
import { utf8Bytes } from "../services/utf8-bytes.ts";
import { EtcdError } from "./errors.ts";

/** The same timeout as in etcd. */
const TIMEOUT_MS = 7_000;

type ResponseTo<T> = T extends { readonly type: infer K }
  ? K extends "range" | "put" | "delete" | "txn"
    ? Extract<KeyspaceResponse, { type: K }>
    : K extends "grant" | "renew" | "lease"
      ? Extract<KeyspaceResponse, { type: "lease" }>
      : K extends "leases" | "events" | "size"
        ? Extract<KeyspaceResponse, { type: K }>
        : Extract<KeyspaceResponse, { type: "done" }>
  : never;

type Keys = Pick<ServiceHost, "platform" | "self" | "session" | "submit" | "query" | "call" | "listen" | "followKeys">;

export class KeyspaceClient {
  readonly #service: Keys;
  #asked = 0;
  /** Responses that do not fit into the log's results. The replica supplies them when it applies the command. */
  readonly #long = new Map<string, KeyspaceResponse | null>();
  readonly #forget: () => void;

  readonly #listeners = new Set<(change: KeyspaceChange | null) => void>();

  constructor(service: Keys) {
    this.#service = service;
    const tell = (change: KeyspaceChange | null): void => {
      for (const listener of [...this.#listeners]) listener(change);
    };
    this.#forget = service.listen((event) => {
      if (event.type === "restored") tell(null);
      else if (event.type === "keysAnswered" && this.#long.has(event.caller))
        this.#long.set(event.caller, event.response);
      else if (event.type === "keysChanged")
        tell({ ...event, events: event.events.filter(({ kv }) => !isOwn(kv.key)) });
    });
  }

  get timers(): Timers {
    return this.#service.platform.timers;
  }

  /**
   * @throws EtcdError if the command is refused or not answered in time. In the latter case, it may have been applied
   */
  async execute<C extends KeyspaceCommand>(command: C): Promise<ResponseTo<C>> {
    this.#asked += 1;
    const caller = `${this.#service.self} ${this.#service.session} ${this.#asked}`;
    if (problem(keyspaceCommandShape, command, "command") !== null) throw new EtcdError("tooManyOperations"); // Nested too deeply.
    if (utf8Bytes(JSON.stringify(command)) > MAX_VALUE_BYTES) throw new EtcdError("requestTooLarge");
    this.#long.set(caller, null);
    try {
      const { result } = await this.#call(true, (isWanted) =>
        this.#service.submit({ type: "keys", caller, command }, isWanted),
      );
      const response = result.response ?? this.#long.get(caller);
      // A snapshot replaced the log entry.
      if (response === null || response === undefined) throw new EtcdError("timedOut");
      return answered(response) as ResponseTo<C>;
    } finally {
      this.#long.delete(caller);
    }
  }

  /**
   * Performs a linearizable read.
   * @throws EtcdError as for `execute`
   */
  async ask<Q extends KeyspaceQuestion>(question: Q): Promise<ResponseTo<Q>> {
    const { answer } = await this.#call(false, () => this.#service.query({ type: "readKeys", question }));
    return answered(answer.response) as ResponseTo<Q>;
  }

  /**
   * Reports changes as this replica applies them. Reports null after the replica has installed a snapshot, because
   * changes may be missing.
   * @returns a function that removes the listener
   */
  listen(listener: (change: KeyspaceChange | null) => void): () => void {
    this.#listeners.add(listener);
    const unfollow = this.#service.followKeys();
    return () => {
      this.#listeners.delete(listener);
      unfollow();
    };
  }

  close(): void {
    this.#forget();
  }

  async #call<T>(changes: boolean, work: (isWanted: () => boolean) => Promise<T>): Promise<T> {
    try {
      return await this.#service.call({ what: "an etcd API call", changes, timeoutMs: TIMEOUT_MS }, work);
    } catch (error) {
      throw inWordsOfEtcd(error);
    }
  }
}

function answered(response: KeyspaceResponse): Exclude<KeyspaceResponse, Refused> {
  if (response.type !== "refused") return response;
  const { code, revision, compacted } = response;
  throw new EtcdError(code, { revision, compacted: code === "compacted" ? compacted : 0 });
}

function inWordsOfEtcd(error: unknown): unknown {
  if (!(error instanceof CoordinationError)) return error;
  if (error.code === "member-left" || error.code === "member-failed") return new EtcdError("stopped", { cause: error });
  if (error.code === "overloaded") return new EtcdError("tooManyRequests", { cause: error });
  if (error.code === "state-full") return new EtcdError("noSpace", { cause: error });
  return new EtcdError("timedOut", { cause: error });
}

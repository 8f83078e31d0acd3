/** The keyspace as a member's etcd server uses it: commands through the log, linearizable reads, and change events. */

import { MAX_VALUE_BYTES } from "../../protocols/service/coordination-service/operations.ts";
import { type AskedCommand, KEYSPACE, type KeyspaceTold, LONG } from "../../protocols/service/keyspace/built-in.ts";
import type {
  KeyspaceChange,
  KeyspaceCommand,
  KeyspaceQuestion,
  KeyspaceResponse,
  Refused,
} from "../../protocols/service/keyspace/vocabulary.ts";
import type { Timers } from "../../runtime/platform/platform.ts";
import { CoordinationError } from "../services/coordination-error.ts";
import type { Service } from "../services/state/service.ts";
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

export class KeyspaceClient {
  readonly #service: Service;
  #asked = 0;
  /** Responses that do not fit into the log's results. The replica supplies them when it applies the command. */
  readonly #long = new Map<string, KeyspaceResponse | null>();
  readonly #forget: () => void;

  readonly #listeners = new Set<(change: KeyspaceChange | null) => void>();

  constructor(service: Service) {
    this.#service = service;
    const tell = (change: KeyspaceChange | null): void => {
      for (const listener of [...this.#listeners]) listener(change);
    };
    this.#forget = service.listen((event) => {
      if (event.type === "restored") tell(null);
      if (event.type !== "machineChanged" || event.machine !== KEYSPACE) return;
      const { change, long } = event.change as KeyspaceTold;
      if (long !== null && this.#long.has(long.asker)) this.#long.set(long.asker, long.response);
      if (change !== null) tell(change);
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
    const asker = `${this.#service.self} ${this.#service.session} ${this.#asked}`;
    const asked: AskedCommand = { asker, command };
    const text = JSON.stringify(asked);
    if (utf8Bytes(text) > MAX_VALUE_BYTES) throw new EtcdError("requestTooLarge");
    this.#long.set(asker, null);
    try {
      const done = await this.#call(true, (isWanted) =>
        this.#service.submit({ type: "execute", machine: KEYSPACE, command: text }, isWanted),
      );
      if (done.result.type !== "executed") throw new EtcdError("timedOut");
      const { result } = done.result;
      const response = result === LONG ? this.#long.get(asker) : (JSON.parse(result) as KeyspaceResponse);
      // A snapshot replaced the log entry.
      if (response === null || response === undefined) throw new EtcdError("timedOut");
      return answered(response) as ResponseTo<C>;
    } finally {
      this.#long.delete(asker);
    }
  }

  /**
   * Performs a linearizable read.
   * @throws EtcdError as for `execute`
   */
  async ask<Q extends KeyspaceQuestion>(question: Q): Promise<ResponseTo<Q>> {
    const text = JSON.stringify(question);
    const { answer } = await this.#call(false, () =>
      this.#service.query({ type: "ask", machine: KEYSPACE, question: text }),
    );
    return answered(JSON.parse(answer.answer) as KeyspaceResponse) as ResponseTo<Q>;
  }

  /**
   * Reports changes as this replica applies them. Reports null after the replica has installed a snapshot, because
   * changes may be missing.
   * @returns a function that removes the listener
   */
  listen(listener: (change: KeyspaceChange | null) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
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
  // The transaction is nested too deeply.
  if (error.code === "machine-failed") return new EtcdError("tooManyOperations", { cause: error });
  if (error.code === "state-full") return new EtcdError("noSpace", { cause: error });
  return new EtcdError("timedOut", { cause: error });
}

/**
 * etcd's JSON API over HTTP, which every etcd member serves in addition to gRPC. It supports single calls and streams
 * of lines.
 */
import { type ClientRequest, type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { refused, StoreError } from "./store.ts";

/** The addresses and certificates of etcd. */
export interface EtcdPlace {
  /** The URLs of the members, such as `http://10.0.0.1:2379`. */
  readonly endpoints: readonly string[];
  /**
   * PEM data: `ca` to verify the members' certificates, and this process's `cert` and `key`, if the members require
   * them.
   */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string } | undefined;
}

/** The maximum size of a single answer. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_SOCKETS = 16;
/** If a member has not answered a call within this time, later calls use the next member and new connections. */
const SLOW_MS = 1_000;
const CALL_MS = 5_000;
/** Matches error messages from etcd and from gRPC, on which etcd's JSON gateway is based. */
const TOO_LARGE = /request is too large|too many operations|message larger than max/;

/** Sends calls to etcd. After a failure it switches to the next endpoint. */
export class EtcdHttp {
  readonly #endpoints: readonly string[];
  readonly #agents;
  readonly #tls: NonNullable<EtcdPlace["tls"]>;
  readonly #open = new Set<ClientRequest>();
  readonly #streams = new Set<ClientRequest>();
  #at = 0;

  constructor({ endpoints, tls = {} }: EtcdPlace) {
    this.#endpoints = endpoints;
    this.#tls = tls;
    const options = { keepAlive: true, maxSockets: MAX_SOCKETS };
    this.#agents = { plain: new PlainAgent(options), tls: new TlsAgent({ ...options, ...tls }) };
  }

  /** @throws StoreError; UsageError `too-large` */
  call(path: string, body: object): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      let text = "";
      const place = this.#at;
      const slow = setTimeout(() => {
        this.#leave(place);
        this.#renew();
      }, SLOW_MS).unref();
      const fail = (error: Error & { code?: unknown }): void => {
        clearTimeout(slow);
        this.#leave(place);
        const isUnheard = error.code === "ECONNREFUSED";
        reject(new StoreError(`etcd: ${error.message}`, !isUnheard, { cause: error }));
      };
      /**
       * Rejects the call after an error response. A request that a member rejected (4xx) was not applied. A request
       * that failed inside the member (5xx) may have been.
       */
      const turnedAway = (status: number, said: string): void => {
        const isUncertain = status < 400 || status >= 500;
        const why = `etcd: ${status} ${said.slice(0, 300)}`;
        if (isUncertain) this.#leave(place);
        reject(TOO_LARGE.test(said) ? tooLarge(said) : new StoreError(why, isUncertain));
      };
      const asked = this.#ask(path, body, (response) => {
        response.setEncoding("utf8");
        response.on("data", (more: string) => {
          text += more;
          if (text.length > MAX_ANSWER_BYTES)
            asked.destroy(new Error(`an answer of more than ${MAX_ANSWER_BYTES} bytes`));
        });
        response.on("error", fail);
        response.on("end", () => {
          clearTimeout(slow);
          if (response.statusCode !== 200) return turnedAway(response.statusCode ?? 0, text);
          try {
            resolve(JSON.parse(text) as Record<string, unknown>);
          } catch (error) {
            fail(error as Error);
          }
        });
      });
      asked.setTimeout(CALL_MS, () => asked.destroy(new Error(`no answer within ${CALL_MS} ms`)));
      asked.on("error", fail);
    });
  }

  /**
   * Calls `onLine` for each line, until the returned function is called.
   * @param onEnd called when the stream ends, and also if it could not be started
   */
  stream(path: string, body: object, onLine: (line: Record<string, unknown>) => void, onEnd: (error: Error) => void) {
    let isOver = false;
    const place = this.#at;
    const end = (error: Error): void => {
      if (isOver) return;
      isOver = true;
      asked.destroy();
      onEnd(error);
    };
    const asked = this.#ask(path, body, (response) => {
      let rest = "";
      response.setEncoding("utf8");
      response.on("data", (more: string) => {
        const lines = (rest + more).split("\n");
        rest = lines.pop() ?? "";
        if (rest.length > MAX_ANSWER_BYTES) return end(new Error(`a line of more than ${MAX_ANSWER_BYTES} bytes`));
        try {
          for (const line of lines) if (line !== "" && !isOver) onLine(JSON.parse(line) as Record<string, unknown>);
        } catch (error) {
          end(error as Error);
        }
      });
      response.on("error", end);
      response.on("end", () => end(new Error("it ended")));
    });
    asked.on("error", (error) => {
      this.#leave(place);
      end(error);
    });
    asked.on("close", () => {
      this.#streams.delete(asked);
      end(new Error("it was ended"));
    });
    this.#streams.add(asked);
    return (): void => {
      isOver = true;
      asked.destroy();
    };
  }

  close(): void {
    for (const asked of this.#open) asked.destroy();
    this.#agents.plain.destroy();
    this.#agents.tls.destroy();
  }

  /**
   * Makes later requests use the next member. If several requests failed at the same member, only the first one
   * advances.
   */
  #leave(place: number): void {
    if (this.#at === place) this.#at += 1;
  }

  /**
   * Closes idle connections and streams. One of them may have died silently, and later requests would then wait for it.
   */
  #renew(): void {
    for (const agent of Object.values(this.#agents))
      for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
    for (const stream of this.#streams) stream.destroy();
  }

  #ask(path: string, body: object, onResponse: (response: IncomingMessage) => void): ClientRequest {
    const url = new URL(path, this.#endpoints[this.#at % this.#endpoints.length]);
    const options = { method: "POST", headers: { "content-type": "application/json" } };
    const asked =
      url.protocol === "https:"
        ? tlsRequest(url, { ...options, ...this.#tls, agent: this.#agents.tls }, onResponse)
        : plainRequest(url, { ...options, agent: this.#agents.plain }, onResponse);
    this.#open.add(asked);
    asked.on("close", () => this.#open.delete(asked));
    asked.end(JSON.stringify(body));
    return asked;
  }
}

function tooLarge(said: string): Error {
  const [, why = said.slice(0, 300)] = /"(?:error|message)":"([^"]*)"/.exec(said) ?? [];
  return refused("too-large", `expected a change that etcd accepts: ${why}`);
}

/** An HTTP client that limits time and size: short JSON exchanges, and downloads. */
import { type IncomingMessage, request } from "node:http";
import { request as secureRequest } from "node:https";
import { EnvironmentError } from "../core/errors.ts";

const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export interface Exchange {
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  readonly body?: object;
  readonly timeoutMs: number;
  readonly token?: string | undefined;
  /** PEM-encoded certificates and key, for `https` URLs. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

export interface Answer {
  readonly status: number;
  /** The parsed JSON. Undefined if the response was not JSON. */
  readonly body: unknown;
}

/** @throws EnvironmentError if the server does not answer in time */
export function exchange(url: string, { method = "GET", body, timeoutMs, token, tls = {} }: Exchange): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = {
      ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const fail = (reason: string, cause?: Error): void => {
      call.destroy();
      reject(new EnvironmentError("no-answer", `${url.replace(/\?.*/, "")} does not answer: ${reason}`, { cause }));
    };
    // Connections are not reused, because the server process may have crashed and restarted between requests.
    const ask = url.startsWith("https:") ? secureRequest : request;
    const call = ask(url, { method, headers, agent: false, ...tls }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) fail("the answer is too long");
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: parsed(Buffer.concat(chunks)) }));
      response.on("error", (error) => fail(error.message));
    });
    const deadline = setTimeout(() => fail(`waited ${timeoutMs} ms`), timeoutMs);
    call.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? error.message, error));
    call.on("close", () => {
      clearTimeout(deadline);
      fail("the connection was closed"); // Has no effect once the response is complete.
    });
    call.end(text);
  });
}

/** A request for a long response. */
export interface Download extends Omit<Exchange, "method" | "body"> {
  readonly signal: AbortSignal;
  /** Processes the next chunk. The download waits until this resolves. */
  take(chunk: Buffer): Promise<unknown>;
}

/**
 * Downloads a response that is too large to hold in memory.
 * @returns null once it is complete, or the error response
 * @throws EnvironmentError; the reason of `signal`
 */
export async function download(url: string, { timeoutMs, token, tls = {}, ...of }: Download): Promise<Answer | null> {
  const { signal, take } = of;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const ask = url.startsWith("https:") ? secureRequest : request;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const call = ask(url, { headers, agent: false, signal, ...tls }, resolve);
      call.on("error", reject);
      call.setTimeout(timeoutMs, () => call.destroy(new Error(`waited ${timeoutMs} ms`)));
      call.end();
    });
    const status = response.statusCode ?? 0;
    const refusal: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (status === 200) {
        await take(chunk);
        continue;
      }
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) throw new Error("the answer is too long");
      refusal.push(chunk);
    }
    return status === 200 ? null : { status, body: parsed(Buffer.concat(refusal)) };
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = error as NodeJS.ErrnoException;
    throw new EnvironmentError("no-answer", `${url} does not answer: ${code ?? message}`, { cause: error });
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

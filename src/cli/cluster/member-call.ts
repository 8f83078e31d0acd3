/** Requests to the HTTP API: lists and changes members, and downloads a snapshot. */
import type { Command } from "commander";
import { z } from "zod";
import { complaint } from "../../cluster/admin-client.ts";
import { MAX_REQUEST_MS } from "../../cluster/clients/request-timeout.ts";
import { type Answer, type Download, download, exchange } from "../../cluster/http-exchange.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import { type DataOptions, OTHER_ENDPOINTS, placesFor, withDataOptions } from "../client/endpoints.ts";

const DEFAULT_TIMEOUT_MS = 10_000;
/** Extra time for a response to arrive. The member itself responds within `timeoutMs`. */
const ON_THE_WAY_MS = 2_000;

/** Adds the options for an HTTP request. The maximum timeout is the longest wait that the server allows. */
export const withRequestOptions = (command: Command): Command =>
  withDataOptions(command, "how long to wait, 10m at most (default: 10s)", MAX_REQUEST_MS);

const listShape = z.object({
  members: z.array(z.object({ id: z.number(), address: z.string(), role: z.string(), isLeader: z.boolean() })),
});
/** The members, as listed by the HTTP API. */
export type Listed = z.infer<typeof listShape>["members"];

export async function membersAt(options: DataOptions): Promise<Listed> {
  const { body } = await ask(options, "GET", `/v1/members?timeoutMs=${options.timeout ?? DEFAULT_TIMEOUT_MS}`);
  const parsed = listShape.safeParse(body);
  if (!parsed.success) throw new EnvironmentError("no-answer", "expected a list of members, got another answer");
  return parsed.data.members;
}

/** Requests a change to the members. */
export async function change(
  options: DataOptions,
  method: "POST" | "PUT",
  path: string,
  body: object = {},
): Promise<void> {
  await ask(options, method, path, { ...body, timeoutMs: options.timeout ?? DEFAULT_TIMEOUT_MS });
}

/** Waits until all changes have taken effect. */
export async function settled(options: DataOptions): Promise<void> {
  await ask(options, "POST", "/v1/members/settled", { timeoutMs: options.timeout ?? DEFAULT_TIMEOUT_MS });
}

/** Downloads the shared state in chunks. */
export async function snapshotFrom(
  options: DataOptions,
  { signal, take }: Pick<Download, "signal" | "take">,
): Promise<void> {
  const timeout = options.timeout ?? DEFAULT_TIMEOUT_MS;
  const given = { timeoutMs: timeout + ON_THE_WAY_MS, signal, take };
  await atFirst(options, false, async (at, { token, tls }) => {
    const refused = await download(`${at}/v1/snapshot?timeoutMs=${timeout}`, { ...given, token, tls });
    if (refused !== null) refuse(refused, at);
  });
}

async function ask(options: DataOptions, method: "GET" | "POST" | "PUT", path: string, body?: object): Promise<Answer> {
  const timeoutMs = (options.timeout ?? DEFAULT_TIMEOUT_MS) + ON_THE_WAY_MS;
  // If a read fails, it can be retried with another member, for example because this one has been removed in the
  // meantime.
  const isAgain = method === "GET" || path.endsWith("/settled");
  return atFirst(options, isAgain, async (at, { token, tls }) => {
    const given = { method, timeoutMs, token, tls, ...(body === undefined ? {} : { body }) };
    const answer = await exchange(`${at}${path}`, given);
    return answer.status < 300 ? answer : refuse(answer, at);
  });
}

/** The error code for a request that a member rejects. */
const REFUSED = "refused";

function refuse({ status, body }: Answer, endpoint: string): never {
  const words = complaint(body, `${endpoint} answered ${status}`);
  if (status < 500 && status !== 409) throw new UsageError(REFUSED, words);
  throw new EnvironmentError(REFUSED, words);
}

/**
 * Calls the first endpoint that answers.
 * @param isAgain whether to try the next endpoint after a failure
 * @throws UsageError for an invalid or forbidden request; EnvironmentError with the last answer, if there was one
 */
async function atFirst<T>(
  options: DataOptions,
  isAgain: boolean,
  act: (endpoint: string, by: ReturnType<typeof placesFor>) => Promise<T>,
): Promise<T> {
  const places = placesFor(options);
  let failure: unknown;
  let answered: EnvironmentError | null = null;
  for (const endpoint of places.endpoints) {
    try {
      return await act(pagesOf(endpoint), places);
    } catch (error) {
      failure = error;
      if (error instanceof EnvironmentError && error.code === REFUSED) answered = error;
      if (!isAbsent(error) && !(isAgain && error instanceof EnvironmentError)) throw error;
    }
  }
  if (answered !== null) throw answered;
  const why = (failure as Error).message.replace(/^.* does not answer: /, "");
  const text = `none of ${places.endpoints.join(", ")} answered: ${why} (${OTHER_ENDPOINTS})`;
  throw new EnvironmentError("no-answer", text, { cause: failure });
}

/** Returns the base URL for an endpoint's pages. Also accepts WebSocket endpoints. */
const pagesOf = (endpoint: string): string => endpoint.replace(/^ws/, "http").replace(/\/$/, "");

/** Whether the request was never sent, so that it is safe to send it to the next endpoint. */
const isAbsent = (error: unknown): boolean =>
  ["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH"].includes(
    ((error as Error).cause as { code?: string } | undefined)?.code ?? "",
  );

/** Asks a cluster about its members, or to change them, where members serve clients. */
import { z } from "zod";
import { complaint } from "../cluster/admin-client.ts";
import { type Answer, exchange } from "../cluster/http-exchange.ts";
import { EnvironmentError, UsageError } from "../core/errors.ts";
import { type DataOptions, placesFor } from "./endpoints.ts";

const DEFAULT_TIMEOUT_MS = 10_000;
/** A member answers within the time that it is given; it takes a moment more until that is here. */
const ON_THE_WAY_MS = 2_000;

const listShape = z.object({
  members: z.array(z.object({ id: z.number(), address: z.string(), role: z.string(), isLeader: z.boolean() })),
});
export type Listed = z.infer<typeof listShape>["members"];

export async function membersAt(options: DataOptions): Promise<Listed> {
  const { body } = await ask(options, "GET", "/v1/members");
  const parsed = listShape.safeParse(body);
  if (!parsed.success) throw new EnvironmentError("no-answer", "expected a list of members, got something else");
  return parsed.data.members;
}

export async function change(
  options: DataOptions,
  method: "POST" | "PUT",
  path: string,
  body: object = {},
): Promise<void> {
  await ask(options, method, path, { ...body, timeoutMs: options.timeout ?? DEFAULT_TIMEOUT_MS });
}

/** Waits until all changes are in effect. */
export async function settled(options: DataOptions): Promise<void> {
  await ask(options, "POST", "/v1/members/settled", { timeoutMs: options.timeout ?? DEFAULT_TIMEOUT_MS });
}

/** Of the first endpoint where somebody is there. @throws UsageError for what cannot be or may not, EnvironmentError where nobody answers */
async function ask(options: DataOptions, method: "GET" | "POST" | "PUT", path: string, body?: object): Promise<Answer> {
  const { endpoints, token, tls } = placesFor(options);
  const timeoutMs = (options.timeout ?? DEFAULT_TIMEOUT_MS) + ON_THE_WAY_MS;
  let failure: unknown;
  for (const endpoint of endpoints) {
    const url = `${endpoint.replace(/\/$/, "")}${path}`;
    try {
      const answer = await exchange(url, { method, timeoutMs, token, tls, ...(body === undefined ? {} : { body }) });
      if (answer.status < 300) return answer;
      const words = complaint(answer.body, `${endpoint} answered ${answer.status}`);
      if (answer.status < 500 && answer.status !== 409) throw new UsageError("refused", words);
      throw new EnvironmentError("refused", words);
    } catch (error) {
      failure = error;
      // What changes nothing can be asked anew, such as where the member that was asked has been removed meanwhile.
      const isAgain = (method === "GET" || path.endsWith("/settled")) && error instanceof EnvironmentError;
      if (!isAbsent(error) && !isAgain) throw error;
    }
  }
  throw failure;
}

/** Nothing was asked there, so it can be asked elsewhere. */
const isAbsent = (error: unknown): boolean =>
  ["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH"].includes(
    ((error as Error).cause as { code?: string } | undefined)?.code ?? "",
  );

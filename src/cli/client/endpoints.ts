/** The options of commands that use a cluster as clients: where it is, and the credentials. */
import { readFileSync } from "node:fs";
import { env } from "node:process";
import type { Command } from "commander";
import { type Client, requireConnectOptions } from "../../client/client.ts";
import { connect } from "../../client/node.ts";
import { CoordinationError } from "../../cluster/services/coordination-error.ts";
import { UsageError } from "../../core/errors.ts";
import { duration } from "../options.ts";
import type { Invocation } from "../output.ts";

const ENDPOINTS_VARIABLE = "COTERIE_ENDPOINTS";
const TOKEN_VARIABLE = "COTERIE_CLIENT_TOKEN";
const DEFAULT_TIMEOUT_MS = 10_000;

export interface EndpointOptions {
  readonly endpoints?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface DataOptions extends EndpointOptions {
  readonly timeout?: number;
  readonly json?: true;
}

export function withEndpointOptions(command: Command): Command {
  return command
    .option(
      "--endpoints <urls>",
      "where members serve clients, separated by commas, such as http://10.0.0.1:7300 (default: $COTERIE_ENDPOINTS)",
    )
    .option("--token-file <file>", "a token, where the cluster asks for one (default: $COTERIE_CLIENT_TOKEN)")
    .option("--ca <file>", "whose certificates members must have, as PEM")
    .option("--cert <file>", "a certificate of one's own, as PEM")
    .option("--key <file>", "its key, as PEM");
}

export const withDataOptions = (
  command: Command,
  timeout = "how long to wait at most (default: 10s)",
  mostMs?: number,
): Command =>
  withEndpointOptions(command)
    .option("--timeout <time>", timeout, duration("--timeout", mostMs))
    .option("--json", "print the answer as JSON");

export const CODES = `Exit codes: 0 done; 1 it does not hold, or nobody answers in time; 2 wrong arguments, or not allowed.`;

/** What is said to a member, and where members are. @throws UsageError for endpoints that cannot be, and files that cannot be read */
export function placesFor(options: EndpointOptions) {
  const text = options.endpoints ?? env[ENDPOINTS_VARIABLE] ?? "";
  const endpoints = text.split(",").flatMap((each) => (each.trim() === "" ? [] : [each.trim()]));
  if (endpoints.length === 0)
    throw new UsageError(
      "bad-argument",
      `expected --endpoints, or $${ENDPOINTS_VARIABLE}, to say where members serve clients, such as http://127.0.0.1:7300`,
    );
  requireConnectOptions({ endpoints });
  const token = options.tokenFile === undefined ? env[TOKEN_VARIABLE] : contentOf(options.tokenFile).trim();
  const { ca, cert, key } = options;
  const tls = Object.fromEntries(
    Object.entries({ ca, cert, key }).flatMap(([name, file]) => (file === undefined ? [] : [[name, contentOf(file)]])),
  );
  return { endpoints, tls, ...(token === undefined || token === "" ? {} : { token }) };
}

/** @throws UsageError for endpoints that cannot be, files that cannot be read, and where this client may not */
export const clientFor = (options: EndpointOptions, waiting: Waiting = {}): Promise<Client> =>
  connectTo(placesFor(options), waiting);

interface Waiting {
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** @throws UsageError where this client may not */
export async function connectTo(
  places: ReturnType<typeof placesFor>,
  { timeoutMs = DEFAULT_TIMEOUT_MS, signal }: Waiting,
): Promise<Client> {
  try {
    return await connect({ ...places, timeoutMs, signal });
  } catch (error) {
    throw forCaller(error);
  }
}

/** Connects, works, closes. What the work returns is printed: as JSON, or as its text. */
export async function asClient(
  options: DataOptions,
  { stdout }: Invocation,
  work: (client: Client, call: { timeoutMs?: number }) => Promise<{ json: object; text: string }>,
): Promise<void> {
  const { timeout } = options;
  const client = await clientFor(options, { timeoutMs: timeout });
  try {
    const { json, text } = await work(client, timeout === undefined ? {} : { timeoutMs: timeout });
    stdout.write(options.json === true ? `${JSON.stringify(json)}\n` : text === "" ? "" : `${text}\n`);
  } catch (error) {
    throw forCaller(error);
  } finally {
    await client.close();
  }
}

/** Who may not is to ask otherwise. */
export function forCaller(error: unknown): unknown {
  const isForbidden = error instanceof CoordinationError && error.code === "forbidden";
  return isForbidden ? new UsageError(error.code, `${error.message} (${WHO_ASKS})`) : error;
}

const WHO_ASKS = `--token-file, $${TOKEN_VARIABLE}, or --cert with --key`;

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError("cannot-read", `cannot read ${file}: ${(error as Error).message}`);
  }
}

/** What stands on the command line: JSON if it is that, otherwise a text. */
export function writtenValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Bytes are shown as base64. */
export const shown = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64") : JSON.stringify(value);

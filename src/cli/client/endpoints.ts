/** Endpoints and credentials for the commands that act as clients of a cluster. */
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
/** The endpoint used in all examples. `coterie node --clients 127.0.0.1:7300` serves it. */
const DEFAULT_ENDPOINT = "http://127.0.0.1:7300";
const DEFAULT_TIMEOUT_MS = 10_000;

/** The options that select the cluster and the credentials. */
export interface EndpointOptions {
  readonly endpoints?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** The options of a command that makes a single call. */
export interface DataOptions extends EndpointOptions {
  readonly timeout?: number;
  readonly json?: true;
}

/** Adds the options that select the cluster and the credentials. */
export function withEndpointOptions(command: Command): Command {
  return command
    .option(
      "--endpoints <urls>",
      `URLs of members, separated by commas (default: $${ENDPOINTS_VARIABLE}, or ${DEFAULT_ENDPOINT})`,
    )
    .option(
      "--token-file <file>",
      `file with the token, if the cluster needs one (default: the token in $${TOKEN_VARIABLE})`,
    )
    .option("--ca <file>", "the members' certificate authority, as PEM")
    .option("--cert <file>", "client certificate, as PEM")
    .option("--key <file>", "private key of the client certificate, as PEM");
}

/**
 * Adds the options of a command that makes a single call.
 * @param mostMs the longest accepted timeout
 */
export const withDataOptions = (
  command: Command,
  timeout = "how long to wait (default: 10s)",
  mostMs?: number,
): Command =>
  withEndpointOptions(command)
    .option("--timeout <time>", timeout, duration("--timeout", mostMs))
    .option("--json", "print the answer as JSON");

/** The exit codes of client commands, for their manuals. */
export const EXIT_CODES = "0 done; 1 failed, or no member answered in time; 2 invalid arguments, or not allowed";

/**
 * Returns the endpoints and credentials for a command.
 * @throws UsageError for invalid endpoints and unreadable files
 */
export function placesFor(options: EndpointOptions) {
  const text = options.endpoints ?? (env[ENDPOINTS_VARIABLE] || DEFAULT_ENDPOINT);
  const endpoints = text.split(",").flatMap((each) => (each.trim() === "" ? [] : [each.trim()]));
  if (endpoints.length === 0)
    throw new UsageError(
      "bad-argument",
      `expected --endpoints to be URLs of members, such as ${DEFAULT_ENDPOINT}, got ${JSON.stringify(text)}`,
    );
  requireConnectOptions({ endpoints });
  const token = options.tokenFile === undefined ? env[TOKEN_VARIABLE] : contentOf(options.tokenFile).trim();
  const { ca, cert, key } = options;
  const tls = Object.fromEntries(
    Object.entries({ ca, cert, key }).flatMap(([name, file]) => (file === undefined ? [] : [[name, contentOf(file)]])),
  );
  return { endpoints, tls, ...(token === undefined || token === "" ? {} : { token }) };
}

/**
 * Connects a client.
 * @throws UsageError for invalid endpoints, unreadable files, and credentials without permission
 */
export const clientFor = (options: EndpointOptions, waiting: Waiting = {}): Promise<Client> =>
  connectTo(placesFor(options), waiting);

interface Waiting {
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** @throws UsageError for credentials without permission */
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

/** Connects a client, runs `work`, prints its result as JSON or text, and closes the client. */
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

/** If the error is about missing permission or about endpoints that do not answer, adds which options to use. */
export function forCaller(error: unknown): unknown {
  if (!(error instanceof CoordinationError)) return error;
  if (error.code === "forbidden") return new UsageError(error.code, `${error.message} (${CREDENTIALS})`);
  if (error.code !== "no-endpoint") return error;
  return new CoordinationError(error.code, error.phase, `${error.message} (${OTHER_ENDPOINTS})`, { cause: error });
}

/** The hint in errors about endpoints that do not answer. */
export const OTHER_ENDPOINTS = `set --endpoints or $${ENDPOINTS_VARIABLE}`;

const CREDENTIALS = `--token-file, $${TOKEN_VARIABLE}, or --cert with --key`;

function contentOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError("cannot-read", `cannot read ${file}: ${(error as Error).message}`);
  }
}

/** Returns the value of an argument: parsed if it is JSON, otherwise the text itself. */
export function writtenValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Returns a value as text. Bytes are shown as base64. */
export const shown = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64") : JSON.stringify(value);

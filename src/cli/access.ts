/** How `coterie lock` and `coterie elect` use the cluster: as a client that connects when something is first waited for. */
import { platform } from "node:process";
import { type Command, Option } from "commander";
import type { Client } from "../client/client.ts";
import type { AcquireOptions, Grant, Leadership, LeadOptions } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { requireName } from "../cluster/services/instance-name.ts";
import { UsageError } from "../core/errors.ts";
import { duration } from "./duration.ts";
import { connectTo, type EndpointOptions, forCaller, placesFor, withEndpointOptions } from "./endpoints.ts";
import { say } from "./report.ts";

const DEFAULT_GRACE_MS = 100;
/** After this time without an answer the reason is printed. */
const EXPLAIN_AFTER_MS = 3_000;
/** A shorter wait is none. */
const LEAST_MS = 1;

export interface AccessOptions extends EndpointOptions {
  readonly grace: number;
  readonly verbose?: true;
}

export const withAccessOptions = (command: Command): Command =>
  withEndpointOptions(command)
    .addOption(
      new Option("--grace <time>", "time from SIGTERM to SIGKILL when the command is stopped")
        .argParser(duration("--grace"))
        .default(DEFAULT_GRACE_MS, `${DEFAULT_GRACE_MS}ms`),
    )
    .option("--verbose", "report on stderr what happens");

export class Access {
  readonly #places: ReturnType<typeof placesFor>;
  #client: Client | null = null;

  /** @throws UsageError for bad endpoints, files that cannot be read, and systems on which a command cannot be stopped */
  constructor(options: EndpointOptions) {
    if (platform === "win32") {
      const sentence =
        "expected a system with process groups, so that a command can be stopped as a whole: Windows has none";
      throw new UsageError("no-process-groups", `${sentence}; from a program, join() works there`);
    }
    this.#places = placesFor(options);
  }

  async acquire(name: string, options: AcquireOptions): Promise<Grant> {
    requireName(name);
    const began = performance.now();
    const mutex = (await this.#connected(options)).mutex(name);
    const { timeoutMs } = options;
    const left = timeoutMs && Math.max(LEAST_MS, timeoutMs - (performance.now() - began));
    return mutex.acquire({ ...options, timeoutMs: left }).catch((error: unknown) => {
      throw withWholeTime(forCaller(error), left, timeoutMs);
    });
  }

  async lead(name: string, work: (leadership: Leadership) => Promise<void>, options: LeadOptions): Promise<void> {
    const election = (await this.#connected(options)).election(requireName(name));
    return election.lead(work, options).catch((error: unknown) => {
      throw forCaller(error);
    });
  }

  /** Prints after a while that no member answers, if none does. Returns a function that ends that. */
  explainWaiting(what: string): () => void {
    const { endpoints } = this.#places;
    const timer = setTimeout(() => {
      if ((this.#client?.status().member ?? null) !== null) return;
      const missing = `no member that knows a leader answers at ${endpoints.join(", ")}`;
      say(`waiting for ${what}: it takes a majority of the members, and ${missing}`);
    }, EXPLAIN_AFTER_MS);
    return () => clearTimeout(timer);
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }

  async #connected({ timeoutMs = Number.POSITIVE_INFINITY, signal }: AcquireOptions): Promise<Client> {
    this.#client ??= await connectTo(this.#places, { timeoutMs, signal });
    return this.#client;
  }
}

/** Connecting took part of the time: the error names all of it, as the caller gave it. */
function withWholeTime(error: unknown, left: number | undefined, timeoutMs: number | undefined): unknown {
  if (!(error instanceof CoordinationError) || left === undefined) return error;
  const message = error.message.replace(`within ${left} ms`, `within ${timeoutMs} ms`);
  return new CoordinationError(error.code, error.phase, message, { cause: error });
}

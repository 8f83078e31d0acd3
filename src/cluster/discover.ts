/**
 * Finds the members through DNS, by looking up a name's SRV records. A headless service in Kubernetes has such records
 * for its pods.
 */
import type { SrvRecord } from "node:dns";
import { Resolver } from "node:dns/promises";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { sleep } from "../runtime/platform/sleep.ts";
import * as may from "./services/known-options.ts";

/** Options for `discover()`. */
export interface DiscoverOptions {
  /**
   * The number of members that form the cluster initially. These are the ones with the lowest ids. The lookup is
   * repeated until DNS lists this many.
   */
  readonly count: number;
  /** The maximum time to keep trying, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it rejects the promise. */
  readonly signal?: AbortSignal | undefined;
  /** The DNS servers to query, such as `10.0.0.10:53`. Default: the system's servers. */
  readonly servers?: readonly string[] | undefined;
}

const rules: may.Rules<DiscoverOptions> = {
  count: may.needed(may.positive),
  timeoutMs: may.duration,
  signal: may.signal,
  servers: { wanted: 'a list such as ["10.0.0.10:53"]', accepts: areTexts },
};

const DEFAULT_TIMEOUT_MS = 60_000;
const ASK_AGAIN_MS = 500;

/**
 * Finds the `members` for `join()`. A member's id is the number at the end of its host's first label, which is how a
 * StatefulSet numbers its pods: `coterie-2.coterie.shop.svc.cluster.local` is 2. Once the cluster has been founded, its
 * own member list takes precedence.
 *
 * @param name the DNS name with the SRV records
 * @example
 * const members = await discover("_members._tcp.coterie", { count: 3 });
 * const member = await join({ id: Number(process.env.HOSTNAME?.split("-").at(-1)), members, dataDir: "/data", tls });
 * @throws UsageError if an option is invalid, `bad-host` if a host has no number or two hosts have the same number;
 *   EnvironmentError `cannot-discover` if DNS does not list enough members in time; the reason of `signal`
 */
export async function discover(name: string, options: DiscoverOptions): Promise<Record<NodeId, string>> {
  may.requireRule("the name of discover()", name, may.needed(may.text));
  may.requireOptions("discover", options, rules);
  const { count, timeoutMs = DEFAULT_TIMEOUT_MS, signal, servers } = options;
  const { clock, timers } = realPlatform;
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  if (servers !== undefined) resolver.setServers(servers);
  const until = clock.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const { found, why } = await ask(resolver, name);
    const known = membersOf(name, found);
    if (known.size >= count) return Object.fromEntries([...known].sort(([a], [b]) => a - b).slice(0, count));
    if (clock.now() >= until)
      throw new EnvironmentError(
        "cannot-discover",
        `expected ${count} members in the SRV records of ${name} within ${timeoutMs} ms, got ${known.size}${why}`,
      );
    await sleep(timers, ASK_AGAIN_MS, { signal });
  }
}

/** Queries DNS. If it has no answer for the name yet, `why` contains the reason. */
async function ask(resolver: Resolver, name: string): Promise<{ found: readonly SrvRecord[]; why: string }> {
  try {
    return { found: await resolver.resolveSrv(name), why: "" };
  } catch (error) {
    return { found: [], why: ` (${(error as NodeJS.ErrnoException).code ?? (error as Error).message})` };
  }
}

function membersOf(name: string, records: readonly SrvRecord[]): Map<NodeId, string> {
  const members = new Map<NodeId, string>();
  for (const { name: host, port } of records) {
    const digits = /^[^.]*?(\d+)(?:\.|$)/.exec(host)?.[1];
    const id = Number(digits);
    if (digits === undefined || !Number.isSafeInteger(id))
      throw new UsageError(
        "bad-host",
        unexpected(`a host of ${name}`, "one such as coterie-2.coterie, which is member 2", host),
      );
    const address = formatHostPort({ host, port });
    if ((members.get(id) ?? address) !== address)
      throw new UsageError(
        "bad-host",
        `expected only one host of ${name} with the number ${id}, got ${members.get(id)} and ${address}`,
      );
    members.set(id, address);
  }
  return members;
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

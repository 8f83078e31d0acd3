/** Finds the members through DNS: the SRV records of a name, such as a headless service of Kubernetes has for its pods. */
import type { SrvRecord } from "node:dns";
import { Resolver } from "node:dns/promises";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { sleep } from "../runtime/platform/sleep.ts";
import * as may from "./services/known-options.ts";

/** Options of `discover()`. */
export interface DiscoverOptions {
  /** How many members found the cluster: those with the lowest ids. Repeats the lookup until DNS lists as many. */
  readonly count: number;
  /** How long to try at most. Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it rejects the call. */
  readonly signal?: AbortSignal | undefined;
  /** The DNS servers to ask, such as `10.0.0.10:53`. Default: the system's servers. */
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
 * Finds the `members` for `join()`. A member's id is the number at the end of its host's first label, as a StatefulSet
 * numbers its pods: `coterie-2.coterie.shop.svc.cluster.local` is 2. Once the cluster is founded, its own list of members
 * takes precedence.
 *
 * @param name the DNS name with the SRV records
 * @example
 * const members = await discover("_members._tcp.coterie", { count: 3 });
 * const member = await join({ id: Number(process.env.HOSTNAME?.split("-").at(-1)), members, dataDir: "/data", tls });
 * @throws UsageError if an option is invalid, `bad-host` if a host has no number or two hosts have the same one;
 *   EnvironmentError `cannot-discover` if DNS lists too few members in time; the reason of `signal`.
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

/** `why`: DNS has no answer for the name yet. */
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
        `expected one host of ${name} with the number ${id}, got ${members.get(id)} and ${address}`,
      );
    members.set(id, address);
  }
  return members;
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

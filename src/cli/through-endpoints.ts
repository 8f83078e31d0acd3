/** Locks and elections as a client that is no member, where members serve clients: those of the log. */
import type { Client } from "../client/client.ts";
import type { AcquireOptions, LeadOptions } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { requireName } from "../cluster/services/instance-name.ts";
import { type Access, explainWaiting } from "./access.ts";
import { connectTo, type EndpointOptions, forCaller, placesFor } from "./endpoints.ts";

/** Less is none. */
const LEAST_MS = 1;

/**
 * Connects when something is first waited for, and within the time for that.
 *
 * @throws UsageError for endpoints that cannot be, and files that cannot be read
 */
export function throughEndpoints(options: EndpointOptions): Access {
  const places = placesFor(options);
  let client: Client | null = null;
  const connected = async ({ timeoutMs = Number.POSITIVE_INFINITY, signal }: AcquireOptions): Promise<Client> => {
    client ??= await connectTo(places, { timeoutMs, signal });
    return client;
  };
  return {
    mutex: (name) => ({
      name: requireName(name),
      async acquire(options = {}) {
        const began = performance.now();
        const mutex = (await connected(options)).mutex(name);
        const { timeoutMs } = options;
        const left = timeoutMs && Math.max(LEAST_MS, timeoutMs - (performance.now() - began));
        return mutex.acquire({ ...options, timeoutMs: left }).catch((error: unknown) => {
          throw inCallersTime(forCaller(error), left, timeoutMs);
        });
      },
    }),
    election(name) {
      requireName(name);
      return {
        lead: async (work, options: LeadOptions = {}) =>
          (await connected(options)).election(name).lead(work, options).catch(rethrow),
      };
    },
    explainWaiting: (what) =>
      explainWaiting(what, () =>
        client !== null && client.status().member !== null
          ? null
          : `no member that knows a leader answers at ${places.endpoints.join(", ")}`,
      ),
    leave: async () => client?.close(),
  };
}

/** Part of the time went by while it connected: the error says all of it, which is what the caller gave. */
function inCallersTime(error: unknown, left: number | undefined, timeoutMs: number | undefined): unknown {
  if (!(error instanceof CoordinationError) || left === undefined) return error;
  const message = error.message.replace(`within ${left} ms`, `within ${timeoutMs} ms`);
  return new CoordinationError(error.code, error.phase, message, { cause: error });
}

function rethrow(error: unknown): never {
  throw forCaller(error);
}

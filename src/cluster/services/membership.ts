/** What `join()` was asked for, checked before anything is opened. */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { formatHostPort, type HostPort, isLoopback, parseHostPort } from "../../runtime/host-port.ts";
import { MAX_SLOT } from "../../runtime/journal/batches.ts";
import type { Journal } from "../../runtime/journal/journal.ts";
import { createLog, type Log } from "../../runtime/log.ts";
import type { GroupIdentity } from "../../runtime/transport/identity.ts";
import type { TlsMaterial } from "../../runtime/transport/tcp.ts";
import { settlePlace, type UdpPlace } from "../../runtime/transport/udp-place.ts";
import { type ClusterConfig, parseConfig } from "../config.ts";
import { readTls } from "../member.ts";
import type { JoinOptions, ServiceLimits } from "./api.ts";
import { requireKnown } from "./known-options.ts";

export interface Membership {
  readonly id: NodeId;
  readonly config: ClusterConfig;
  readonly limits: ServiceLimits;
  readonly tls: TlsMaterial | null;
  readonly log: Log;
  readonly admin: HostPort | null;
  readonly faultGate: boolean;
  readonly journal: Journal | null;
  readonly identity: GroupIdentity;
  /** Where this member multicasts; null where it does not. */
  readonly multicast: UdpPlace | null;
}

const DEFAULT_CLUSTER = "coterie";
const defaultLimits: ServiceLimits = { maxInstances: 10_000, maxWaiters: 10_000 };

/** The journal's owner, the group, the list of instances, who serves, the runs of requests, a floor of epochs for each of two algorithms, and one of views. */
export const OWN_SLOTS = 8;
const MAX_INSTANCES = MAX_SLOT + 1 - OWN_SLOTS;

const stderrLog = createLog((level, text) => {
  if (level !== "info") process.stderr.write(`coterie: ${text}\n`);
});

const PLACE = ["group", "port", "interface", "ttl", "key", "maxDatagramBytes"];
const KNOWN = [
  "id",
  "members",
  "dataDir",
  "cluster",
  "tls",
  "limits",
  "log",
  "admin",
  "multicast",
  "signal",
  "faultGate",
];

/** @throws UsageError that names the field; EnvironmentError if a certificate cannot be read. */
export async function membershipOf(options: JoinOptions): Promise<Omit<Membership, "journal" | "identity">> {
  const { id, members, cluster = DEFAULT_CLUSTER, tls, log = stderrLog, faultGate = false } = options;
  requireKnown("join", options, KNOWN);
  const { maxInstances, maxWaiters, ...transport } = { ...defaultLimits, ...options.limits };
  for (const [name, value] of Object.entries({ maxInstances, maxWaiters })) {
    if (!(Number.isSafeInteger(value) && value > 0))
      throw refusal(unexpected(`limits.${name}`, "a whole number > 0", value));
  }
  if (options.dataDir !== undefined && maxInstances > MAX_INSTANCES)
    throw refusal(
      unexpected("limits.maxInstances", `at most ${MAX_INSTANCES}, as a journal holds no more`, maxInstances),
    );
  // The failure detector is what every member runs.
  const file = { cluster, protocol: "heartbeat", members, limits: transport, ...(tls === undefined ? {} : { tls }) };
  const config = parseConfig(file, process.cwd());
  if (!Object.hasOwn(config.members, id))
    throw refusal(unexpected("id", `one of ${Object.keys(config.members).join(", ")}`, id));
  const multicast = placeOf(options);
  return {
    id,
    config,
    limits: { maxInstances, maxWaiters },
    tls: await readTls(config.tls, id),
    log,
    admin: adminAddress(options.admin),
    faultGate,
    multicast,
  };
}

/** @throws UsageError that names the field. */
function placeOf({ multicast, tls }: JoinOptions): UdpPlace | null {
  if (multicast === undefined) return null;
  requireKnown("multicast", multicast, PLACE);
  const place = { ...multicast, tls: typeof tls === "object" ? "on" : (tls ?? null) } as const;
  settlePlace(place);
  return place;
}

function adminAddress(text: string | undefined): HostPort | null {
  if (text === undefined) return null;
  const address = parseHostPort(text);
  if (address === null) throw refusal(unexpected("admin", "host:port", text));
  if (isLoopback(address.host)) return address;
  throw refusal(`${unexpected("admin", "a loopback address", formatHostPort(address))}: admin pages have no password`);
}

const refusal = (message: string): UsageError => new UsageError("bad-option", message);

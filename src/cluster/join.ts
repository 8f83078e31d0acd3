/** Joins a cluster, whose members provide named elections, locks, shared state and channels. */
import { setMaxListeners } from "node:events";
import type { EnvironmentError } from "../core/errors.ts";
import { CertificateRenewal, type Pems } from "../runtime/certificate-files.ts";
import { openJournal } from "../runtime/journal/disk-journal.ts";
import { groupMemory } from "../runtime/journal/group-memory.ts";
import type { Journal } from "../runtime/journal/journal.ts";
import type { Platform } from "../runtime/platform/platform.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { GroupIdentity } from "../runtime/transport/identity.ts";
import { ClientDoor } from "./clients/client-door.ts";
import type { ClientServer } from "./clients/client-server.ts";
import { clientPlaceOf, serveClientsOf } from "./clients/member-clients.ts";
import { KeyspaceClient } from "./etcd/keyspace-client.ts";
import { LeaseClock } from "./etcd/lease-clock.ts";
import { type EtcdDoor, etcdPlaceOf, serveEtcdOf } from "./etcd/member-etcd.ts";
import type { JoinOptions, Member } from "./services/api.ts";
import type { EngineJoinOptions, EngineMember, ExternalEngine } from "./services/external-engine.ts";
import { JoinedMember } from "./services/joined-member.ts";
import { KnownMembers } from "./services/known-members.ts";
import * as may from "./services/known-options.ts";
import { MAX_SLOTS, type Membership, membershipOf, requireJoinOptions, requireWayIn } from "./services/membership.ts";
import { listeners } from "./services/on-abort.ts";

/**
 * Makes this process a member of a cluster.
 *
 * @example
 * const member = await join({
 *   id: 2,
 *   members: { 1: "10.0.0.1:7100", 2: "10.0.0.2:7100", 3: "10.0.0.3:7100" },
 *   dataDir: "./data",
 *   tls: { ca: "ca.pem", cert: "node-{id}.pem", key: "node-{id}.key" },
 * });
 * @throws UsageError if an option is invalid; EnvironmentError if an address or the folder is in use, if a certificate
 *   or the journal cannot be read, or `wrong-members` if the journal contains a different member list; the reason of
 *   `signal` if it is aborted before this process is a member. After an error, nothing is left open
 */
export function join(options: JoinOptions): Promise<Member>;
/**
 * Connects to an external engine, such as `postgres({ url })` from `coterie/engines/postgres`, with the same API. See
 * docs/guide/engines.md.
 */
export function join(options: EngineJoinOptions): Promise<EngineMember>;
export async function join(options: JoinOptions | EngineJoinOptions): Promise<Member | EngineMember> {
  if (!hasEngine(options)) return joinOn(realPlatform, options);
  may.requireRule("engine of join()", options.engine, engine);
  listeners.allowMany = (many) => setMaxListeners(0, many);
  return options.engine.join(realPlatform, options);
}

/** Distinguishes the two kinds of options before either is validated. */
export const hasEngine = (options: JoinOptions | EngineJoinOptions): options is EngineJoinOptions =>
  may.isObject(options) && (options as Partial<EngineJoinOptions>).engine !== undefined;

const engine = may.needed({
  wanted: "the result of a function from coterie/engines/…, such as etcd({ endpoints })",
  accepts: (value) => may.isObject(value) && typeof (value as Partial<ExternalEngine>).join === "function",
});

/** Runs `join()` on a given platform. */
export async function joinOn(platform: Platform, options: JoinOptions): Promise<Member> {
  requireJoinOptions(options);
  clientPlaceOf(options); // Check the options before anything is opened.
  etcdPlaceOf(options);
  listeners.allowMany = (many) => setMaxListeners(0, many);
  const { signal } = options;
  signal?.throwIfAborted();
  const membership = await membershipOf(platform, options);
  signal?.throwIfAborted();
  const failure = new AbortController(); // The journal may fail before the member exists.
  const journal = await journalOf(options.dataDir, membership, (error) => failure.abort(error));
  const member = await opened({ ...membership, journal }, options);
  const clients = await serveClients(member, membership, options);
  const etcd = await serveEtcd(member, membership, options);
  if (failure.signal.aborted) member.fail(failure.signal.reason as Error);
  failure.signal.addEventListener("abort", () => member.fail(failure.signal.reason as Error));
  renewCertificates(member, { clients, etcd }, membership, options);
  const leave = (): void => void member.leave();
  signal?.addEventListener("abort", leave);
  member.signal.addEventListener("abort", () => signal?.removeEventListener("abort", leave));
  return member;
}

/** Renews the certificates for links, both servers for clients and the admin pages as long as the member runs. */
function renewCertificates(
  member: JoinedMember,
  doors: { readonly clients: ClientServer | null; readonly etcd: EtcdDoor | null },
  { platform, id, config, counts, log }: Unopened,
  { clients, admin, etcd }: JoinOptions,
): void {
  const of = { platform, id, counts, log };
  const filesOf = (place: typeof clients | typeof admin | typeof etcd): Pems | null =>
    typeof place === "object" && typeof place.tls === "object" ? place.tls : null;
  const renewals = [
    new CertificateRenewal({ ...of, use: "members", files: config.tls, renew: (tls) => member.renew(tls) }),
    new CertificateRenewal({
      ...of,
      use: "clients",
      files: filesOf(clients),
      renew: (tls) => doors.clients?.renew(tls),
    }),
    new CertificateRenewal({ ...of, use: "etcd", files: filesOf(etcd), renew: (tls) => doors.etcd?.renew(tls) }),
    new CertificateRenewal({ ...of, use: "admin", files: filesOf(admin), renew: (tls) => member.renewPages(tls) }),
  ];
  member.signal.addEventListener("abort", () => {
    for (const renewal of renewals) renewal.stop();
  });
}

/** The membership options that are known before the journal is opened. */
type Unopened = Omit<Membership, "journal" | "identity" | "founders" | "known">;

async function serveClients(
  member: JoinedMember,
  { config, counts, log }: Unopened,
  options: JoinOptions,
): Promise<ClientServer | null> {
  const place = clientPlaceOf(options);
  if (place === null) return null;
  const { id, state, cluster: members, sessions } = member;
  const door = new ClientDoor({ service: state.host, counts: counts.clients });
  try {
    state.host.use();
    const of = { id, cluster: config.cluster, state, members, door, sessions, counts: counts.clients, log };
    const server = await serveClientsOf(place, of);
    member.doors.clients = server;
    return server;
  } catch (error) {
    await member.leave();
    throw error;
  }
}

async function serveEtcd(
  member: JoinedMember,
  { config, counts, log }: Unopened,
  options: JoinOptions,
): Promise<EtcdDoor | null> {
  const { id, state, cluster: members } = member;
  const keyspace = new KeyspaceClient(state.host);
  // The leader expires leases even if it does not serve etcd's API.
  const leases = new LeaseClock(state.host, keyspace);
  const place = etcdPlaceOf(options);
  if (place === null) return null;
  try {
    state.host.use();
    const of = { id, cluster: config.cluster, state, members, keyspace, leases, counts: counts.etcd, log };
    const door = await serveEtcdOf(place, of);
    member.doors.etcd = door;
    return door;
  } catch (error) {
    await member.leave();
    throw error;
  }
}

async function opened(
  membership: Omit<Membership, "identity" | "founders" | "known">,
  options: JoinOptions,
): Promise<JoinedMember> {
  const { platform, id, config, log, journal } = membership;
  const { dataDir: folder, existing = false, signal } = options;
  try {
    const members = Object.keys(config.members).map(Number);
    const place = folder.replaceAll("{id}", String(id));
    const known = new KnownMembers(journal);
    known.requireMember(id, place);
    const told = { isNewcomer: existing, isChanged: known.list !== null };
    const memory = await groupMemory(journal, members, place, platform.random, told);
    signal?.throwIfAborted();
    const { founders } = memory;
    const isNewcomer = founders.length === 0;
    if (isNewcomer && known.list === null) requireWayIn({ ...options, existing: true });
    const list = isNewcomer ? members : founders;
    const identity = new GroupIdentity({ self: id, members: list, isNewcomer, takesNewcomers: true, log, memory });
    const member = new JoinedMember({ ...membership, identity, founders, known });
    await member.open(signal);
    return member;
  } catch (error) {
    await journal.close();
    throw error;
  }
}

function journalOf(
  dataDir: string,
  { platform, id, config, log, counts }: Unopened,
  onFailure: (error: EnvironmentError) => void,
): Promise<Journal> {
  const owner = `member ${id} of ${config.cluster}`;
  return openJournal(dataDir.replaceAll("{id}", String(id)), {
    platform,
    owner,
    log,
    onFailure,
    counts: counts.journal,
    limits: { maxSlots: MAX_SLOTS },
  });
}

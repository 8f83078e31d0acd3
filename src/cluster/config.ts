/** The file that describes a cluster, the same for every member: who is where, and which protocol runs. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { protocolNamed } from "../protocols/index.ts";
import { formatHostPort, type HostPort, isLoopback, isWildcard, parseHostPort } from "../runtime/host-port.ts";
import { type Limits, limitsWith } from "../runtime/transport/limits.ts";
import { type Fields, isFields, strayField } from "./fields.ts";
import { type KeyFiles, needsKeys } from "./member-keys.ts";
import { type Timing, timings } from "./services/timing.ts";

export type { HostPort } from "../runtime/host-port.ts";

export interface ClusterConfig {
  /** Members of another cluster are refused, so two clusters on one network cannot mix. */
  readonly cluster: string;
  /** A name of the registry. */
  readonly protocol: string;
  /** The protocol's own options. */
  readonly options: object;
  readonly members: Readonly<Record<NodeId, MemberPlace>>;
  /** PEM files; `{id}` in a path stands for the member's id. Null: no TLS, said explicitly or on loopback only. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string } | null;
  readonly limits: Partial<Limits>;
  /** Where a member keeps its journal, if what it runs keeps one; `{id}` stands for the member's id. Null: nowhere. */
  readonly dataDir: string | null;
  /** What members sign with, where what they run signs; absent: nothing. */
  readonly keys?: KeyFiles;
}

export interface MemberPlace {
  /** At which the others reach it. */
  readonly address: HostPort;
  /** What it binds; absent: its address. */
  readonly listen?: HostPort;
  readonly admin: HostPort;
}

/** What there is to say of a cluster that runs no single protocol. */
export interface ServiceConfig extends Omit<ClusterConfig, "protocol" | "options"> {
  /** How long members may stand still: docs/timing.md. */
  readonly timing: Timing;
}

/** Of one member's transport: who is where, and what is limited. */
export const transportPlaces = (id: NodeId, { members, limits }: Pick<ClusterConfig, "members" | "limits">) => ({
  members: Object.fromEntries(Object.entries(members).map(([member, { address }]) => [member, address])),
  listen: members[id]?.listen,
  limits,
});

const MAX_MEMBERS = 128;
const MAX_NAME_LENGTH = 64;
const HOW_TO_HAVE_ONE = "write one, as `coterie node --help` shows, or name another with --config";

/** Where nobody says otherwise, admin pages are on this machine only and on a port that the system chooses. */
const defaultAdmin: HostPort = { host: "127.0.0.1", port: 0 };

const ADDRESS = "host:port with a port from 1 to 65535";
const NAME_TOO_LONG = `a name of at most ${MAX_NAME_LENGTH} characters`;
const FIELDS = ["cluster", "protocol", "options", "members", "tls", "limits", "dataDir", "keys", "adminExposed"];
const LIMITS = ["maxFrameBytes", "maxQueueBytes", "handshakeTimeoutMs", "maxStrangers"] as const;

interface ConfigFile {
  readonly cluster: string;
  readonly protocol: string;
  readonly options: object;
  readonly members: ClusterConfig["members"];
  readonly tls: "off" | NonNullable<ClusterConfig["tls"]> | undefined;
  readonly limits: Partial<Limits>;
  readonly dataDir: string | undefined;
  readonly keys: KeyFiles | undefined;
  /** Admin pages ask nobody for a password. Showing them to a network has to be said. */
  readonly adminExposed: boolean;
}

/** @throws UsageError that calls the name `what`. */
export function requireClusterName(value: unknown, what: string, code = "bad-config"): string {
  if (typeof value !== "string" || value === "") throw new UsageError(code, unexpected(what, "a name", value));
  if (value.length > MAX_NAME_LENGTH) throw new UsageError(code, unexpected(what, NAME_TOO_LONG, value));
  return value;
}

/** Checked by hand and not by a schema of zod's, which takes longer to load than all else that `join()` needs. */
function fileOf(value: unknown): ConfigFile {
  const file = requireFields(value, "the config", "an object", FIELDS, "");
  const { protocol, options = {}, tls, dataDir, adminExposed = false } = file;
  const cluster = requireClusterName(file.cluster, "cluster");
  if (typeof protocol !== "string") throw wrong("protocol", "the name of a protocol", protocol);
  if (!isFields(options)) throw wrong("options", "an object", options);
  if (!isFields(file.members)) throw wrong("members", "an object from id to address", file.members);
  const members = Object.fromEntries(
    Object.entries(file.members).map(([id, member]) => [idOf(id), memberOf(id, member)]),
  );
  if (dataDir !== undefined) requirePath(dataDir, "dataDir");
  if (typeof adminExposed !== "boolean") throw wrong("adminExposed", "true or false", adminExposed);
  const [limits, keys] = [limitsOf(file.limits), keysOf(file.keys)];
  return {
    cluster,
    protocol,
    options,
    members,
    tls: tlsOf(tls),
    limits,
    dataDir: dataDir as string,
    keys,
    adminExposed,
  };
}

function keysOf(value: unknown): KeyFiles | undefined {
  if (value === undefined) return undefined;
  const { own, all } = requireFields(value, "keys", "an object with own and all", ["own", "all"]);
  return { own: requirePath(own, "keys.own"), all: requirePath(all, "keys.all") };
}

function idOf(id: string): number {
  if (!/^(0|[1-9]\d*)$/.test(id)) throw wrong("a key of members", "a natural number", id);
  if (!Number.isSafeInteger(Number(id))) throw wrong("a key of members", "a natural number below 2^53", id);
  return Number(id);
}

function memberOf(id: string, value: unknown): ClusterConfig["members"][NodeId] {
  const path = `members.${id}`;
  const bound = ({ port }: HostPort): boolean => port > 0;
  if (typeof value === "string") return { address: hostPortOf(value, path, ADDRESS, bound), admin: defaultAdmin };
  const wanted = "host:port or an object with address, listen and admin";
  const { address, listen, admin } = requireFields(value, path, wanted, ["address", "listen", "admin"]);
  return {
    address: hostPortOf(address, `${path}.address`, ADDRESS, bound),
    ...(listen === undefined ? {} : { listen: hostPortOf(listen, `${path}.listen`, ADDRESS, bound) }),
    admin: admin === undefined ? defaultAdmin : hostPortOf(admin, `${path}.admin`, "host:port", () => true),
  };
}

function hostPortOf(text: unknown, path: string, expected: string, isSound: (at: HostPort) => boolean): HostPort {
  const parsed = typeof text === "string" ? parseHostPort(text) : null;
  if (parsed === null || !isSound(parsed)) throw wrong(path, expected, text);
  return parsed;
}

function tlsOf(tls: unknown): ConfigFile["tls"] {
  if (tls === undefined || tls === "off") return tls;
  const { ca, cert, key } = requireFields(tls, "tls", '"off" or an object with ca, cert and key', [
    "ca",
    "cert",
    "key",
  ]);
  return { ca: requirePath(ca, "tls.ca"), cert: requirePath(cert, "tls.cert"), key: requirePath(key, "tls.key") };
}

function limitsOf(value: unknown): Partial<Limits> {
  if (value === undefined) return {};
  const limits = requireFields(value, "limits", "an object", LIMITS);
  for (const [name, limit] of Object.entries(limits))
    if (limit !== undefined && !(Number.isSafeInteger(limit) && (limit as number) > 0))
      throw wrong(`limits.${name}`, "a whole number > 0", limit);
  return limits;
}

function requirePath(value: unknown, path: string): string {
  if (typeof value !== "string" || value === "") throw wrong(path, "a path", value);
  return value;
}

function requireFields(
  value: unknown,
  what: string,
  expected: string,
  known: readonly string[],
  within = `${what}.`,
): Fields {
  const problem = strayField(value, { what, expected, known, within });
  if (problem !== null) throw refusal(problem);
  return value as Fields;
}

const wrong = (what: string, expected: string, got: unknown): UsageError => refusal(unexpected(what, expected, got));

/** @throws UsageError that names the file and the field. */
export function readConfig(file: string): ClusterConfig {
  return readWith(parseConfig, file);
}

/**
 * The file of a cluster that serves elections, locks and channels by name: it names no protocol, as all are there.
 * @throws UsageError that names the file and the field.
 */
export function readServiceConfig(file: string): ServiceConfig {
  return readWith(parseServiceConfig, file);
}

/** Whether the file is one for `readConfig`, and not for `readServiceConfig`. @throws UsageError if it is not JSON. */
export function namesProtocol(file: string): boolean {
  return readWith((value) => typeof value !== "object" || value === null || "protocol" in value, file);
}

function readWith<T>(parse: (value: unknown, folder: string) => T, file: string): T {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refusal(
      code === "ENOENT"
        ? `expected a config file at ${resolve(file)}, got none (ENOENT): ${HOW_TO_HAVE_ONE}`
        : `${unexpected("the config", "a readable file", file)} (${code})`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError("bad-config", `${file}: expected JSON: ${(error as Error).message.replaceAll(/\s+/g, " ")}`);
  }
  try {
    return parse(value, dirname(file));
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(error.code, `${file}: ${error.message}`);
    throw error;
  }
}

/**
 * Checks what a config file says. Paths in it are relative to `folder`.
 * @throws UsageError that names the field.
 */
export function parseConfig(value: unknown, folder: string): ClusterConfig {
  const file = fileOf(value);
  requireSoundMembers(file);
  const made = protocolNamed(file.protocol).node(file.options); // Which refuses options that it does not know.
  if (file.keys === undefined && needsKeys(made))
    throw refusal(
      `expected keys to be set, since ${file.protocol} signs what it says: { "own": "{id}.key", "all": "{id}.pub" }, PEM files with Ed25519 keys`,
    );
  limitsWith(file.limits); // Refuses what is too small.
  const { cluster, protocol, options, members, limits } = file;
  const dataDir = file.dataDir === undefined ? null : resolve(folder, file.dataDir);
  const keys = file.keys && { own: resolve(folder, file.keys.own), all: resolve(folder, file.keys.all) };
  const tls = tlsFiles(file.tls, folder);
  return { cluster, protocol, options, members, tls, limits, dataDir, ...(keys && { keys }) };
}

function parseServiceConfig(value: unknown, folder: string): ServiceConfig {
  const { protocol, options } = (value ?? {}) as { protocol?: unknown; options?: unknown };
  for (const [field, got] of Object.entries({ protocol, options })) {
    if (got === undefined) continue;
    throw refusal(
      `${unexpected(field, "absent", got)}: members that serve elections and locks by name run no protocol of the file's`,
    );
  }
  const { timing = "default", ...rest } = isFields(value) ? value : {};
  const known = timings.find((each) => each === timing);
  if (known === undefined) throw wrong("timing", `one of ${timings.join(", ")}`, timing);
  // The failure detector is what every member runs.
  const config = parseConfig(isFields(value) ? { ...rest, protocol: "heartbeat" } : value, folder);
  return { ...config, timing: known };
}

function requireSoundMembers({ members, tls, adminExposed }: ConfigFile): void {
  const count = Object.keys(members).length;
  if (count < 1 || count > MAX_MEMBERS) throw refusal(unexpected("members", `1 to ${MAX_MEMBERS} members`, count));
  const owners = new Map<string, string>();
  for (const [id, { address, listen = address, admin }] of Object.entries(members)) {
    const [field, open] = isLoopback(address.host) ? ["listen", listen] : ["address", address];
    if (tls === undefined && !isLoopback(open.host))
      throw refusal(
        `expected tls to be set, since members.${id}.${field} ${formatHostPort(open)} is reachable from other machines: give certificates, or "tls": "off" where the network is trusted`,
      );
    if (!adminExposed && !isLoopback(admin.host))
      throw refusal(
        `${unexpected(`members.${id}.admin`, "a loopback address", formatHostPort(admin))}: admin pages have no password; "adminExposed": true shows them to a trusted network`,
      );
    claim(owners, address, `members.${id}.address`);
    // Each machine has a loopback, and interfaces, of its own: members of different machines may use the same port there.
    const isApart = (isLoopback(admin.host) || isWildcard(admin.host)) && !isLoopback(address.host);
    if (admin.port !== 0 && !isApart) claim(owners, admin, `members.${id}.admin`);
  }
}

function claim(owners: Map<string, string>, at: HostPort, field: string): void {
  const text = formatHostPort(at).toLowerCase();
  const owner = owners.get(text);
  if (owner !== undefined) throw refusal(unexpected(field, `another address than ${owner}`, text));
  owners.set(text, field);
}

function tlsFiles(tls: ConfigFile["tls"], folder: string): ClusterConfig["tls"] {
  if (tls === undefined || tls === "off") return null;
  return { ca: resolve(folder, tls.ca), cert: resolve(folder, tls.cert), key: resolve(folder, tls.key) };
}

function refusal(message: string): UsageError {
  return new UsageError("bad-config", message);
}

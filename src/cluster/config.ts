/** The config file of a cluster, the same for every member: the members' addresses, and the protocol. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { TlsFiles } from "../runtime/certificate-files.ts";
import { docsPage } from "../runtime/docs-page.ts";
import { formatHostPort, type HostPort, isLoopback, isWildcard, parseHostPort } from "../runtime/host-port.ts";
import { type Limits, limitsWith } from "../runtime/transport/limits.ts";
import { type Fields, isFields, strayField } from "./fields.ts";
import { type Timing, timings } from "./services/timing.ts";

export type { HostPort } from "../runtime/host-port.ts";

/** The members, and where they run. */
export interface ClusterPlaces {
  /** Connections from members of another cluster are refused, so two clusters on one network cannot mix. */
  readonly cluster: string;
  readonly members: Readonly<Record<NodeId, MemberPlace>>;
  /** Null: no TLS, explicitly or on loopback only. */
  readonly tls: TlsFiles | null;
  readonly limits: Partial<Limits>;
  /** The folder of a member's journal, if it keeps one; `{id}` is replaced by the member's id. Null: no journal. */
  readonly dataDir: string | null;
}

export interface MemberPlace {
  /** The address at which the others reach it. */
  readonly address: HostPort;
  /** The address that it binds; absent: `address`. */
  readonly listen?: HostPort;
  readonly admin: HostPort;
}

/** The config of members of `join()`. */
export interface ServiceConfig extends ClusterPlaces {
  /** How long members may be paused: docs/operate/timing.md. */
  readonly timing: Timing;
}

/** The options of one member's transport: addresses and limits. */
export const transportPlaces = (id: NodeId, { members, limits }: Pick<ClusterPlaces, "members" | "limits">) => ({
  members: Object.fromEntries(Object.entries(members).map(([member, { address }]) => [member, address])),
  listen: members[id]?.listen,
  limits,
});

const MAX_MEMBERS = 128;
const MAX_NAME_LENGTH = 64;
const HOW_TO_HAVE_ONE = (): string =>
  `write one, as ${docsPage("reference/configuration.md")} describes, or name another with --config`;

/** By default, admin pages are on this machine only, on a port that the system chooses. */
const defaultAdmin: HostPort = { host: "127.0.0.1", port: 0 };

const ADDRESS = "host:port with a port from 1 to 65535";
const NAME_TOO_LONG = `a name of at most ${MAX_NAME_LENGTH} characters`;
const FIELDS = ["cluster", "members", "tls", "limits", "dataDir", "adminExposed"];
const LIMITS = ["maxFrameBytes", "maxQueueBytes", "handshakeTimeoutMs", "maxStrangers"] as const;

interface ConfigFile {
  readonly cluster: string;
  readonly members: ClusterPlaces["members"];
  readonly tls: "off" | TlsFiles | undefined;
  readonly limits: Partial<Limits>;
  readonly dataDir: string | undefined;
  /** Admin pages have no password, so serving them to a network must be explicit. */
  readonly adminExposed: boolean;
}

/** @throws UsageError that refers to the name as `what`. */
export function requireClusterName(value: unknown, what: string, code = "bad-config"): string {
  if (typeof value !== "string" || value === "") throw new UsageError(code, unexpected(what, "a name", value));
  if (value.length > MAX_NAME_LENGTH) throw new UsageError(code, unexpected(what, NAME_TOO_LONG, value));
  return value;
}

/** Validated by hand: zod takes longer to load than everything else that `join()` needs. @throws UsageError with all problems */
function fileOf(value: unknown, others: readonly string[]): ConfigFile {
  if (!isFields(value)) throw wrong("the config", "an object", value);
  const problems = new Problems();
  for (const [name, got] of Object.entries(value))
    if (![...FIELDS, ...others].includes(name)) problems.add(unexpected(name, "absent", got));
  const { dataDir, adminExposed = false } = value;
  const cluster = problems.of(() => requireClusterName(value.cluster, "cluster"));
  const members = problems.of(() => membersOf(value.members, problems));
  if (dataDir !== undefined) problems.of(() => requirePath(dataDir, "dataDir"));
  if (typeof adminExposed !== "boolean") problems.add(unexpected("adminExposed", "true or false", adminExposed));
  const limits = problems.of(() => limitsOf(value.limits));
  const tls = problems.of(() => tlsOf(value.tls));
  const file = { cluster, members, tls, limits, dataDir, adminExposed } as ConfigFile;
  if (problems.areNone) requireSoundMembers(file, problems);
  problems.throwAll();
  return file;
}

/** Everything that is wrong with a config, for one error. */
class Problems {
  readonly #all: string[] = [];

  get areNone(): boolean {
    return this.#all.length === 0;
  }

  add(problem: string): void {
    this.#all.push(problem);
  }

  /** The result, or undefined after a UsageError, which is added. */
  of<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      this.add(error.message);
      return undefined;
    }
  }

  /** @throws UsageError if there are any */
  throwAll(): void {
    if (this.areNone) return;
    const count = this.#all.length === 1 ? "" : `${this.#all.length} problems: `;
    throw refusal(`${count}${this.#all.join("; ")}`);
  }
}

function membersOf(value: unknown, problems: Problems): ConfigFile["members"] {
  if (!isFields(value)) throw wrong("members", "an object from id to address", value);
  const members = Object.entries(value).flatMap(([id, member]): [number, MemberPlace][] => {
    const key = problems.of(() => idOf(id));
    const place = problems.of(() => memberOf(id, member));
    return key === undefined || place === undefined ? [] : [[key, place]];
  });
  return Object.fromEntries(members);
}

function idOf(id: string): number {
  if (!/^(0|[1-9]\d*)$/.test(id)) throw wrong("a key of members", "a natural number", id);
  if (!Number.isSafeInteger(Number(id))) throw wrong("a key of members", "a natural number below 2^53", id);
  return Number(id);
}

function memberOf(id: string, value: unknown): MemberPlace {
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
  limitsWith(limits); // Throws if a limit is too small.
  return limits;
}

export function requirePath(value: unknown, path: string): string {
  if (typeof value !== "string" || value === "") throw wrong(path, "a path", value);
  return value;
}

export function requireFields(
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

export const wrong = (what: string, expected: string, got: unknown): UsageError =>
  refusal(unexpected(what, expected, got));

/**
 * Reads the config file of a cluster of `join()`, which names no protocol.
 * @throws UsageError that names the file and the field.
 */
export function readServiceConfig(file: string): ServiceConfig {
  return readWith(parseServiceConfig, file);
}

/** Whether the file describes a cluster that runs one protocol, instead of `join()`. @throws UsageError if it is not JSON. */
export function namesProtocol(file: string): boolean {
  return readWith((value) => typeof value !== "object" || value === null || "protocol" in value, file);
}

export function readWith<T>(parse: (value: unknown, folder: string) => T, file: string): T {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refusal(
      code === "ENOENT"
        ? `expected a config file at ${resolve(file)}, got none (ENOENT): ${HOW_TO_HAVE_ONE()}`
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
 * Paths in the file are relative to `folder`.
 * @param others fields that the caller reads.
 * @throws UsageError that names the field.
 */
export function parsePlaces(value: unknown, folder: string, others: readonly string[] = []): ClusterPlaces {
  const file = fileOf(value, others);
  const { cluster, members, limits } = file;
  const dataDir = file.dataDir === undefined ? null : resolve(folder, file.dataDir);
  return { cluster, members, tls: tlsFiles(file.tls, folder), limits, dataDir };
}

function parseServiceConfig(value: unknown, folder: string): ServiceConfig {
  const { protocol, options } = (value ?? {}) as { protocol?: unknown; options?: unknown };
  for (const [field, got] of Object.entries({ protocol, options })) {
    if (got === undefined) continue;
    throw refusal(`${unexpected(field, "absent", got)}: members of join() do not run a protocol from the config`);
  }
  const { timing = "default", ...rest } = isFields(value) ? value : {};
  const known = timings.find((each) => each === timing);
  if (known === undefined) throw wrong("timing", `one of ${timings.join(", ")}`, timing);
  return { ...parsePlaces(isFields(value) ? rest : value, folder), timing: known };
}

function requireSoundMembers({ members, tls, adminExposed }: ConfigFile, problems: Problems): void {
  const count = Object.keys(members).length;
  if (count < 1 || count > MAX_MEMBERS)
    return problems.add(unexpected("members", `1 to ${MAX_MEMBERS} members`, count));
  const owners = new Map<string, string>();
  let isExposed = false;
  for (const [id, { address, listen = address, admin }] of Object.entries(members)) {
    const [field, open] = isLoopback(address.host) ? ["listen", listen] : ["address", address];
    if (tls === undefined && !isLoopback(open.host) && !isExposed) {
      isExposed = true; // One problem, for all members.
      problems.add(
        `expected tls to be set, since members.${id}.${field} ${formatHostPort(open)} is reachable from other machines: give certificates, or "tls": "off" in a trusted network`,
      );
    }
    if (!adminExposed && !isLoopback(admin.host))
      problems.add(
        `${unexpected(`members.${id}.admin`, "a loopback address", formatHostPort(admin))}: admin pages have no password; "adminExposed": true exposes them to a trusted network`,
      );
    problems.of(() => claim(owners, address, `members.${id}.address`));
    // Each machine has its own loopback and interfaces: members on different machines may use the same port there.
    const isApart = (isLoopback(admin.host) || isWildcard(admin.host)) && !isLoopback(address.host);
    if (admin.port !== 0 && !isApart) problems.of(() => claim(owners, admin, `members.${id}.admin`));
  }
}

function claim(owners: Map<string, string>, at: HostPort, field: string): void {
  const text = formatHostPort(at).toLowerCase();
  const owner = owners.get(text);
  if (owner !== undefined) throw refusal(unexpected(field, `different from ${owner}`, text));
  owners.set(text, field);
}

function tlsFiles(tls: ConfigFile["tls"], folder: string): TlsFiles | null {
  if (tls === undefined || tls === "off") return null;
  return { ca: resolve(folder, tls.ca), cert: resolve(folder, tls.cert), key: resolve(folder, tls.key) };
}

export function refusal(message: string): UsageError {
  return new UsageError("bad-config", message);
}

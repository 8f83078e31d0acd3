/** A cluster's config file, which is the same for every member: the members' addresses, and the protocol. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { MAX_LISTED } from "../core/quorums.ts";
import { suggestion } from "../core/suggestion.ts";
import type { TlsFiles } from "../runtime/certificate-files.ts";
import { formatHostPort, type HostPort, isLoopback, isWildcard, parseHostPort } from "../runtime/host-port.ts";
import { docsPage } from "../runtime/package-files.ts";
import { type Limits, limitsWith } from "../runtime/transport/limits.ts";
import { type Fields, isFields, strayField } from "./fields.ts";
import { type Timing, timings } from "./services/timing.ts";

export type { HostPort } from "../runtime/host-port.ts";

/** The members of a cluster and their addresses. */
export interface ClusterPlaces {
  /**
   * The cluster's name. Connections from members of another cluster are refused, so two clusters on one network cannot
   * mix.
   */
  readonly cluster: string;
  readonly members: Readonly<Record<NodeId, MemberPlace>>;
  /** The certificate files. Null if TLS is off, which must be explicit unless all addresses are loopback addresses. */
  readonly tls: TlsFiles | null;
  readonly limits: Partial<Limits>;
  /** The folder for a member's journal. `{id}` is replaced by the member's id. Null if members have no journals. */
  readonly dataDir: string | null;
}

/** The addresses of a member. */
export interface MemberPlace {
  /** The address at which the other members reach this one. */
  readonly address: HostPort;
  /** The address that the member binds. Default: `address`. */
  readonly listen?: HostPort;
  readonly admin: HostPort;
}

/** The config of a cluster whose members use `join()`. */
export interface ServiceConfig extends ClusterPlaces {
  /** How long members can be paused; see docs/operate/timing.md. */
  readonly timing: Timing;
}

/** Returns the options for one member's transport: addresses and limits. */
export const transportPlaces = (id: NodeId, { members, limits }: Pick<ClusterPlaces, "members" | "limits">) => ({
  members: Object.fromEntries(Object.entries(members).map(([member, { address }]) => [member, address])),
  listen: members[id]?.listen,
  limits,
});

const MAX_NAME_LENGTH = 64;
const HOW_TO_HAVE_ONE = (): string =>
  `write one, as ${docsPage("reference/configuration.md")} describes, or specify another with --config`;

/** The default admin address: a loopback address, with a port chosen by the system. */
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
  /** Whether admin pages can be served to a network. They have no password, so this must be explicit. */
  readonly adminExposed: boolean;
}

/** @throws UsageError that refers to the name as `what` */
export function requireClusterName(value: unknown, what: string, code = "bad-config"): string {
  if (typeof value !== "string" || value === "") throw new UsageError(code, unexpected(what, "a name", value));
  if (value.length > MAX_NAME_LENGTH) throw new UsageError(code, unexpected(what, NAME_TOO_LONG, value));
  return value;
}

/**
 * Validates a config. It does not use zod, which takes longer to load than everything else that `join()` needs.
 * @throws UsageError with all problems
 */
function fileOf(value: unknown, { others, check, maxMembers }: Kind): ConfigFile {
  if (!isFields(value)) throw wrong("the config", "an object", value);
  const problems = new Problems();
  const known = [...FIELDS, ...others];
  for (const [name, got] of Object.entries(value))
    if (!known.includes(name)) problems.add(`${unexpected(name, "absent", got)}${suggestion(name, known)}`);
  const { dataDir, adminExposed = false } = value;
  const cluster = problems.of(() => requireClusterName(value.cluster, "cluster"));
  const members = problems.of(() => membersOf(value.members, problems));
  if (dataDir !== undefined) problems.of(() => requirePath(dataDir, "dataDir"));
  if (typeof adminExposed !== "boolean") problems.add(unexpected("adminExposed", "true or false", adminExposed));
  const limits = problems.of(() => limitsOf(value.limits));
  const tls = problems.of(() => tlsOf(value.tls));
  check(value, problems);
  const file = { cluster, members, tls, limits, dataDir, adminExposed } as ConfigFile;
  if (problems.areNone) requireSoundMembers(file, maxMembers, problems);
  problems.throwAll();
  return file;
}

/** The rules that differ between a config for `join()` and a config with a protocol. */
interface Kind {
  /** The names of the fields that exist only in this kind of config. */
  readonly others: readonly string[];
  /** Validates these fields. */
  check(fields: Fields, problems: Problems): void;
  readonly maxMembers: number;
}

/** The rules for the members passed to `join()`, without a config file. */
const ofJoin: Kind = { others: [], check() {}, maxMembers: MAX_LISTED };

/** Collects all problems in a config, so that they can be reported in one error. */
class Problems {
  readonly #all: string[] = [];

  get areNone(): boolean {
    return this.#all.length === 0;
  }

  add(problem: string): void {
    this.#all.push(problem);
  }

  /** Returns the result. If `read` throws a UsageError, collects it and returns undefined. */
  of<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      this.add(error.message);
      return undefined;
    }
  }

  /** @throws UsageError if there are problems */
  throwAll(): void {
    if (this.areNone) return;
    const count = this.#all.length === 1 ? "" : `${this.#all.length} problems: `;
    throw refusal(`${count}${this.#all.join("; ")}`);
  }
}

function membersOf(value: unknown, problems: Problems): ConfigFile["members"] {
  if (!isFields(value)) throw wrong("members", "an object that maps ids to addresses", value);
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
  limitsWith(limits); // This throws if a limit is too small.
  return limits;
}

/** @throws UsageError `bad-config` unless the value is a non-empty string */
export function requirePath(value: unknown, path: string): string {
  if (typeof value !== "string" || value === "") throw wrong(path, "a path", value);
  return value;
}

/** @throws UsageError `bad-config` unless the value is an object with known fields */
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
 * Reads the config file of a `join()` cluster, which does not name a protocol.
 * @throws UsageError that names the file and the field
 */
export function readServiceConfig(file: string): ServiceConfig {
  return readWith(parseServiceConfig, file);
}

/**
 * Whether the file describes a cluster that runs a single protocol, instead of `join()`.
 * @throws UsageError if the file is not JSON
 */
export function namesProtocol(file: string): boolean {
  return readWith((value) => typeof value !== "object" || value === null || "protocol" in value, file);
}

/** Reads and parses a config file. */
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
    throw new UsageError("bad-config", `${file}: expected JSON: ${mistakeIn(text, error as Error)}`);
  }
  try {
    return parse(value, dirname(file));
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(error.code, `${file}: ${error.message}`);
    throw error;
  }
}

/** Returns the line and column of the first mistake, and the reason that JSON.parse() gives. */
function mistakeIn(text: string, { message }: Error): string {
  const reported = /at position (\d+)/.exec(message)?.[1];
  const before = text.slice(0, reported === undefined ? lengthBeforeMistake(text) : Number(reported));
  const lines = before.split("\n");
  // Omit the position, and the excerpt, which may span lines.
  const reason = message.replace(/( in JSON)? at position .*$/s, "").replace(/, (\.\.\.)?".*$/s, "");
  return `line ${lines.length}, column ${(lines.at(-1) as string).length + 1}: ${reason}`;
}

/**
 * Returns the length of the text before a mistake whose position is not reported. Text that ends before the mistake is
 * incomplete, and longer text has an unexpected token.
 */
function lengthBeforeMistake(text: string): number {
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (isIncomplete(text.slice(0, middle))) low = middle;
    else high = middle - 1;
  }
  return low;
}

function isIncomplete(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    return !(error as Error).message.startsWith("Unexpected token");
  }
}

/**
 * Parses the members and their addresses. Paths in the file are relative to `folder`.
 * @throws UsageError that names every wrong field
 */
export function parsePlaces(value: unknown, folder: string, kind = ofJoin): ClusterPlaces {
  const file = fileOf(value, kind);
  const { cluster, members, limits } = file;
  const dataDir = file.dataDir === undefined ? null : resolve(folder, file.dataDir);
  return { cluster, members, tls: tlsFiles(file.tls, folder), limits, dataDir };
}

function parseServiceConfig(value: unknown, folder: string): ServiceConfig {
  let timing: Timing = "default";
  const check: Kind["check"] = ({ timing: given = timing, protocol, options }, problems) => {
    for (const [field, got] of Object.entries({ protocol, options }))
      if (got !== undefined)
        problems.add(`${unexpected(field, "absent", got)}: members of join() do not run a protocol from the config`);
    const known = timings.find((each) => each === given);
    if (known === undefined) problems.add(unexpected("timing", `one of ${timings.join(", ")}`, given));
    else timing = known;
  };
  const places = parsePlaces(value, folder, { ...ofJoin, others: ["timing", "protocol", "options"], check });
  return { ...places, timing };
}

function requireSoundMembers({ members, tls, adminExposed }: ConfigFile, maxMembers: number, problems: Problems): void {
  const count = Object.keys(members).length;
  if (count < 1 || count > maxMembers) return problems.add(unexpected("members", `1 to ${maxMembers} members`, count));
  const owners = new Map<string, string>();
  let isExposed = false;
  for (const [id, { address, listen = address, admin }] of Object.entries(members)) {
    const [field, open] = isLoopback(address.host) ? ["listen", listen] : ["address", address];
    if (tls === undefined && !isLoopback(open.host) && !isExposed) {
      isExposed = true; // Report one problem for all members.
      problems.add(
        `expected tls to be set, since members.${id}.${field} ${formatHostPort(open)} is reachable from other machines: set it to certificates, or to "off" on a trusted network`,
      );
    }
    if (!adminExposed && !isLoopback(admin.host))
      problems.add(
        `${unexpected(`members.${id}.admin`, "a loopback address", formatHostPort(admin))}: admin pages have no password; "adminExposed": true exposes them to a trusted network`,
      );
    problems.of(() => claim(owners, address, `members.${id}.address`));
    // Members on different machines may use the same loopback or wildcard port, since each machine has its own.
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

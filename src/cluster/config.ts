/** The file that describes a cluster, the same for every member: who is where, and which protocol runs. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { protocolNamed } from "../protocols/index.ts";
import { formatHostPort, type HostPort, isLoopback, parseHostPort } from "../runtime/host-port.ts";
import { type Limits, limitsWith } from "../runtime/transport/limits.ts";
import { firstProblem } from "./first-problem.ts";

export type { HostPort } from "../runtime/host-port.ts";

export interface ClusterConfig {
  /** Members of another cluster are refused, so two clusters on one network cannot mix. */
  readonly cluster: string;
  /** A name of the registry. */
  readonly protocol: string;
  /** The protocol's own options. */
  readonly options: object;
  readonly members: Readonly<Record<NodeId, { readonly address: HostPort; readonly admin: HostPort }>>;
  /** PEM files; `{id}` in a path stands for the member's id. Null: no TLS, said explicitly or on loopback only. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string } | null;
  readonly limits: Partial<Limits>;
  /** Where a member keeps its journal, if what it runs keeps one; `{id}` stands for the member's id. Null: nowhere. */
  readonly dataDir: string | null;
}

/** What there is to say of a cluster that runs no single protocol. */
export type ServiceConfig = Omit<ClusterConfig, "protocol" | "options">;

const MAX_MEMBERS = 128;
const MAX_NAME_LENGTH = 64;
const HOW_TO_HAVE_ONE = "write one, as `coterie node --help` shows, or name another with --config";

/** Where nobody says otherwise, admin pages are on this machine only and on a port that the system chooses. */
const defaultAdmin: HostPort = { host: "127.0.0.1", port: 0 };

const address = hostPort("host:port with a port from 1 to 65535", ({ port }) => port > 0);
const admin = hostPort("host:port", () => true);
const positive = z.int("a whole number > 0").positive("a whole number > 0");
const path = z.string("a path").min(1, "a path");

export const clusterName = z
  .string("a name")
  .min(1, "a name")
  .max(MAX_NAME_LENGTH, `a name of at most ${MAX_NAME_LENGTH} characters`);

const member = z.union(
  [
    address.transform((it) => ({ address: it, admin: defaultAdmin })),
    z.strictObject({ address, admin: admin.default(defaultAdmin) }, "an object"),
  ],
  "host:port or an object with address and admin",
);

const memberId = z
  .string()
  .regex(/^(0|[1-9]\d*)$/, "a natural number")
  .refine((id) => Number.isSafeInteger(Number(id)), "a natural number below 2^53");

const fileSchema = z.strictObject(
  {
    cluster: clusterName,
    protocol: z.string("the name of a protocol"),
    options: z.looseObject({}, "an object").default({}),
    members: z.record(memberId, member, "an object from id to address"),
    tls: z
      .union(
        [z.literal("off"), z.strictObject({ ca: path, cert: path, key: path }, "an object")],
        '"off" or an object with ca, cert and key',
      )
      .optional(),
    limits: z
      .strictObject(
        { maxFrameBytes: positive, maxQueueBytes: positive, handshakeTimeoutMs: positive, maxStrangers: positive },
        "an object",
      )
      .partial()
      .default({}),
    dataDir: path.optional(),
    /** Admin pages ask nobody for a password. Whoever shows them to a network says so. */
    adminExposed: z.boolean("true or false").default(false),
  },
  "an object",
);

type ConfigFile = z.infer<typeof fileSchema>;

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
  const parsed = fileSchema.safeParse(value);
  if (!parsed.success) throw refusal(firstProblem(parsed.error, value, "the config"));
  const file = parsed.data;
  const limits = file.limits as Partial<Limits>;
  requireSoundMembers(file);
  protocolNamed(file.protocol).live(file.options); // Which refuses options that it does not know.
  limitsWith(limits); // Refuses what is too small.
  const { cluster, protocol, options, members } = file;
  const dataDir = file.dataDir === undefined ? null : resolve(folder, file.dataDir);
  return { cluster, protocol, options, members, tls: tlsFiles(file.tls, folder), limits, dataDir };
}

function parseServiceConfig(value: unknown, folder: string): ServiceConfig {
  const { protocol, options } = (value ?? {}) as { protocol?: unknown; options?: unknown };
  for (const [field, got] of Object.entries({ protocol, options })) {
    if (got === undefined) continue;
    throw refusal(
      `${unexpected(field, "absent", got)}: members that serve elections and locks by name run no protocol of the file's`,
    );
  }
  // The failure detector is what every member runs.
  const isFields = typeof value === "object" && value !== null;
  return parseConfig(isFields ? { ...value, protocol: "heartbeat" } : value, folder);
}

function requireSoundMembers({ members, tls, adminExposed }: ConfigFile): void {
  const count = Object.keys(members).length;
  if (count < 1 || count > MAX_MEMBERS) throw refusal(unexpected("members", `1 to ${MAX_MEMBERS} members`, count));
  const owners = new Map<string, string>();
  for (const [id, { address, admin }] of Object.entries(members)) {
    if (tls === undefined && !isLoopback(address.host))
      throw refusal(
        `expected tls to be set, since members.${id}.address ${formatHostPort(address)} is reachable from other machines: give certificates, or "tls": "off" where the network is trusted`,
      );
    if (!adminExposed && !isLoopback(admin.host))
      throw refusal(
        `${unexpected(`members.${id}.admin`, "a loopback address", formatHostPort(admin))}: admin pages have no password; "adminExposed": true shows them to a trusted network`,
      );
    claim(owners, address, `members.${id}.address`);
    // Each machine has a loopback of its own: members of different machines may use the same port there.
    const isApart = isLoopback(admin.host) && !isLoopback(address.host);
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

function hostPort(expected: string, sound: (at: HostPort) => boolean) {
  return z.string(expected).transform((text, ctx) => {
    const parsed = parseHostPort(text);
    if (parsed !== null && sound(parsed)) return parsed;
    ctx.addIssue({ code: "custom", message: expected });
    return z.NEVER;
  });
}

/** `coterie cert`: creates a certificate authority for a cluster, and certificates for its members and clients. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { hostsIn, issue, makeAuthority, type Pair, type Purpose } from "../../cluster/certificates.ts";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { isHost } from "../../runtime/host-port.ts";
import { type Manual, withManual } from "../manual.ts";
import { wholeNumber } from "../options.ts";
import type { Invocation, Output } from "../output.ts";

const MAX_DAYS = 3_650;
const OWNER_ONLY = 0o600;
const PUBLIC = 0o644;

interface Options {
  readonly out: string;
  readonly days: number;
  readonly host?: readonly string[];
  readonly client?: readonly string[];
  readonly cluster: string;
  readonly renew?: true;
  readonly json?: true;
}

const anId = wholeNumber("<ids>", 0, Number.MAX_SAFE_INTEGER, "members' ids, such as 1 2 3");

export function declare(command: Command, { stdout }: Invocation): void {
  withManual(command, manual)
    .description(
      "Creates certificates for members and clients, signed by the cluster's own authority. Creates the authority if there is none.",
    )
    .argument("[ids...]", "ids of the members", (text: string, before?: number[]) => [...(before ?? []), anId(text)])
    .requiredOption("--out <dir>", "output folder; existing certificates are not replaced")
    .option("--days <n>", "validity in days", wholeNumber("--days", 1, MAX_DAYS), 365)
    .option(
      "--host <names...>",
      "DNS names and IP addresses at which clients, browsers and scrapers reach the members",
      certifiedHost,
    )
    .option("--client <names...>", "names of clients, as in the roles file", clientName)
    .option("--cluster <name>", "name of the authority", "coterie")
    .option("--renew", "replace existing certificates, and keep their names unless --host sets others")
    .option("--json", "print the list of written files as JSON")
    .action((ids: number[], options: Options) => run(ids, options, stdout));
}

/** Parses a host for a certificate. A host can be a wildcard that covers all hosts in a domain. */
function certifiedHost(text: string, before: readonly string[] = []): readonly string[] {
  if (isHost(text.startsWith("*.") ? text.slice(2) : text)) return [...before, text];
  throw new UsageError(
    "bad-argument",
    unexpected("--host", "DNS names and IP addresses, such as db1.example.org or 10.0.0.1", text),
  );
}

/**
 * Parses a client's name. It is also used as a file name, so it must differ from the names of the authority and the
 * members.
 */
function clientName(text: string, before: readonly string[] = []): readonly string[] {
  if (/^[a-z\d]([a-z\d._-]*[a-z\d])?$/i.test(text) && !/^(ca|node-\d+)$/i.test(text)) return [...before, text];
  throw new UsageError("bad-argument", unexpected("--client", "names of clients, such as worker-7", text));
}

const manual: Manual = {
  examples: [
    "coterie cert 1 2 3 --out certs --host localhost 127.0.0.1",
    "coterie cert --client worker-7 --out certs",
    "coterie cert 2 --renew --out certs",
  ],
  exitCodes: "0 done; 1 a file cannot be read or written; 2 invalid arguments, or a certificate already exists",
  details: `Then set this in the config file:

\`\`\`json
"tls": { "ca": "certs/ca.pem", "cert": "certs/node-{id}.pem", "key": "certs/node-{id}.key" }
\`\`\`

Members identify each other as \`node-ID\` and need no \`--host\`. The option adds the names and addresses that clients, browsers and
scrapers connect to over HTTPS. The name in a client's certificate determines its role in the roles file.

Keep \`ca.key\` away from the members: a program that has it can pose as any of them. To add a member, run the same command with the
same folder. To renew certificates before they expire, add \`--renew\`.

With \`--json\`: \`{ "authority": { "cert", "isNew" }, "members": [{ "id", "hosts", "cert", "key", "validUntil" }],
"clients": [{ "name", "cert", "key", "validUntil" }] }\`.`,
};

/** A member or client, and the files for its certificate. */
interface Subject {
  readonly name: string;
  /** The member's id. Null for a client. */
  readonly id: number | null;
  readonly cert: string;
  readonly key: string;
}

async function run(ids: readonly number[], options: Options, stdout: Output): Promise<void> {
  const { out, days, json, client = [] } = options;
  const subject = (name: string, id: number | null): Subject => ({
    name,
    id,
    cert: join(out, `${name}.pem`),
    key: join(out, `${name}.key`),
  });
  const subjects = [...ids.map((id) => subject(`node-${id}`, id)), ...client.map((name) => subject(name, null))];
  if (subjects.length === 0) throw new UsageError("bad-argument", "expected member ids, or --client with names");
  requireAbsent(subjects, options);
  const all: (Subject & { readonly hosts: Hosts })[] = [];
  for (const each of subjects) all.push({ ...each, hosts: await hostsOf(each, options) });
  const now = Date.now();
  const authority = await authorityIn(out, options, now);
  const pairs = await Promise.all(
    all.map(({ name, id, hosts }) => issue(authority, [name, ...hosts.names], days, now, purposeOf(id))),
  );
  for (const [at, { cert, key }] of all.entries()) writePair(cert, key, pairs[at] as Pair);
  const validUntil = new Date(now + days * 86_400_000).toISOString();
  const made = { authority: { cert: join(out, "ca.pem"), isNew: authority.isNew }, all, validUntil };
  stdout.write(json === true ? `${JSON.stringify(asJson(made))}\n` : text(made));
}

const purposeOf = (id: number | null): Purpose => (id === null ? "client" : "both");

/** @throws UsageError if a certificate exists and `--renew` is not given */
function requireAbsent(subjects: readonly Subject[], { renew }: Options): void {
  const there = subjects.find(({ cert, key }) => existsSync(cert) || existsSync(key));
  if (there === undefined || renew === true) return;
  const whose = there.id === null ? `client ${there.name}` : `member ${there.id}`;
  throw new UsageError(
    "already-there",
    unexpected(`the certificate of ${whose}`, "absent, or --renew to replace it", there.cert),
  );
}

interface Hosts {
  readonly names: readonly string[];
  /** Whether these names come from the old certificate. */
  readonly areKept: boolean;
}

/**
 * Returns the host names for a member, from `--host` or else from the certificate that is to be renewed.
 * @throws UsageError if the file to renew is not a certificate
 */
async function hostsOf({ id, name, cert }: Subject, { host, renew }: Options): Promise<Hosts> {
  if (id === null) return { names: [], areKept: false };
  if (host !== undefined || renew !== true || !existsSync(cert)) return { names: host ?? [], areKept: false };
  const before = read(cert);
  try {
    const names = await hostsIn(before, name);
    return { names, areKept: names.length > 0 };
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new UsageError(
      "no-certificate",
      `expected ${cert} to be a certificate whose names can be kept: pass the names with --host`,
    );
  }
}

interface Made {
  readonly authority: { readonly cert: string; readonly isNew: boolean };
  readonly all: readonly (Subject & { readonly hosts: Hosts })[];
  readonly validUntil: string;
}

function asJson({ authority, all, validUntil }: Made): object {
  return {
    authority,
    members: all.flatMap(({ id, hosts, cert, key }) =>
      id === null ? [] : [{ id, hosts: hosts.names, cert, key, validUntil }],
    ),
    clients: all.flatMap(({ id, name, cert, key }) => (id === null ? [{ name, cert, key, validUntil }] : [])),
  };
}

function text({ authority, all, validUntil }: Made): string {
  const made = authority.isNew ? `made ${authority.cert}, and its key next to it\n` : "";
  const lines = all.map(({ cert, key, hosts: { names, areKept } }) => {
    const kept = areKept ? `, for ${names.join(", ")} as before` : "";
    return `${cert}, ${key}: valid until ${validUntil.slice(0, 10)}${kept}\n`;
  });
  return `${made}${lines.join("")}`;
}

/**
 * Returns the existing authority or, unless `--renew` is given, a new one.
 * @throws UsageError if only one of its two files exists
 */
async function authorityIn(
  folder: string,
  { cluster, renew }: Options,
  now: number,
): Promise<Pair & { isNew: boolean }> {
  const [cert, key] = [join(folder, "ca.pem"), join(folder, "ca.key")];
  if (existsSync(cert) && existsSync(key)) return { cert: read(cert), key: read(key), isNew: false };
  if (existsSync(cert) || existsSync(key))
    throw new UsageError(
      "half-an-authority",
      `expected both ${cert} and ${key}, or neither, got only one of them: add the other, or choose another folder`,
    );
  if (renew === true)
    throw new UsageError(
      "no-authority",
      `expected ${cert} and ${key} for --renew, got neither: choose the folder that contains them. Without --renew you get a new authority, which members that use the old one do not trust`,
    );
  const made = await makeAuthority(cluster, now);
  writePair(cert, key, made);
  return { ...made, isNew: true };
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new EnvironmentError("cannot-read", `cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** Writes the key first, so that every certificate has a key. */
function writePair(cert: string, key: string, pair: Pair): void {
  write(key, pair.key, OWNER_ONLY);
  write(cert, pair.cert, PUBLIC);
}

/** Writes a file atomically. If the mode is private, other users can never read the file, not even briefly. */
function write(file: string, content: string, mode: number): void {
  try {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(`${file}.new`, content, { mode, flush: true });
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw new EnvironmentError("cannot-write", `cannot write ${file}: ${(error as Error).message}`, { cause: error });
  }
}

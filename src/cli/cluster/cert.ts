/** `coterie cert`: a certificate authority for one cluster, and certificates for its members. */
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
      "Makes certificates for members and clients, signed by the cluster's own authority, which is created if there is none.",
    )
    .argument("[ids...]", "ids of the members", (text: string, before?: number[]) => [...(before ?? []), anId(text)])
    .requiredOption("--out <dir>", "output folder; existing certificates stay")
    .option("--days <n>", "validity in days", wholeNumber("--days", 1, MAX_DAYS), 365)
    .option(
      "--host <names...>",
      "DNS names and IP addresses for clients, browsers and scrapers that reach the members",
      certifiedHost,
    )
    .option("--client <names...>", "clients, by their names in the file of roles", clientName)
    .option("--cluster <name>", "name of the authority", "coterie")
    .option("--renew", "replace existing certificates; keeps their names, unless --host gives others")
    .option("--json", "print the written files as JSON")
    .action((ids: number[], options: Options) => run(ids, options, stdout));
}

/** A certificate names hosts, or all hosts of a domain. */
function certifiedHost(text: string, before: readonly string[] = []): readonly string[] {
  if (isHost(text.startsWith("*.") ? text.slice(2) : text)) return [...before, text];
  throw new UsageError(
    "bad-argument",
    unexpected("--host", "DNS names and IP addresses, such as db1.example.org or 10.0.0.1", text),
  );
}

/** The name is also a file name, so it must differ from the names of the authority and the members. */
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
  exitCodes: "0 written; 1 a file cannot be read or written; 2 wrong arguments, or a certificate exists",
  details: `Then set, in the config file:

\`\`\`json
"tls": { "ca": "certs/ca.pem", "cert": "certs/node-{id}.pem", "key": "certs/node-{id}.key" }
\`\`\`

Members know each other as \`node-ID\` and need no \`--host\`. It is for clients, browsers and scrapers that connect over https: the
names and addresses that they connect to. The name of a client's certificate decides its role in the file of roles.

Keep \`ca.key\` away from the members: with it, a program can pose as any of them. To add a member, or to renew certificates before
they expire with \`--renew\`, give the same command with the same folder.

With \`--json\`: \`{ "authority": { "cert", "isNew" }, "members": [{ "id", "hosts", "cert", "key", "validUntil" }],
"clients": [{ "name", "cert", "key", "validUntil" }] }\`.`,
};

/** A member or client, and the files of its certificate. */
interface Subject {
  readonly name: string;
  /** The id of a member; null for a client. */
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
  if (subjects.length === 0) throw new UsageError("bad-argument", "expected ids of members, or --client with names");
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
  /** Whether these are the names of the old certificate. */
  readonly areKept: boolean;
}

/** The names of a member, from `--host` or else from the certificate to renew. @throws UsageError if that is not a certificate */
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
      `expected ${cert} to be a certificate, whose names are kept: pass the names with --host`,
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

/** The existing authority, or a new one unless `--renew` is given. @throws UsageError if only half of it exists */
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
      `expected both ${cert} and ${key}, or neither, got one of them: add the other, or choose another folder`,
    );
  if (renew === true)
    throw new UsageError(
      "no-authority",
      `expected ${cert} and ${key} for --renew, got neither: name the folder that has them. Without --renew you get a new authority, which members of the old one do not trust`,
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

/** Writes the key first, so that every certificate has its key. */
function writePair(cert: string, key: string, pair: Pair): void {
  write(key, pair.key, OWNER_ONLY);
  write(cert, pair.cert, PUBLIC);
}

/** Writes a file atomically, and never readable by other users. */
function write(file: string, content: string, mode: number): void {
  try {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(`${file}.new`, content, { mode, flush: true });
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw new EnvironmentError("cannot-write", `cannot write ${file}: ${(error as Error).message}`, { cause: error });
  }
}

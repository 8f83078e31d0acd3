/** `coterie cert`: an authority of a cluster's own, and certificates for its members. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { hostsIn, issue, makeAuthority, type Pair, type Purpose } from "../../cluster/certificates.ts";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { isHost } from "../../runtime/host-port.ts";
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
  command
    .description(
      "Makes certificates for members and clients, signed by an authority of the cluster's own, which is made if there is none yet.",
    )
    .argument("[ids...]", "the members, by their ids", (text: string, before?: number[]) => [
      ...(before ?? []),
      anId(text),
    ])
    .requiredOption("--out <dir>", "where they are written; what is there already stays")
    .option("--days <n>", "for how long they are valid", wholeNumber("--days", 1, MAX_DAYS), 365)
    .option(
      "--host <names...>",
      "DNS names and IP addresses that browsers and scrapers reach the admin pages, and clients the members, by",
      certifiedHost,
    )
    .option("--client <names...>", "clients that are no members, by the names that the file of roles has", clientName)
    .option("--cluster <name>", "what the authority is called", "coterie")
    .option("--renew", "make new certificates where there are some, with their names unless --host says others")
    .option("--json", "print what was written as JSON")
    .addHelpText("after", EXPLANATION)
    .action((ids: number[], options: Options) => run(ids, options, stdout));
}

/** What a certificate can name: hosts, and all hosts of a domain. */
function certifiedHost(text: string, before: readonly string[] = []): readonly string[] {
  if (isHost(text.startsWith("*.") ? text.slice(2) : text)) return [...before, text];
  throw new UsageError(
    "bad-argument",
    unexpected("--host", "DNS names and IP addresses, such as db1.example.org or 10.0.0.1", text),
  );
}

/** It names its files as well: neither those of the authority nor of a member. */
function clientName(text: string, before: readonly string[] = []): readonly string[] {
  if (/^[a-z\d]([a-z\d._-]*[a-z\d])?$/i.test(text) && !/^(ca|node-\d+)$/i.test(text)) return [...before, text];
  throw new UsageError("bad-argument", unexpected("--client", "names of clients, such as worker-7", text));
}

const EXPLANATION = `
Example:
  $ coterie cert 1 2 3 --out certs --host localhost 127.0.0.1
  then, in the config file: "tls": { "ca": "certs/ca.pem", "cert": "certs/node-{id}.pem", "key": "certs/node-{id}.key" }
  $ coterie cert --client worker-7 --out certs

Members know each other as node-<id> and need no --host. It is for clients, browsers and scrapers that come over https: the
names and addresses by which they reach a member. A client's certificate gives it the role that the file of roles has for
its name.

Keep ca.key away from the members: whoever has it can pose as any of them. For another member, or with --renew for new
certificates before the old ones expire, give the same command with the same folder.

With --json: { "authority": { "cert", "isNew" }, "members": [{ "id", "hosts", "cert", "key", "validUntil" }],
"clients": [{ "name", "cert", "key", "validUntil" }] }
Exit codes: 0 written; 1 a file cannot be read or written; 2 wrong arguments, or there are such certificates already.`;

/** Whose certificate is made. */
interface Subject {
  readonly name: string;
  /** Of a member; null: a client. */
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
  if (subjects.length === 0)
    throw new UsageError("bad-argument", "expected members' ids, or --client and names, got neither");
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

/** @throws UsageError for a certificate that is there and is not to be replaced */
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
  /** Those of the certificate before. */
  readonly areKept: boolean;
}

/** By what a member is reached: what is said, or else what its certificate says that is renewed. @throws UsageError where that is none */
async function hostsOf({ id, name, cert }: Subject, { host, renew }: Options): Promise<Hosts> {
  if (id === null) return { names: [], areKept: false };
  if (host !== undefined || renew !== true || !existsSync(cert)) return { names: host ?? [], areKept: false };
  const before = read(cert);
  try {
    const names = await hostsIn(before, name);
    return { names, areKept: names.length > 0 };
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    const wanted = "to be a certificate, whose names are kept, or --host to say them";
    throw new UsageError("no-certificate", `expected ${cert} ${wanted}, got what is none`);
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
  const made = authority.isNew ? `made ${authority.cert}, and its key beside it\n` : "";
  const lines = all.map(({ cert, key, hosts: { names, areKept } }) => {
    const kept = areKept ? `, for ${names.join(", ")} as before` : "";
    return `${cert}, ${key}: valid until ${validUntil.slice(0, 10)}${kept}\n`;
  });
  return `${made}${lines.join("")}`;
}

/** The one that is there, or a new one, but not to renew with. @throws UsageError if half of it is there */
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
      `expected ${cert} and ${key}, or neither, and only one of them is there: bring the other, or choose another folder`,
    );
  if (renew === true)
    throw new UsageError(
      "no-authority",
      `expected ${cert} and ${key}, with which --renew signs, and neither is there: name the folder that has them, or leave out --renew to make a new authority, which members of the old one do not know`,
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

/** The key first: a certificate that is there has its key. */
function writePair(cert: string, key: string, pair: Pair): void {
  write(key, pair.key, OWNER_ONLY);
  write(cert, pair.cert, PUBLIC);
}

/** Whole or not at all, and never readable by others on its way. */
function write(file: string, content: string, mode: number): void {
  try {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(`${file}.new`, content, { mode, flush: true });
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw new EnvironmentError("cannot-write", `cannot write ${file}: ${(error as Error).message}`, { cause: error });
  }
}

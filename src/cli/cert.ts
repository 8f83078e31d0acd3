/** `coterie cert`: an authority of a cluster's own, and certificates for its members. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { issue, makeAuthority, type Pair } from "../cluster/certificates.ts";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { isHost } from "../runtime/host-port.ts";
import { wholeNumber } from "./arguments.ts";
import type { Invocation, Output } from "./invocation.ts";

const MAX_DAYS = 3_650;
const OWNER_ONLY = 0o600;
const PUBLIC = 0o644;

interface Options {
  readonly out: string;
  readonly days: number;
  readonly host?: readonly string[];
  readonly cluster: string;
  readonly renew?: true;
  readonly json?: true;
}

const anId = wholeNumber("<ids>", 0, Number.MAX_SAFE_INTEGER, "members' ids, such as 1 2 3");

export function declare(command: Command, { stdout }: Invocation): void {
  command
    .description(
      "Makes certificates for members, signed by an authority of the cluster's own, which is made if there is none yet.",
    )
    .argument("<ids...>", "the members, by their ids", (text: string, before?: number[]) => [
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
    .option("--cluster <name>", "what the authority is called", "coterie")
    .option("--renew", "make new certificates for members that have some")
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

const EXPLANATION = `
Example:
  $ coterie cert 1 2 3 --out certs --host localhost 127.0.0.1
  then, in the config file: "tls": { "ca": "certs/ca.pem", "cert": "certs/node-{id}.pem", "key": "certs/node-{id}.key" }

Members need no --host among themselves: they know each other by node-<id>, which every certificate has. Clients, browsers
and scrapers that come over https need the name or address by which they reach a member, here those of this machine.

Keep ca.key away from the members: who has it can pose as any of them. A member needs ca.pem and its own two files. Another
member later, or new certificates before the old ones run out (--renew): the same command, with the same folder.

With --json: { "authority": { "cert", "isNew" }, "members": [{ "id", "cert", "key", "validUntil" }] }
Exit codes: 0 written; 1 a file cannot be read or written; 2 wrong arguments, or certificates that are there already.`;

async function run(ids: readonly number[], options: Options, stdout: Output): Promise<void> {
  const { out, days, host = [], cluster, renew, json } = options;
  const files = ids.map((id) => ({ id, cert: join(out, `node-${id}.pem`), key: join(out, `node-${id}.key`) }));
  const there = files.find(({ cert, key }) => existsSync(cert) || existsSync(key));
  if (there !== undefined && renew !== true)
    throw new UsageError(
      "already-there",
      unexpected(`the certificate of member ${there.id}`, "absent, or --renew to replace it", there.cert),
    );
  const now = Date.now();
  const authority = await authorityIn(out, cluster, now);
  const pairs = await Promise.all(ids.map((id) => issue(authority, [`node-${id}`, ...host], days, now)));
  for (const [at, { cert, key }] of files.entries()) writePair(cert, key, pairs[at] as Pair);
  const validUntil = new Date(now + days * 86_400_000).toISOString();
  const answer = {
    authority: { cert: join(out, "ca.pem"), isNew: authority.isNew },
    members: files.map((file) => ({ ...file, validUntil })),
  };
  stdout.write(json === true ? `${JSON.stringify(answer)}\n` : text(answer));
}

type Answer = {
  authority: { cert: string; isNew: boolean };
  members: readonly { id: number; cert: string; key: string; validUntil: string }[];
};

function text({ authority, members }: Answer): string {
  const made = authority.isNew ? `made ${authority.cert}, and its key beside it\n` : "";
  const lines = members.map(({ cert, key, validUntil }) => `${cert}, ${key}: valid until ${validUntil.slice(0, 10)}\n`);
  return `${made}${lines.join("")}`;
}

/** The one that is there, or a new one. @throws UsageError if half of it is there */
async function authorityIn(folder: string, cluster: string, now: number): Promise<Pair & { isNew: boolean }> {
  const [cert, key] = [join(folder, "ca.pem"), join(folder, "ca.key")];
  if (existsSync(cert) && existsSync(key)) return { cert: read(cert), key: read(key), isNew: false };
  if (existsSync(cert) || existsSync(key))
    throw new UsageError(
      "half-an-authority",
      `expected ${cert} and ${key}, or neither, and only one of them is there: bring the other, or choose another folder`,
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

/** Diagnoses a cluster from one machine: its config, names, links, certificates, disk, and the members' status. */
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import { existsSync } from "node:fs";
import { mkdir, open, rm, statfs } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeId } from "../core/protocol.ts";
import { readTls } from "../runtime/certificate-files.ts";
import { formatHostPort, type HostPort } from "../runtime/host-port.ts";
import type { ServiceConfig } from "./config.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";
import { type KnownList, listFindings, listFrom, placesOf } from "./listed-members.ts";
import { isOnOtherLoopback } from "./other-machine.ts";
import { type AskedMember, askMembers, type ServiceNode, statusFrom } from "./services-survey.ts";

/** The cluster to examine. */
export interface Patient {
  readonly config: ServiceConfig;
  /** The member on this machine. Null if no member is examined. */
  readonly id: NodeId | null;
  /** The member's folder. Null if unknown. */
  readonly folder: string | null;
}

const PATIENCE_MS = 2_000;
/**
 * How long to wait before requesting the status again. Members elect a leader of the log within this time, even with
 * `patient` timing.
 */
const LOOK_AGAIN_MS = 3_000;
const DAY_MS = 86_400_000;
const EXPIRES_SOON_DAYS = 30;
/** The free space that docs/operate/deploy.md requires. */
const WANTED_FREE_BYTES = 2 ** 30;
const WRITES = 32;
const WRITE_BYTES = 4_096;
/** Members renew leases of 0.4 s, so a member whose disk or process pauses for longer may lose its locks. */
const SLOW_MS = 20;
const TOO_SLOW_MS = 100;
const WATCHED_MS = 1_000;
const LOOK_EVERY_MS = 5;

/**
 * Runs all checks one after another, so that their load on the disk and processor does not distort the measurements.
 */
export async function* examine(patient: Patient): AsyncGenerator<Finding> {
  const { config, id, folder } = patient;
  const asked = await answersOf(config);
  const list = listFrom(config, asked);
  yield size(list);
  yield* await Promise.all(placesOf(config, list).map(({ member, address }) => link(member, address, id)));
  yield* listFindings(config, list);
  yield* await standing(patient, asked, list);
  if (config.tls !== null) yield* await certificates(config, id);
  if (folder !== null) yield* await disk(folder);
  if (id !== null) yield await stalls();
}

/** Runs the checks that need no config: the disk that contains a folder, and the processor. */
export async function* examineMachine(folder: string): AsyncGenerator<Finding> {
  yield* await disk(folder);
  yield await stalls();
}

/**
 * Requests the status of all members. If a majority is running but no member knows who leads the log, requests the
 * status again, since the members may be about to elect a leader.
 */
async function answersOf(config: ServiceConfig): Promise<readonly AskedMember[]> {
  const asked = await askMembers(config, PATIENCE_MS);
  const { nodes } = statusFrom(config, asked);
  if (!isLeaderless(nodes)) return asked;
  await sleep(LOOK_AGAIN_MS);
  return askMembers(config, PATIENCE_MS);
}

const isLeaderless = (nodes: readonly ServiceNode[]): boolean =>
  nodes.some(({ hasQuorum }) => hasQuorum === true) && nodes.every(({ leader }) => leader === null);

function size({ members, voters }: KnownList): Finding {
  const count = voters.length;
  const bears = Math.ceil(count / 2) - 1;
  const vote = count === members.length ? "" : `, ${count} voting`;
  const found = `${members.length} ${members.length === 1 ? "member" : "members"}${vote}: ${bears} may fail`;
  if (count === 1) return warning("members", found, "add two members on other machines to tolerate a failure");
  if (count % 2 === 0)
    return warning(
      "members",
      found,
      `${count - 1} members would tolerate the same number of failures, and ${count + 1} members one more`,
    );
  return ok("members", found);
}

/** Checks whether a member's name resolves and its address accepts connections. */
async function link(member: NodeId, address: HostPort, own: NodeId | null): Promise<Finding> {
  const check = `member ${member}`;
  const at = formatHostPort(address);
  const host = await lookup(address.host).catch((error: unknown) => error as NodeJS.ErrnoException);
  if (host instanceof Error)
    return problem(check, `cannot resolve ${address.host} (${host.code})`, "use a name that this machine can resolve");
  const code = await dialled(address);
  if (code === null) return ok(check, `${at} accepts connections`);
  const what = code === "ETIMEDOUT" ? "does not answer" : `does not accept connections (${code})`;
  const start = `start it: coterie node --id ${member}`;
  if (member === own) return warning(check, `${at} ${what}`, start);
  return problem(check, `${at} ${what}`, `${start}; or check for a firewall`);
}

/** Returns null if the address accepts connections, or else the error code. */
function dialled({ host, port }: HostPort): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: PATIENCE_MS });
    const end = (code: string | null): void => {
      socket.destroy();
      resolve(code);
    };
    socket.once("connect", () => end(null));
    socket.once("timeout", () => end("ETIMEDOUT"));
    socket.once("error", ({ code }: NodeJS.ErrnoException) => end(code ?? "no reason given"));
  });
}

const ASK_NEARER = "run doctor on a machine that can reach their admin addresses";

/**
 * Determines why a member does not answer, if possible. If a process is stopped or busy, its machine still accepts
 * connections, but nothing answers.
 */
async function silence({ id, other }: AskedMember, { config, id: own }: Patient): Promise<readonly Finding[]> {
  const place = config.members[id] as ServiceConfig["members"][number];
  const [check, at] = [`member ${id}`, formatHostPort(place.admin)];
  if (id !== own && (await isOnOtherLoopback(place)))
    return [warning(check, `its admin address ${at} is a loopback address`, "run doctor on that machine")];
  if (other !== null) {
    const who = `member ${other.id}${other.cluster === config.cluster ? "" : ` of cluster ${other.cluster}`}`;
    return [problem(check, `${who} answers at its admin address ${at}`, "correct the admin address in the config")];
  }
  if ((await dialled(place.admin)) !== null) return [];
  const found = `${at} accepts connections but does not answer within ${PATIENCE_MS / 1_000} s`;
  return [problem(check, found, "check whether its process is stopped or busy (state T or R in ps), and restart it")];
}

/** Checks the members' status, as reported by their admin pages. */
async function standing(
  patient: Patient,
  answers: readonly AskedMember[],
  list: KnownList,
): Promise<readonly Finding[]> {
  const { nodes } = statusFrom(patient.config, answers);
  const asked = nodes.filter(({ id, admin }) => admin !== null && list.members.includes(id));
  if (asked.length === 0)
    return [warning("cluster", "no member has an admin address with a port", "set an admin address in the config")];
  const alive = asked.filter((node) => node.alive);
  const said = `${alive.length} of ${asked.length} members with an admin address answer`;
  const silent = asked.filter((node) => !node.alive);
  const unanswered = answers.filter(({ id }) => silent.some((each) => each.id === id));
  const silences = (await Promise.all(unanswered.map((each) => silence(each, patient)))).flat();
  if (alive.length === 0) return [warning("cluster", said, ASK_NEARER), ...silences];
  const all: Finding[] = [];
  const alone = alive.filter(({ hasQuorum }) => hasQuorum === false);
  if (alone.length > 0)
    all.push(
      problem(
        "majority",
        `not reachable from ${named(alone)}`,
        alone.length === alive.length
          ? "start members until a majority is running, each with its own folder"
          : "other members can reach a majority: look for the cause in the isolated member's log, such as a rejected certificate, or check for a firewall",
      ),
    );
  all.push(leader(alive));
  for (const { id, refusals } of nodes)
    for (const { node, reason, detail } of refusals)
      all.push(problem(`member ${id}`, `has no link with ${node}: ${reason}`, detail));
  return [
    silent.length === 0 ? ok("cluster", said) : warning("cluster", `${said}, not ${named(silent)}`, ASK_NEARER),
    ...silences,
    ...all,
  ];
}

function leader(alive: readonly ServiceNode[]): Finding {
  const check = "leader of the log";
  if (isLeaderless(alive))
    return problem(
      check,
      "a majority is reachable, but no member knows who the leader is",
      "the members' logs name the obstacle; if all were started for the first time with existing: true (--existing), no cluster has been founded: stop them, empty their folders and start them without it",
    );
  const leaders = [...new Set(alive.map(({ leader }) => leader))];
  if (leaders.includes(null)) return warning(check, "not all members know the leader", "run doctor again in a second");
  if (leaders.length > 1)
    return warning(check, `members name ${leaders.join(" and ")}`, "run doctor again in a second");
  return ok(check, `member ${leaders[0]}`);
}

const named = (nodes: readonly { readonly id: NodeId }[]): string =>
  `${nodes.length === 1 ? "member" : "members"} ${nodes.map(({ id }) => id).join(", ")}`;

/** Checks the certificate of the member on this machine, or of all members whose files are on this machine. */
async function certificates({ tls, members }: ServiceConfig, own: NodeId | null): Promise<readonly Finding[]> {
  if (tls === null) return [];
  const isHere = (id: NodeId): boolean => existsSync(tls.cert.replaceAll("{id}", String(id)));
  const ids = own === null ? Object.keys(members).map(Number).filter(isHere) : [own];
  if (ids.length === 0)
    return [warning("certificates", "none are on this machine", "name this machine's member with --id")];
  const all = `coterie cert ${Object.keys(members).join(" ")} --out ${dirname(tls.cert)}`;
  const absent = `copy this member's files and ca.pem here, or create the files for all members: ${all}`;
  return Promise.all(ids.map((id) => certificate(tls, id, absent)));
}

/** @param absent the advice if this machine does not have the authority's certificate */
async function certificate(tls: NonNullable<ServiceConfig["tls"]>, id: NodeId, absent: string): Promise<Finding> {
  const check = `certificate of ${id}`;
  const renewal = `coterie cert ${id} --renew --out ${dirname(tls.cert)}`;
  try {
    const found = await readTls(tls, id);
    if (found === null) return ok(check, "none is needed");
    const own = new X509Certificate(found.cert);
    const days = Math.floor((Date.parse(own.validTo) - Date.now()) / DAY_MS);
    if (!certificatesIn(found.ca).some((authority) => own.verify(authority.publicKey)))
      return problem(check, "it was signed by another authority", renewal);
    if (!isKeyOf(own, found.key)) return problem(check, "the key belongs to another certificate", renewal);
    if (own.checkHost(`node-${id}`) === undefined)
      return problem(check, `it does not have the name node-${id}`, `${renewal}: other members reject it`);
    if (days < 0) return problem(check, `it expired ${-days} days ago`, renewal);
    if (days < EXPIRES_SOON_DAYS)
      return warning(check, `it expires in ${days} days`, `${renewal}; running members reload it`);
    return ok(check, `valid for ${days} days`);
  } catch (error) {
    return problem(check, (error as Error).message, existsSync(tls.ca) ? renewal : absent);
  }
}

/**
 * Returns the certificates in a bundle. It may contain several, for example when one authority is replacing another.
 */
const certificatesIn = (bundle: string): readonly X509Certificate[] =>
  (bundle.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [bundle]).map(
    (each) => new X509Certificate(each),
  );

function isKeyOf(certificate: X509Certificate, key: string): boolean {
  const form = { type: "spki", format: "der" } as const;
  return createPublicKey(createPrivateKey(key)).export(form).equals(certificate.publicKey.export(form));
}

/** Checks whether the folder is writable, has space, and is fast. */
async function disk(folder: string): Promise<readonly Finding[]> {
  const file = join(folder, ".doctor");
  try {
    await mkdir(folder, { recursive: true });
    const { bavail, bsize } = await statfs(folder);
    const times = await syncTimes(file);
    return [room(folder, bavail * bsize), speed(times)];
  } catch (error) {
    return [problem("folder", (error as Error).message, `let the member write to ${folder}`)];
  } finally {
    await rm(file, { force: true }).catch(() => {}); // The reason has already been reported.
  }
}

function room(folder: string, bytes: number): Finding {
  const found = `${folder} has ${(bytes / 2 ** 30).toFixed(1)} GiB free`;
  return bytes < WANTED_FREE_BYTES ? warning("folder", found, "a journal may take 1 GiB") : ok("folder", found);
}

/** Returns the duration of each write and sync in milliseconds, ascending. */
async function syncTimes(path: string): Promise<readonly number[]> {
  const file = await open(path, "w");
  try {
    const times: number[] = [];
    for (let write = 0; write < WRITES; write++) {
      const began = performance.now();
      await file.write(Buffer.alloc(WRITE_BYTES, write));
      await file.datasync();
      times.push(performance.now() - began);
    }
    return times.sort((a, b) => a - b);
  } finally {
    await file.close();
  }
}

function speed(times: readonly number[]): Finding {
  const [median, worst] = [times[Math.floor(times.length / 2)] as number, times.at(-1) as number];
  const found = `fdatasync takes ${median.toFixed(1)} ms, at worst ${worst.toFixed(1)} ms in ${times.length} writes`;
  const advice = "acknowledgments and leases wait for the disk: use a fast local disk that few other programs use";
  if (median > TOO_SLOW_MS) return problem("disk", found, advice);
  return median > SLOW_MS || worst > TOO_SLOW_MS ? warning("disk", found, advice) : ok("disk", found);
}

/** Checks whether this machine schedules processes without long delays. */
async function stalls(): Promise<Finding> {
  let [last, longest] = [performance.now(), 0];
  const until = last + WATCHED_MS;
  while (last < until) {
    await sleep(LOOK_EVERY_MS);
    const now = performance.now();
    longest = Math.max(longest, now - last - LOOK_EVERY_MS);
    last = now;
  }
  const found = `a process waited up to ${longest.toFixed(0)} ms for the processor during one second`;
  const advice =
    'members that are not scheduled in time lose their locks: give them more CPU time, or set timing: "patient"';
  return longest > TOO_SLOW_MS ? warning("processor", found, advice) : ok("processor", found);
}

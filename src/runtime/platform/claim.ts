/**
 * One writer per directory. A claim is an empty file in it whose name identifies a process: its pid, when that process began,
 * and the boot of its machine, as well as the directory, of which there may be copies. The kernel says whether this very process still runs. So a claim that a killed process has left is
 * known for what it is, the pid of a later process is not mistaken for it, and a process that is only paused is not taken for dead.
 *
 * Pids mean nothing in another PID namespace. In a container, therefore, a claim is a Unix socket on which its process listens: the
 * kernel says to any process that connects whether it is alive. A process in a container cannot check a claim that a process outside
 * has made, and does not take the directory from it. (Two machines that mount the same directory are not kept apart.)
 *
 * Nobody removes another's claim in order to take it: everybody announces a claim under a name of its own, then looks at
 * all others, and gives up if one of them is alive. Of two processes the one that looks last has been announced to, and
 * sees the other; so there are never two writers, though both may give up and try again. Only who holds the directory
 * clears away what the dead have left; a process that finds its own claim cleared away, before it was complete, starts again.
 */
import { randomBytes } from "node:crypto";
import { access, type FileHandle, lstat, open, readdir, unlink, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EnvironmentError } from "../../core/errors.ts";
import { ownIdentity, runs } from "./process-identity.ts";

export interface Claim {
  release(): Promise<void>;
}

const PREFIX = "claim-";
/** Longer paths do not fit the address of a socket, and are cut off without a word. */
const MAX_SOCKET_PATH = 100;
const ATTEMPTS = 6;
const PAUSE_MS = 25;
/** A listening process accepts in the kernel, even while it is paused. */
const CONNECT_WITHIN_MS = 1_000;

/** @throws EnvironmentError if another process holds the directory. */
export async function claim(directory: string): Promise<Claim> {
  const folder = await open(directory, "r");
  try {
    for (let attempt = 1; ; attempt++) {
      const outcome = await attemptClaim(directory, folder);
      if (typeof outcome !== "string") return outcome;
      if (attempt === ATTEMPTS) throw inUse(directory, outcome);
      await sleep(PAUSE_MS * (1 + Math.random()));
    }
  } catch (error) {
    await folder.close();
    throw error;
  }
}

/**
 * For who reads a directory and writes nothing there. Who comes to hold it later is not seen.
 * @throws EnvironmentError if a process holds it; nothing of one that cannot be read.
 */
export async function requireUnclaimed(directory: string): Promise<void> {
  const folder = await open(directory, "r").catch(() => null);
  if (folder === null) return;
  try {
    const rival = await holderAmong(directory, folder, await announcedIn(directory).catch(() => []));
    if (rival !== undefined) throw inUse(directory, rival);
  } finally {
    await folder.close();
  }
}

const announcedIn = async (directory: string): Promise<string[]> =>
  (await readdir(directory)).filter((each) => each.startsWith(PREFIX));

/** The first whose process is alive. */
async function holderAmong(directory: string, folder: FileHandle, names: readonly string[]) {
  const alive = await Promise.all(names.map((each) => isHeld(directory, folder, each)));
  return names.find((_, i) => alive[i]);
}

/** Tells a directory from copies of it, in which there is a copy of the claim. */
const numberOf = async (folder: FileHandle): Promise<string> => (await folder.stat({ bigint: true })).ino.toString(36);

async function isHeld(directory: string, folder: FileHandle, name: string): Promise<boolean> {
  const [pid, , number, ...identity] = name.slice(PREFIX.length).split("-");
  if (number !== undefined) return number === (await numberOf(folder)) && runs(Number(pid), identity.join("-"));
  const isSocket = await lstat(join(directory, name)).then(
    (found) => found.isSocket(),
    (error: unknown) => (error as NodeJS.ErrnoException).code !== "ENOENT",
  );
  return isSocket && isListening(socketPath(directory, folder, name));
}

/** Returns the claim, or the name of the one that is in its way. */
async function attemptClaim(directory: string, folder: FileHandle): Promise<Claim | string> {
  const { name, withdraw } = await announce(directory, folder);
  const release = async (): Promise<void> => {
    try {
      await withdraw();
    } finally {
      await folder.close();
    }
  };
  const others = (await announcedIn(directory)).filter((each) => each !== name);
  const rival = await holderAmong(directory, folder, others);
  const own = join(directory, name);
  const isClearedAway = await access(own).then(
    () => false,
    () => true,
  );
  if (rival === undefined && !isClearedAway) {
    // What stays takes no room, and is dead to the next one as well.
    await Promise.all(others.map((other) => cleared(join(directory, other)).catch(() => {})));
    return { release };
  }
  await withdraw();
  return rival ?? name;
}

interface Announced {
  readonly name: string;
  withdraw(): Promise<void>;
}

async function announce(directory: string, folder: FileHandle): Promise<Announced> {
  const [identity, random] = [await ownIdentity(), randomBytes(6).toString("hex")];
  if (identity !== null) {
    const name = `${PREFIX}${process.pid}-${random}-${await numberOf(folder)}-${identity}`;
    const path = join(directory, name);
    await writeFile(path, "", { flag: "wx" });
    return { name, withdraw: () => cleared(path) };
  }
  const name = `${PREFIX}${process.pid}-${random}`;
  const server = await listen(socketPath(directory, folder, name));
  // Closing it removes the socket.
  return { name, withdraw: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}

/** Not with `rm`, which looks at the socket first: modules that are loaded then may be another copy, as links are not followed (nodejs/node#51142). */
async function cleared(claimOfDead: string): Promise<void> {
  try {
    await unlink(claimOfDead);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** Where a long path has no room, Linux knows the open folder by a short one. */
function socketPath(directory: string, folder: FileHandle, name: string): string {
  const path = join(directory, name);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return path;
  if (process.platform === "linux") return `/proc/self/fd/${folder.fd}/${name}`;
  throw new EnvironmentError(
    "journal-path",
    `expected the path of the journal's directory to be shorter, since a socket in it has to have at most ${MAX_SOCKET_PATH} bytes, got ${directory}`,
  );
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.on("error", () => {}).destroy());
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      server.on("error", () => {}); // A visitor that cannot be taken has seen enough.
      server.unref();
      resolve(server);
    });
  });
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const conclude = (alive: boolean) => () => {
      socket.destroy();
      resolve(alive);
    };
    socket.setTimeout(CONNECT_WITHIN_MS, conclude(true));
    socket.on("connect", conclude(true));
    socket.on("error", ({ code }: NodeJS.ErrnoException) => conclude(code !== "ECONNREFUSED" && code !== "ENOENT")());
  });
}

function inUse(directory: string, rival: string): EnvironmentError {
  const pid = rival.slice(PREFIX.length).split("-")[0];
  return new EnvironmentError(
    "journal-in-use",
    `the journal in ${directory} is in use by process ${pid}: a directory has one writer, so stop that process or name another directory`,
  );
}

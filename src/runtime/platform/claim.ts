/**
 * Ensures that only one process writes to a directory. A claim is an empty file in the directory. Its name identifies a
 * process by its pid, its start time and its machine's boot, and also identifies the directory, because directories can
 * be copied. The kernel knows whether exactly this process is still running. As a result, a claim left behind by a
 * killed process is recognized as stale, a later process with the same pid is not mistaken for the claimant, and a
 * paused process is not considered dead.
 *
 * Pids are meaningless in another PID namespace. In a container, a claim is therefore a Unix socket that its process
 * listens on. Through the kernel, any process that connects can see whether the claimant is alive. A process in a
 * container cannot check a claim made outside it, and does not take the directory from the claimant. (Nothing prevents
 * two machines that mount the same directory from both writing to it.)
 *
 * A process never removes another claim in order to take the directory. Each process announces a claim under its own
 * name, then checks all the others, and gives up if the process behind one of them is alive. Of two processes, the one
 * that checks last sees the other's claim, so there are never two writers, although both may give up and retry. Only
 * the process that holds the directory removes the claims of dead processes. If a process finds that its own claim was
 * removed before it was complete, it starts over.
 */
import { randomBytes } from "node:crypto";
import { access, type FileHandle, lstat, open, readdir, unlink, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EnvironmentError } from "../../core/errors.ts";
import { ownIdentity, runs } from "./process-identity.ts";

/** A claim on a directory that this process may write to. */
export interface Claim {
  release(): Promise<void>;
}

const PREFIX = "claim-";
/** The maximum length of a socket's path. Longer paths do not fit into a socket address and are silently truncated. */
const MAX_SOCKET_PATH = 100;
const ATTEMPTS = 6;
const PAUSE_MS = 25;
/**
 * The timeout for a connection. The kernel accepts connections on behalf of a listening process even while the process
 * is paused.
 */
const CONNECT_WITHIN_MS = 1_000;

/**
 * Takes the directory.
 * @throws EnvironmentError if another process holds it
 */
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
 * Checks that no process holds the directory. Meant for readers that write nothing to it. If a process takes it later,
 * this goes unnoticed.
 * @throws EnvironmentError if a process holds it. Does not throw if the directory cannot be read.
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

/** Returns the name of the first claim whose process is alive. */
async function holderAmong(directory: string, folder: FileHandle, names: readonly string[]) {
  const alive = await Promise.all(names.map((each) => isHeld(directory, folder, each)));
  return names.find((_, i) => alive[i]);
}

/** Returns a number that distinguishes a directory from its copies, which also contain copies of the claim. */
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

/** Returns the claim, or the name of the claim that prevents it. */
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
    // A leftover claim takes up no space, and the next process will also recognize it as stale.
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
  // Closing the server removes the socket.
  return { name, withdraw: () => new Promise<void>((resolve) => server.close(() => resolve())) };
}

/**
 * Removes a claim. Does not use `rm`, which first inspects the socket: after that, Node no longer follows symbolic
 * links, so modules loaded later may be loaded a second time (nodejs/node#51142).
 */
async function cleared(claimOfDead: string): Promise<void> {
  try {
    await unlink(claimOfDead);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/**
 * Returns a path for the socket. A long path would not fit into the address, but on Linux the open folder also has a
 * short path.
 */
function socketPath(directory: string, folder: FileHandle, name: string): string {
  const path = join(directory, name);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return path;
  if (process.platform === "linux") return `/proc/self/fd/${folder.fd}/${name}`;
  throw new EnvironmentError(
    "journal-path",
    `expected a shorter path for the journal directory, because the path of a socket in it can have at most ${MAX_SOCKET_PATH} bytes, got ${directory}`,
  );
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.on("error", () => {}).destroy());
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      server.on("error", () => {}); // Harmless: being able to connect already shows that this process is alive.
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
    `the journal in ${directory} is in use by process ${pid}: a directory can have only one writer, so stop that process or use another directory`,
  );
}

/**
 * Finds unused ports on this machine, below the ranges used for the system's outgoing connections and for
 * `coterie up --port 0`. No other test takes such a port before its member listens on it, or while its member is
 * stopped: concurrent test files have separate ranges, and on Linux, tests from other checkouts can see the claim.
 */
import { createServer, type Server } from "node:net";

export const FIRST = 5_000;
const PORTS_EACH = 600;
const RANGES = 8;
export const END = FIRST + RANGES * PORTS_EACH;

/** Ports that `fetch` rejects without connecting ("bad port" in the fetch standard). */
export const REFUSED_BY_FETCH = new Set([5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697]);

/** Vitest numbers concurrent workers starting from 1. */
const range = (Number(process.env.VITEST_POOL_ID ?? 1) - 1) % RANGES;
const first = FIRST + range * PORTS_EACH;
let next = Math.floor(Math.random() * PORTS_EACH);

export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let tried = 0; found.length < count && tried < PORTS_EACH; tried++) {
    next = (next + 1) % PORTS_EACH;
    const port = first + next; // Concurrent calls may advance `next`.
    if (!REFUSED_BY_FETCH.has(port) && (await isClaimed(port)) && (await isFree(port))) found.push(port);
  }
  if (found.length === count) return found;
  throw new Error(`expected ${count} free ports from ${first} to ${first + PORTS_EACH - 1}, got ${found.length}`);
}

/**
 * Returns a port such that the port itself and the ports at these offsets are free, and claims all of them for this
 * process.
 */
export async function freePortWith(offsets: readonly number[]): Promise<number> {
  for (let tried = 0; tried < PORTS_EACH; tried++) {
    const [port] = (await freePorts(1)) as [number];
    let isAllFree = true;
    for (const offset of offsets)
      isAllFree &&=
        !REFUSED_BY_FETCH.has(port + offset) && (await isClaimed(port + offset)) && (await isFree(port + offset));
    if (isAllFree) return port;
  }
  throw new Error(`expected a free port with others at ${offsets.join(", ")} from it, got none`);
}

/** Replaces the ports in a program with free ones, because the original ports may be in use. */
export async function onFreePorts(program: string): Promise<string> {
  const written = [...new Set([...program.matchAll(/127\.0\.0\.1:([1-9]\d*)/g)].map(([, port]) => port as string))];
  const ports = await freePorts(written.length);
  return program.replaceAll(
    /127\.0\.0\.1:([1-9]\d*)/g,
    (_, port: string) => `127.0.0.1:${ports[written.indexOf(port)]}`,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/**
 * The ports claimed by this process, oldest first. The limit is higher than the number that any test needs at once, and
 * low enough for several test runs.
 */
const reservations = new Map<number, Server>();
const MAX_RESERVATIONS = 64;

export const claimOf = (port: number): string => `\0coterie-test-port-${port}`;

/**
 * Resolves with whether this process could claim the port. The kernel ensures that a name has a single owner for as
 * long as that process lives.
 */
async function isClaimed(port: number): Promise<boolean> {
  if (process.platform !== "linux") return true;
  const claim = reservations.get(port) ?? (await listening(claimOf(port)));
  if (claim === null) return false;
  reservations.delete(port);
  reservations.set(port, claim);
  const [oldest] = reservations;
  if (reservations.size <= MAX_RESERVATIONS || oldest === undefined) return true;
  reservations.delete(oldest[0]);
  oldest[1].close();
  return true;
}

function listening(name: string): Promise<Server | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(null));
    server.listen(name, () => resolve(server.unref()));
  });
}

/**
 * Ports of this machine that nobody listens on, below the range from which the system draws those of dialers and that of
 * `coterie up --port 0`. Files that run at once draw from ranges of their own: between finding a port and listening on it,
 * nobody else finds it.
 */
import { createServer } from "node:net";

export const FIRST = 5_000;
const PORTS_EACH = 600;
const RANGES = 8;
export const END = FIRST + RANGES * PORTS_EACH;

/** `fetch` asks nothing of these ports, whoever listens there: "bad port" of the fetch standard. */
export const REFUSED_BY_FETCH = new Set([5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697]);

/** Vitest numbers the workers that run at once from 1 on. */
const range = (Number(process.env.VITEST_POOL_ID ?? 1) - 1) % RANGES;
const first = FIRST + range * PORTS_EACH;
let next = Math.floor(Math.random() * PORTS_EACH);

export async function freePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let tried = 0; found.length < count && tried < PORTS_EACH; tried++) {
    next = (next + 1) % PORTS_EACH;
    const port = first + next; // Others may go on from there meanwhile.
    if (!REFUSED_BY_FETCH.has(port) && (await isFree(port))) found.push(port);
  }
  if (found.length === count) return found;
  throw new Error(`expected ${count} free ports from ${first} to ${first + PORTS_EACH - 1}, got ${found.length}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

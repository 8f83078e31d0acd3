/**
 * The ports of a local cluster. The base port is for the cluster's own pages, members start at base + 1, and their
 * admin pages start at base + 101. Listening on the base port reserves the range, so that two clusters cannot use the
 * same ports.
 */
import { createServer, type Server } from "node:http";
import { createServer as createProbe } from "node:net";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { MAX_PORT } from "../../runtime/host-port.ts";

/** The host used in all addresses of a local cluster. */
export const HOST = "127.0.0.1";
/** The maximum number of members in a local cluster. */
export const MAX_NODES = 64;

const ADMIN_OFFSET = 101;
/** Automatically chosen ranges begin at multiples of this, so that they do not overlap. */
const RANGE = 200;
/**
 * The lowest port that is chosen automatically. The range ends below the ports used for outgoing connections (32768 and
 * up on Linux), so that no other program can accidentally take a crashed member's port.
 */
const CHOOSE_FROM = 10_000;
const CHOOSE_BELOW = 32_768;
const ATTEMPTS = 50;

/** The ports for a local cluster. This process listens on the base port. */
export interface PortRange {
  readonly base: number;
  /** The server that listens on the base port. It has no request listener yet, so requests have to wait. */
  readonly server: Server;
}

/** Returns the port at which a member can be reached by the other members. */
export const memberPort = (base: number, node: NodeId): number => base + 1 + node;
/** Returns the port of a member's admin pages. */
export const adminPort = (base: number, node: NodeId): number => base + ADMIN_OFFSET + node;

/**
 * Reserves the range that begins at `base`, or any free range if `base` is 0.
 * @throws UsageError if the range would exceed the highest port; EnvironmentError if a port is in use
 */
export async function takePorts(base: number, nodes: number): Promise<PortRange> {
  if (base === 0) return takeAnyPorts(nodes);
  const last = adminPort(base, nodes - 1);
  if (last > MAX_PORT) {
    const highest = MAX_PORT - adminPort(0, nodes - 1);
    throw new UsageError("bad-argument", unexpected("--port", `at most ${highest} for ${nodes} members`, base));
  }
  const taken = await tryRange(base, nodes);
  if ("server" in taken) return taken;
  const { port, code } = taken;
  const why = code === "EADDRINUSE" ? "taken" : `not usable (${code})`;
  throw new EnvironmentError(
    "cannot-listen",
    `port ${port} is ${why}, and ${nodes === 1 ? "1 member needs" : `${nodes} members need`} ports ${base} to ${last}: stop the program that listens there, or choose other ports with --port (0: any free ports)`,
  );
}

async function takeAnyPorts(nodes: number): Promise<PortRange> {
  const slots = Math.floor((CHOOSE_BELOW - CHOOSE_FROM) / RANGE);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const range = await tryRange(CHOOSE_FROM + RANGE * Math.floor(Math.random() * slots), nodes);
    if ("server" in range) return range;
  }
  const text = `found no range of free ports in ${ATTEMPTS} attempts: choose one with --port`;
  throw new EnvironmentError("cannot-listen", text);
}

interface Obstacle {
  readonly port: number;
  readonly code: string;
}

async function tryRange(base: number, nodes: number): Promise<PortRange | Obstacle> {
  const server = createServer();
  const obstacle = await listen(server, base);
  if (obstacle !== null) return obstacle;
  const needed = Array.from({ length: nodes }, (_, node) => [memberPort(base, node), adminPort(base, node)]).flat();
  const found = (await Promise.all(needed.map(probe))).find((each) => each !== null);
  if (found === undefined) return { base, server };
  server.close();
  return found;
}

async function probe(port: number): Promise<Obstacle | null> {
  const server = createProbe();
  const obstacle = await listen(server, port);
  await new Promise((resolve) => server.close(resolve));
  return obstacle;
}

function listen(server: Server | ReturnType<typeof createProbe>, port: number): Promise<Obstacle | null> {
  return new Promise((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve({ port, code: error.code ?? error.message }));
    server.listen({ port, host: HOST, exclusive: true }, () => resolve(null));
  });
}

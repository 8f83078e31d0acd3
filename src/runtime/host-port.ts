/** An address as a program holds it, and as people write it. */
import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, with an IPv6 address in brackets. */
export const formatHostPort = ({ host, port }: HostPort): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;

export const MAX_PORT = 65_535;

const HOST_NAME = /^(?!-)[a-z\d_-]{1,63}(\.[a-z\d_-]{1,63})*$/i;

/** Null for anything else than `host:port`. Port 0 is let through: whether it makes sense depends on its use. */
export function parseHostPort(text: string): HostPort | null {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const [, bracketed, plain] = match;
  const port = Number(match[3]);
  const host = bracketed ?? plain ?? "";
  const sound = bracketed !== undefined ? isIPv6(host) : isName(host);
  return sound && port <= MAX_PORT ? { host, port } : null;
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/** Whether nobody outside this machine can reach the host. */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host.toLowerCase() === "localhost";
  return loopback.check(host, isIPv6(host) ? "ipv6" : "ipv4");
}

/** Whether it means all interfaces of a machine. */
export const isWildcard = (host: string): boolean => host === "0.0.0.0" || host === "::";

/** A name or an address, without a port. */
export const isHost = (text: string): boolean => isIPv6(text) || isName(text);

/** Digits and dots alone are an address or a slip of the pen, never a name. */
function isName(host: string): boolean {
  return /^[\d.]+$/.test(host) ? isIPv4(host) : host.length <= 253 && HOST_NAME.test(host);
}

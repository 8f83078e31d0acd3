/** Network addresses made up of a host and a port, and their text form. */
import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** An address. An IPv6 host is stored without brackets. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Returns `host:port`, with an IPv6 address in brackets. */
export const formatHostPort = ({ host, port }: HostPort): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;

export const MAX_PORT = 65_535;

const HOST_NAME = /^(?!-)[a-z\d_-]{1,63}(\.[a-z\d_-]{1,63})*$/i;

/**
 * Parses `host:port`. Returns null for anything else. Accepts port 0, since only the caller knows whether it makes
 * sense.
 */
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

/** Whether the host is reachable only from this machine. */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host.toLowerCase() === "localhost";
  return loopback.check(host, isIPv6(host) ? "ipv6" : "ipv4");
}

/** Whether the host is a wildcard address, which binds all of a machine's interfaces. */
export const isWildcard = (host: string): boolean => host === "0.0.0.0" || host === "::";

/** Whether the text is a host name or IP address, without a port. */
export const isHost = (text: string): boolean => isIPv6(text) || isName(text);

/** Whether the text is a host name. Text with only digits and dots is an IP address or a typo, never a host name. */
function isName(host: string): boolean {
  return /^[\d.]+$/.test(host) ? isIPv4(host) : host.length <= 253 && HOST_NAME.test(host);
}

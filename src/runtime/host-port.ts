/** An address as a program holds it, and as people write it. */
import { isIPv6 } from "node:net";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, with an IPv6 address in brackets. */
export const formatHostPort = ({ host, port }: HostPort): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;

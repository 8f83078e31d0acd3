/**
 * The place of a multicast group: its address, port and interface. Invalid values are rejected before anything is
 * opened.
 */
import { isIPv4 } from "node:net";
import { UsageError, unexpected } from "../../core/errors.ts";
import { isLoopback, MAX_PORT } from "../host-port.ts";
import type { DatagramGroup, Datagrams } from "../platform/platform.ts";

export interface UdpPlace {
  /** The multicast address that the members share. */
  readonly group: string;
  readonly port: number;
  /** The IPv4 address or name of the interface through which the other members are reached. */
  readonly interface: string;
  /**
   * The maximum number of routers that a datagram may pass through. Default: 1, which keeps it on the local network.
   */
  readonly ttl?: number;
  /** A secret shared by the members. It encrypts multicast messages, and processes without it cannot take part. */
  readonly key?: string | null;
  /**
   * Whether links are encrypted. `on`: multicast requires a key even on a loopback interface. `off`, if set explicitly:
   * members multicast without a key even if other machines can listen.
   */
  readonly tls?: "on" | "off" | null;
  /** The maximum size of a datagram. Larger messages are fragmented. */
  readonly maxDatagramBytes?: number;
}

export interface SettledPlace extends DatagramGroup {
  readonly key: string | null;
  readonly maxDatagramBytes: number;
}

/** The payload of an Ethernet frame, minus headers and room for a tunnel. */
const ETHERNET_DATAGRAM_BYTES = 1_400;
/** The datagram size on a loopback interface, which can carry 64 KiB at once. */
const LOOPBACK_DATAGRAM_BYTES = 65_000;
export const MIN_DATAGRAM_BYTES = 512;
const MIN_KEY_LENGTH = 16;
const MAX_TTL = 255;

/**
 * @param datagrams null if the platform does not support them
 * @throws UsageError if a field is invalid. The message names the field.
 */
export function settlePlace(place: UdpPlace, datagrams: Datagrams | null): SettledPlace {
  if (datagrams === null) throw refusal("expected no multicast, because this platform does not support datagrams");
  const { group, port, ttl = 1, key = null, tls = null } = place;
  requireGroup(group);
  requireWhole("port", port, 1, MAX_PORT);
  requireWhole("ttl", ttl, 0, MAX_TTL);
  const address = addressOf(place.interface, datagrams.interfaces());
  const isLocal = isLoopback(address);
  if (key === null && tls !== "off") requireAlone(address, tls);
  if (key !== null) requireKey(key);
  const { maxDatagramBytes = isLocal ? LOOPBACK_DATAGRAM_BYTES : ETHERNET_DATAGRAM_BYTES } = place;
  requireWhole("maxDatagramBytes", maxDatagramBytes, MIN_DATAGRAM_BYTES, LOOPBACK_DATAGRAM_BYTES);
  return { group, port, interface: address, ttl, key, maxDatagramBytes };
}

function requireGroup(group: string): void {
  const [first = 0, second, third] = isIPv4(group) ? group.split(".").map(Number) : [];
  const isReserved = first === 224 && second === 0 && third === 0;
  if (first >= 224 && first <= 239 && !isReserved) return;
  const hint = isReserved
    ? "routers and neighbors use 224.0.0.0 to 224.0.0.255 among themselves"
    : "239.0.0.0 to 239.255.255.255 are for use within a site";
  throw refusal(
    `${unexpected("multicast.group", "an IPv4 address from 224.0.1.0 to 239.255.255.255", group)}: ${hint}`,
  );
}

/** Without a key, multicast is only allowed if no other machine can listen or send. */
function requireAlone(address: string, tls: "on" | null): void {
  const secret = "set it to a secret that all members share";
  if (tls === "on")
    throw refusal(
      `expected multicast.key to be set, because "tls" protects only the links: without a key, any program that can reach ${address} can multicast as a member: ${secret}`,
    );
  if (!isLoopback(address))
    throw refusal(
      `expected multicast.key to be set, because other machines can read and forge the messages sent to ${address}: ${secret}, or "tls": "off" in a trusted network`,
    );
}

/** Requires a valid key. Error messages must not contain the key, because they end up in logs. */
function requireKey(key: unknown): void {
  if (typeof key !== "string")
    throw refusal(`expected multicast.key to be a string, got a value of type ${typeof key}`);
  if (key.length < MIN_KEY_LENGTH)
    throw refusal(
      `expected multicast.key to have at least ${MIN_KEY_LENGTH} characters, got ${key.length}: \`openssl rand -hex 32\` makes a good one`,
    );
}

function requireWhole(field: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw refusal(unexpected(`multicast.${field}`, `a whole number from ${least} to ${most}`, value));
}

function addressOf(wanted: string, known: ReturnType<Datagrams["interfaces"]>): string {
  const found = known.find(({ name, address }) => name === wanted || address === wanted);
  // All of 127.0.0.0/8 leads to the loopback interface, even if the address is not configured.
  if (found === undefined && isIPv4(wanted) && isLoopback(wanted)) return wanted;
  if (found !== undefined) return found.address;
  const there = known.map(({ name, address }) => `${name} (${address})`).join(", ");
  throw refusal(
    unexpected("multicast.interface", `the name or an IPv4 address of an interface of this machine: ${there}`, wanted),
  );
}

const refusal = (message: string): UsageError => new UsageError("bad-multicast", message);

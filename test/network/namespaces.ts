/**
 * Creates network namespaces connected by a bridge. To sockets, they look like separate machines. Requires root and
 * Linux. The bridge is in a namespace of its own: if the machine got new interfaces, browsers that other tests use would
 * abort their requests with ERR_NETWORK_CHANGED.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";

export interface Namespaces {
  /** The address of each namespace, by index. */
  readonly addresses: readonly string[];
  /** Returns the beginning of a command line that runs a command inside the namespace. */
  within(index: number): string[];
  /** Sets the host names that can be resolved in all namespaces, and their addresses. */
  name(hosts: Readonly<Record<string, string>>): void;
  /**
   * Sets whether the bridge forwards multicast to and from the namespaces, as a switch would. Everything else is always
   * forwarded.
   */
  forwardMulticast(forwards: boolean): void;
  close(): void;
}

/** @throws Error with the system's message if namespaces cannot be created */
export function namespaces(count: number): Namespaces {
  const tag = `ct${process.pid % 100_000}`;
  const bridge = `${tag}br`;
  const hub = `${tag}hub`;
  const subnet = `10.${200 + (process.pid % 50)}.77`;
  const names = Array.from({ length: count }, (_, index) => `${tag}n${index}`);
  const outer = (index: number): string => `${tag}v${index}`;
  const close = (): void => {
    for (const name of [...names, hub]) attempt("ip", "netns", "delete", name); // This also removes its interfaces.
    for (const name of names) rmSync(folderOf(name), { recursive: true, force: true });
  };
  try {
    run("ip", "netns", "add", hub);
    run("ip", "-n", hub, "link", "add", bridge, "type", "bridge", "mcast_snooping", "0");
    run("ip", "-n", hub, "link", "set", bridge, "up");
    for (const [index, name] of names.entries()) {
      run("ip", "netns", "add", name);
      mkdirSync(folderOf(name), { recursive: true });
      writeFileSync(hostsOf(name), "");
      run("ip", "-n", hub, "link", "add", outer(index), "type", "veth", "peer", "name", "eth0", "netns", name);
      run("ip", "-n", hub, "link", "set", outer(index), "master", bridge, "up");
      run("ip", "-n", name, "link", "set", "lo", "up");
      run("ip", "-n", name, "addr", "add", `${subnet}.${index + 1}/24`, "dev", "eth0");
      run("ip", "-n", name, "link", "set", "eth0", "up");
    }
  } catch (error) {
    close();
    throw error;
  }
  return {
    addresses: names.map((_, index) => `${subnet}.${index + 1}`),
    within: (index) => ["ip", "netns", "exec", names[index] as string],
    name(hosts) {
      const lines = Object.entries({ localhost: "127.0.0.1", ...hosts }).map(
        ([host, address]) => `${address} ${host}\n`,
      );
      for (const name of names) writeFileSync(hostsOf(name), lines.join("")); // The namespaces read this file directly.
    },
    forwardMulticast(forwards) {
      const flood = forwards ? "on" : "off";
      for (const index of names.keys()) {
        run("bridge", "-n", hub, "link", "set", "dev", outer(index), "mcast_flood", flood);
      }
    },
    close,
  };
}

/** `ip netns exec` uses this folder instead of /etc. */
const folderOf = (name: string): string => `/etc/netns/${name}`;
const hostsOf = (name: string): string => `${folderOf(name)}/hosts`;

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ["ignore", "ignore", "pipe"], timeout: 10_000 });
}

function attempt(command: string, ...args: string[]): void {
  try {
    run(command, ...args);
  } catch {
    // The namespace did not exist.
  }
}

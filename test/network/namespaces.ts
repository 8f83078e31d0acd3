/** Network namespaces joined by a bridge, which look like separate machines to sockets. Needs root and Linux. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";

export interface Namespaces {
  /** The address of each, by number from 0. */
  readonly addresses: readonly string[];
  /** A command that runs another within the namespace. */
  within(index: number): string[];
  /** From now on, exactly these names resolve to these addresses within all namespaces. */
  name(hosts: Readonly<Record<string, string>>): void;
  /** Whether the bridge forwards multicast to and from the namespaces, as a switch would. It always forwards everything else. */
  forwardMulticast(forwards: boolean): void;
  close(): void;
}

/** @throws Error with the system's message if namespaces are impossible */
export function namespaces(count: number): Namespaces {
  const tag = `ct${process.pid % 100_000}`;
  const bridge = `${tag}br`;
  const subnet = `10.${200 + (process.pid % 50)}.77`;
  const names = Array.from({ length: count }, (_, index) => `${tag}n${index}`);
  const outer = (index: number): string => `${tag}v${index}`;
  const close = (): void => {
    for (const name of names) attempt("ip", "netns", "delete", name); // This removes its end of the cable as well.
    for (const name of names) rmSync(folderOf(name), { recursive: true, force: true });
    for (const index of names.keys()) attempt("ip", "link", "delete", outer(index));
    attempt("ip", "link", "delete", bridge);
  };
  try {
    run("ip", "link", "add", bridge, "type", "bridge", "mcast_snooping", "0");
    run("ip", "link", "set", bridge, "up");
    for (const [index, name] of names.entries()) {
      run("ip", "netns", "add", name);
      mkdirSync(folderOf(name), { recursive: true });
      writeFileSync(hostsOf(name), "");
      run("ip", "link", "add", outer(index), "type", "veth", "peer", "name", "eth0", "netns", name);
      run("ip", "link", "set", outer(index), "master", bridge, "up");
      const inside = ["netns", "exec", name, "ip"];
      run("ip", ...inside, "link", "set", "lo", "up");
      run("ip", ...inside, "addr", "add", `${subnet}.${index + 1}/24`, "dev", "eth0");
      run("ip", ...inside, "link", "set", "eth0", "up");
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
      for (const name of names) writeFileSync(hostsOf(name), lines.join("")); // The namespaces see the file itself.
    },
    forwardMulticast(forwards) {
      const flood = forwards ? "on" : "off";
      for (const index of names.keys()) run("bridge", "link", "set", "dev", outer(index), "mcast_flood", flood);
    },
    close,
  };
}

/** `ip netns exec` uses this folder in place of /etc. */
const folderOf = (name: string): string => `/etc/netns/${name}`;
const hostsOf = (name: string): string => `${folderOf(name)}/hosts`;

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ["ignore", "ignore", "pipe"], timeout: 10_000 });
}

function attempt(command: string, ...args: string[]): void {
  try {
    run(command, ...args);
  } catch {
    // It did not exist.
  }
}

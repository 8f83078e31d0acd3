/** Runs the same tests on the real platform and on the simulated one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { random } from "../../src/core/random.ts";
import type { HostPort } from "../../src/runtime/host-port.ts";
import type { Platform } from "../../src/runtime/platform/platform.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { SimulatedDisk } from "../../src/testing/simulated-disk.ts";
import { SimulatedNetwork } from "../../src/testing/simulated-network.ts";
import { SimulatedProcess } from "../../src/testing/simulated-process.ts";
import { VirtualTime } from "../../src/testing/virtual-time.ts";
import { freePorts } from "../network/free-ports.ts";
import { PATIENCE_MS } from "../patience.ts";

export interface Ground {
  /** The platforms of nodes 0 and 1. */
  readonly platforms: readonly [Platform, Platform];
  readonly addresses: readonly [HostPort, HostPort];
  /** An address that refuses connections. */
  readonly refusing: HostPort;
  /** A folder that both can reach, and that does not exist yet. */
  readonly folder: string;
  /** Sleeps according to the platform's own clock. */
  sleep(ms: number): Promise<void>;
  /** Waits until the check no longer throws. */
  until(check: () => void): Promise<void>;
  /** Closes the resource when the test ends. The last opened resource closes first. */
  closing<T extends { close(): unknown }>(opened: T): T;
}

/** The body of one test. It runs in the platform's time. */
type Body = (ground: Ground) => void | Promise<void>;

export const grounds: readonly { readonly name: string; on(body: Body): () => Promise<void> }[] = [
  { name: "real", on: (body) => () => onReal(body) },
  { name: "simulated", on: (body) => () => onSimulated(body) },
];

type Surroundings = Pick<Ground, "platforms" | "addresses" | "refusing" | "folder" | "sleep">;

async function closingAll(body: Body, { sleep, ...others }: Surroundings): Promise<void> {
  const open: { close(): unknown }[] = [];
  try {
    await body({
      ...others,
      sleep,
      async until(check) {
        for (let waitedMs = 0; ; waitedMs += 2) {
          try {
            return check();
          } catch (error) {
            if (waitedMs > PATIENCE_MS) throw error;
            await sleep(2);
          }
        }
      },
      closing(opened) {
        open.push(opened);
        return opened;
      },
    });
  } finally {
    for (const opened of open.reverse()) await opened.close();
  }
}

async function onReal(body: Body): Promise<void> {
  const [first, second, third] = (await freePorts(3)) as [number, number, number];
  const around = mkdtempSync(join(tmpdir(), "coterie-platform-"));
  try {
    await closingAll(body, {
      platforms: [realPlatform, realPlatform],
      addresses: [
        { host: "127.0.0.1", port: first },
        { host: "127.0.0.1", port: second },
      ],
      refusing: { host: "127.0.0.1", port: third },
      folder: join(around, "data"),
      sleep: (ms) => sleep(ms),
    });
  } finally {
    rmSync(around, { recursive: true, force: true });
  }
}

/** Runs the body in two simulated processes on two machines that share one disk. */
function onSimulated(body: Body): Promise<void> {
  const time = new VirtualTime();
  const chance = random(1);
  const disk = new SimulatedDisk({}, chance);
  const machines = [0, 1].map((id) => ({ id, host: `10.0.0.${id + 1}`, isUp: true }));
  const network = new SimulatedNetwork(time, machines, chance);
  const [first, second] = machines.map((machine): [Platform, HostPort] => {
    const process = new SimulatedProcess(time, { speed: 1, aheadMs: 0 }, chance.stream(`${machine.id}`));
    const { clock, timers, random } = process;
    const own = { network: network.of(machine, process), disk: disk.of(process) };
    return [
      { clock, timers, random, ...own, datagrams: null },
      { host: machine.host, port: 7_100 },
    ];
  }) as [[Platform, HostPort], [Platform, HostPort]];
  const surroundings: Surroundings = {
    platforms: [first[0], second[0]],
    addresses: [first[1], second[1]],
    refusing: { ...second[1], port: 7_200 },
    folder: "data",
    sleep: (ms) => new Promise((resolve) => void time.after(ms, resolve)),
  };
  return time.drive(() => closingAll(body, surroundings), 1e7);
}

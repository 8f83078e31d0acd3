/**
 * Runs ip-multicast over real datagrams in separate processes: on the loopback interface with lost, duplicated and
 * reordered datagrams, and between network namespaces. COTERIE_SOAK=200 makes it long: a million messages in total, and
 * a pause of ten seconds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { noFaults } from "../../src/runtime/fault-injector.ts";
import type { UdpPlace } from "../../src/runtime/transport/udp-place.ts";
import { freePorts } from "../network/free-ports.ts";
import { type Namespaces, namespaces } from "../network/namespaces.ts";
import { PATIENCE_MS } from "../patience.ts";
import { TSX, until } from "./cluster-under-test.ts";
import type { Being, Order, Report, Told } from "./multicast-process.ts";

const TOTAL = 5_000 * Number(process.env.COTERIE_SOAK ?? 6);
/** The number of messages from each of the three senders. */
const COUNT = Math.ceil(TOTAL / 3);
const PAUSE_MS = TOTAL > 100_000 ? 10_000 : 500;
/** Generous but bounded. Scales with the part of a long run that losses slow down most. */
const TIMEOUT_MS = PATIENCE_MS + TOTAL * 2;
/** The messages that a member may send before the first is stable. With many losses, a larger window is faster. */
const WINDOW = 4_096;
const MIB = 2 ** 20;
const ETHERNET_BYTES = 1_400;
const GROUP = "239.192.4.1";

const folder = mkdtempSync(join(tmpdir(), "coterie-udp-"));
const program = fileURLToPath(new URL("multicast-process.ts", import.meta.url));
const running = new Set<Member>();

afterEach(() => {
  for (const member of running) member.kill();
  running.clear();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One member in a separate process. */
class Member {
  readonly lines: string[] = [];
  reached: readonly number[] = [];
  isOpen = false;
  stderr = "";
  #told: ((told: Told) => void)[] = [];
  readonly #child: ChildProcess;

  constructor(
    readonly self: number,
    being: Omit<Being, "self">,
    within: readonly string[] = [],
  ) {
    const [command, ...args] = [
      ...within,
      process.execPath,
      "--import",
      TSX,
      program,
      JSON.stringify({ ...being, self }),
    ];
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      const report = JSON.parse(line) as Report;
      if (report.kind === "open") this.isOpen = true;
      else if (report.kind === "log") this.lines.push(report.line);
      else if (report.kind === "reached") this.reached = report.peers;
      else for (const told of this.#told.splice(0)) told(report);
    });
    running.add(this);
  }

  order(order: Order): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  tell(): Promise<Told> {
    return new Promise((resolve) => {
      this.#told.push(resolve);
      this.order({ do: "tell" });
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  kill(): void {
    this.signal("SIGKILL");
  }
}

async function begun(count: number, hosts: readonly string[], place: UdpPlace, within?: Namespaces): Promise<Member[]> {
  const ports = await freePorts(count);
  const at = (self: number) => ({ host: hosts[self % hosts.length] as string, port: ports[self] as number });
  const members = Object.fromEntries(Array.from({ length: count }, (_, self) => [self, at(self)]));
  const placeOf = (self: number): UdpPlace => ({ ...place, interface: at(self).host });
  const group = Array.from({ length: count }, (_, self) => {
    return new Member(self, { members, place: placeOf(self), window: WINDOW }, within?.within(self));
  });
  await until("all members are open", () => group.every(({ isOpen, stderr }) => isOpen || stderr !== ""));
  expect(group.map(({ stderr }) => stderr).join("")).toBe("");
  return group;
}

const allReached = (group: readonly Member[]): Promise<true> =>
  until("all members hear each other", () => group.every(({ reached }) => reached.length === group.length - 1) || null);

const loopback = async (): Promise<UdpPlace> => {
  const [port] = await freePorts(1);
  return { group: GROUP, port: port as number, interface: "127.0.0.1", maxDatagramBytes: ETHERNET_BYTES };
};

/**
 * Waits until every member has delivered all numbers of the senders in order, and knows that all members have received
 * its own.
 */
async function allDelivered(group: readonly Member[], senders: readonly number[], count: number): Promise<Told[]> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (;;) {
    const told = await Promise.all(group.map((member) => member.tell()));
    expect(told.map(({ outOfOrder }) => outOfOrder)).toEqual(group.map(() => 0));
    const wanted = Object.fromEntries(senders.map((sender) => [sender, count]));
    const isDone = told.every(({ delivered, isStable }) => isStable && isEqual(delivered, wanted));
    if (isDone) return told;
    if (performance.now() > deadline) expect(told.map(({ delivered }) => delivered)).toEqual(group.map(() => wanted));
    await sleep(100);
  }
}

const isEqual = (one: Record<number, number>, other: Record<number, number>): boolean =>
  Object.keys(one).length === Object.keys(other).length &&
  Object.entries(other).every(([key, value]) => one[Number(key)] === value);

function expectBounded(told: readonly Told[]): void {
  for (const { mostHeapBytes, mostRssBytes } of told) {
    expect(mostHeapBytes).toBeLessThan(100 * MIB);
    expect(mostRssBytes).toBeLessThan(300 * MIB);
  }
}

function say(what: string, began: number, told: readonly Told[]): void {
  const mib = (bytes: number): string => (bytes / MIB).toFixed(0);
  const memory = told.map(({ mostHeapBytes, mostRssBytes }) => `${mib(mostHeapBytes)}/${mib(mostRssBytes)}`).join(", ");
  const datagrams = told.map(({ datagrams: { sent } }) => sent).join(" + ");
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  console.log(`${what}: ${seconds} s, datagrams ${datagrams}, most heap/resident MiB ${memory}`);
}

describe(`three processes that multicast ${TOTAL} messages`, () => {
  test.each([0.01, 0.1, 0.3])(
    "deliver all, in order, once, with %d of datagrams lost, duplicated and reordered",
    { tags: ["long"] },
    async (rate) => {
      const group = await begun(3, ["127.0.0.1"], await loopback());
      await allReached(group);
      const datagrams = { dropRate: rate, duplicateRate: rate, reorderRate: rate };
      for (const member of group) member.order({ do: "fault", faults: { ...noFaults, datagrams } });
      const began = performance.now();
      for (const member of group) member.order({ do: "send", count: COUNT, batch: 1 });
      const told = await allDelivered(group, [0, 1, 2], COUNT);
      say(`${rate * 100} %`, began, told);
      expectBounded(told);
    },
  );

  test("wait for a paused one, within bounds, and it catches up", async () => {
    const group = (await begun(3, ["127.0.0.1"], await loopback())) as [Member, Member, Member];
    await allReached(group);
    group[2].signal("SIGSTOP");
    const began = performance.now();
    for (const member of group) member.order({ do: "send", count: COUNT, batch: 1 });
    const own = async (): Promise<number | undefined> => (await group[0].tell()).delivered[0];
    await until("a sender has used its whole window", async () => (await own()) === WINDOW);
    await sleep(PAUSE_MS);
    expect(await own()).toBe(WINDOW); // The window is full, so they wait.
    group[2].signal("SIGCONT");
    const told = await allDelivered(group, [0, 1, 2], COUNT);
    say(`a pause of ${PAUSE_MS} ms`, began, told);
    expectBounded(told);
  });
});

/** The reason why network namespaces are impossible here, or null. */
const impossible = ((): string | null => {
  try {
    namespaces(1).close();
    return null;
  } catch (error) {
    return `no network namespaces: ${(error as Error).message.trim()}`;
  }
})();
if (impossible !== null) console.log(`skipped: ${impossible}`);

describe.skipIf(impossible !== null)("between network namespaces", () => {
  let net: Namespaces;
  afterEach(() => net?.close());

  /** Starts members, each in its own namespace. */
  async function apart(count: number): Promise<Member[]> {
    net = namespaces(count);
    const [port] = await freePorts(1);
    const place = { group: GROUP, port: port as number, interface: "eth0", key: "a secret of the members" };
    return begun(count, net.addresses, place, net);
  }

  test.each([2, 3])("%i members multicast in datagrams that Ethernet carries", async (count) => {
    const group = await apart(count);
    await allReached(group);
    for (const member of group) member.order({ do: "send", count: 5_000, batch: 500 });
    const told = await allDelivered(group, [...group.keys()], 5_000);
    for (const { datagrams } of told) {
      expect(datagrams.sent).toBeGreaterThan(10); // Ten messages take two datagrams each.
      expect(datagrams.received).toBeGreaterThan(10 * (count - 1));
      expect(datagrams.unsent).toBe(0);
    }
    expect(group.flatMap(({ lines }) => lines)).toEqual([]);
  });

  test("the log names a switch that does not forward multicast, and messages go over TCP until it does", {
    tags: ["long"],
  }, async () => {
    const group = await apart(3);
    await allReached(group);
    net.forwardMulticast(false);
    await until("no member receives any message", () => group.every(({ reached }) => reached.length === 0));
    await until("the members report it", () => group.every(({ lines }) => lines.length > 0));
    for (const { lines } of group) expect(lines.join("\n")).toMatch(/through .* does not reach nodes? \d/);
    for (const member of group) member.order({ do: "send", count: 2_000, batch: 50 });
    const told = await allDelivered(group, [0, 1, 2], 2_000);
    net.forwardMulticast(true);
    await allReached(group);
    for (const { lines } of group) expect(lines.join("\n")).toMatch(/multicast to node \d works again/);
    for (const member of group) member.order({ do: "send", count: 2_000, batch: 50 });
    const after = await allDelivered(group, [0, 1, 2], 4_000);
    for (const [self, { datagrams }] of after.entries())
      expect(datagrams.received).toBeGreaterThan((told[self] as Told).datagrams.received);
  });
});

/** Members with channels in separate processes. Tests start, kill, pause and cut off these processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { transformWithOxc } from "vite";
import type { JoinOptions } from "../../src/cluster/services/api.ts";
import type { DatagramFaults } from "../../src/runtime/fault-injector.ts";
import { freePorts } from "../network/free-ports.ts";
import { type Overheard, overhear } from "../network/udp-under-test.ts";
import type { Order, Report } from "./channel-process.ts";
import { PACKAGE, until } from "./cluster-under-test.ts";

type Said<S extends Report["kind"]> = Extract<Report, { kind: S }>;

/** The number of characters kept from the end of a process's stderr. */
const MAX_COMPLAINTS = 4_000;

/** A process that runs members one after another. */
class MemberProcess {
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  hasExited = false;
  /** How the process ended, if the test did not request it. */
  fault: string | null = null;
  current: ChannelMember | null = null;
  #isExpectedToEnd = false;

  constructor(
    program: string,
    readonly packageUrl: string,
  ) {
    const child = spawn(process.execPath, [program, packageUrl], { stdio: "pipe" });
    this.#child = child;
    let complaints = "";
    child.stderr.on("data", (chunk: Buffer) => {
      complaints = `${complaints}${chunk.toString()}`.slice(-MAX_COMPLAINTS);
    });
    child.stdin?.on("error", () => {}); // The process may have been killed.
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.current?.reports.push(JSON.parse(line) as Report);
    });
    this.exited = new Promise((resolve) => {
      child.on("close", (code, signal) => {
        this.hasExited = true;
        if (!this.#isExpectedToEnd) this.fault = `ended by itself (${signal ?? code}): ${complaints}`;
        resolve(code);
      });
    });
  }

  order(order: Order): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  end(): void {
    this.#isExpectedToEnd = true;
    this.#child.stdin?.end();
  }

  signal(name: NodeJS.Signals): void {
    if (name === "SIGKILL") this.#isExpectedToEnd = true;
    this.#child.kill(name);
  }
}

/** One run of a member, from its start until it leaves or is killed. */
export class ChannelMember {
  readonly reports: Report[] = [];
  /** The number of send orders. */
  #asked = 0;

  constructor(
    readonly id: number,
    readonly admin: string,
    readonly process: MemberProcess,
  ) {
    process.current = this;
  }

  order(order: Order): void {
    if (order.do === "send") this.#asked += 1;
    this.process.order(order);
  }

  /** Resolves with the first matching report of that kind. */
  said<S extends Report["kind"]>(said: S, fits: (report: Said<S>) => boolean = () => true): Promise<Said<S>> {
    return until(`member ${this.id} says ${said}`, () => this.all(said).find(fits) ?? null);
  }

  all<S extends Report["kind"]>(said: S): Said<S>[] {
    return this.reports.filter((report): report is Said<S> => report.kind === said);
  }

  /** The payloads that the member has delivered on a channel, in order. */
  payloads(name: string): string[] {
    return this.all("delivered").flatMap((report) => (report.name === name ? [report.payload] : []));
  }

  /** Waits until all messages of this run are settled, whether they succeeded or failed. */
  async settled(): Promise<void> {
    await until(`all that ${this.id} has sent is settled`, () => this.all("sent").length === this.#asked);
  }

  /** @throws Error if the process has ended by itself */
  get isUp(): boolean {
    if (this.process.fault !== null) throw new Error(`member ${this.id} ${this.process.fault}`);
    return !this.process.hasExited && this.process.current === this && this.all("left").length === 0;
  }
}

export class ChannelMembers {
  /** All runs, in chronological order. */
  readonly runs: ChannelMember[] = [];
  readonly ids: readonly number[];
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-channels-"));
  readonly #program = join(this.#folder, "channel-process.mjs");
  readonly #processes = new Map<number, MemberProcess>();
  #members: Readonly<Record<number, string>> = {};
  #admins: ReadonlyMap<number, string> = new Map();
  #multicast: JoinOptions["multicast"];
  #overheard: Overheard | null = null;
  #cluster = 0;
  #bursts = 0;

  private constructor(count: number) {
    this.ids = Array.from({ length: count }, (_, index) => index + 1);
  }

  static async of(count: number): Promise<ChannelMembers> {
    const members = new ChannelMembers(count);
    const source = fileURLToPath(new URL("channel-process.ts", import.meta.url));
    writeFileSync(members.#program, (await transformWithOxc(readFileSync(source, "utf8"), source)).code);
    await members.renew();
    return members;
  }

  /** Starts a new cluster in the running processes. The previous cluster ends. */
  async renew(): Promise<void> {
    for (const { process } of this.up) process.order({ do: "leave" });
    await Promise.all(this.up.map((member) => member.said("left")));
    const [port = 0, ...ports] = await freePorts(2 * this.ids.length + 1);
    this.#multicast = { group: "239.45.67.89", port, interface: "127.0.0.1" };
    await this.#overheard?.close();
    this.#overheard = await overhear(this.#multicast);
    this.#members = Object.fromEntries(this.ids.map((id) => [id, `127.0.0.1:${ports[2 * id - 2]}`]));
    this.#admins = new Map(this.ids.map((id) => [id, `127.0.0.1:${ports[2 * id - 1]}`]));
    this.runs.length = 0;
    this.#cluster += 1;
  }

  /** The latest run of a member. */
  at(id: number): ChannelMember {
    return this.runs.findLast((run) => run.id === id) as ChannelMember;
  }

  get up(): ChannelMember[] {
    return this.ids.flatMap((id) => (this.at(id)?.isUp ? [this.at(id)] : []));
  }

  /** Starts a member, or restarts it with its journal. A member of a different release gets its own process. */
  async start(id: number, packageUrl = PACKAGE): Promise<ChannelMember> {
    const admin = this.#admins.get(id) as string;
    const dataDir = join(this.#folder, `data-${this.#cluster}-${id}`);
    mkdirSync(dataDir, { recursive: true });
    const member = new ChannelMember(id, `http://${admin}`, this.#process(id, packageUrl));
    this.runs.push(member);
    const who = { id, cluster: `test ${this.#cluster}`, members: this.#members, multicast: this.#multicast };
    member.order({ do: "join", options: { ...who, dataDir, admin, faultInjector: true } });
    await until(`member ${id} joins`, () => member.isUp && member.all("joined").length > 0);
    return member;
  }

  startAll(): Promise<ChannelMember[]> {
    return Promise.all(this.ids.map((id) => this.start(id)));
  }

  /** Makes a member send this many unique payloads. Each consists of the returned prefix and a number. */
  send(member: ChannelMember, name: string, count: number): string {
    this.#bursts += 1;
    const prefix = `${this.#bursts} of ${member.id}`;
    member.order({ do: "send", name, prefix, count });
    return prefix;
  }

  /**
   * Joins all running members and makes each send one more message. When all have delivered all of these, no earlier
   * message is in transit. If the group changes in between, a member may have been excluded, and the round is repeated.
   */
  async lastRound(name: string): Promise<void> {
    const { up } = this;
    const view = (member: ChannelMember) => latestView(member, name)?.view;
    for (let isOver = false; !isOver; ) {
      await together(up, name);
      const before = up.map(view);
      const last = up.map((member) => `${this.send(member, name, 1)} 1`);
      const lacking = () => up.filter((member) => !last.every((payload) => member.payloads(name).includes(payload)));
      await until(
        () => `members ${lacking().map(({ id }) => id)} have the last messages of all`,
        () => lacking().length === 0 || up.some((member, k) => view(member) !== before[k]),
      );
      isOver = lacking().length === 0;
    }
    for (const member of up) await member.settled();
    const had = (member: ChannelMember): string => {
      const there = member.all("delivered").filter((message) => message.name === name && message.view === view(member));
      return there
        .map(({ id }) => id)
        .sort()
        .join();
    };
    await until("those who are together have been delivered the same", () => new Set(up.map(had)).size === 1);
  }

  /**
   * Joins all running members. They send until each has multicast a message and received one from every other member,
   * and until a message was dropped if drops are configured. Without this check, links alone could deliver everything.
   */
  async allMulticast(name: string): Promise<void> {
    const { up } = this;
    await together(up, name);
    let lacks: readonly string[] = [];
    await until(
      () => `datagrams carry messages, but ${lacks.join(", ")}`,
      async () => {
        lacks = await this.#lacks(up);
        if (lacks.length > 0) for (const member of up) this.send(member, name, 1);
        for (const member of up) await member.settled();
        return lacks.length === 0;
      },
    );
  }

  async #lacks(up: readonly ChannelMember[]): Promise<string[]> {
    const pages = await Promise.all(up.map(async ({ admin }) => (await fetch(`${admin}/metrics`)).text()));
    const counts = (metric: string) => pages.map((page) => new RegExp(`^${metric} [1-9]`, "m").test(page));
    const heard = counts("coterie_datagrams_received_total");
    const isLossy = (this.besides.datagrams?.dropRate ?? 0) > 0;
    const hasDropped = counts('coterie_messages_lost_total\\{reason="dropped"\\}').includes(true);
    return [
      ...up.flatMap(({ id }) => (this.#overheard?.carriers.has(id) ? [] : [`${id} has multicast nothing`])),
      ...up.flatMap(({ id }, k) => (heard[k] ? [] : [`${id} has heard nothing`])),
      ...(isLossy && !hasDropped ? ["none was dropped"] : []),
    ];
  }

  async kill(id: number): Promise<void> {
    const { process } = this.at(id);
    process.signal("SIGKILL");
    await process.exited;
  }

  /** Cuts all links between these groups. Without arguments, heals all links. */
  async partition(...groups: readonly (readonly number[])[]): Promise<void> {
    const cutTo = (id: number): number[] => groups.filter((group) => !group.includes(id)).flat();
    const cuts = this.up.map((member) => ({ member, cutTo: groups.length === 0 ? [] : cutTo(member.id) }));
    await Promise.all(cuts.map(({ member, cutTo: nodes }) => disturb(member, { cutTo: nodes, ...this.besides })));
  }

  /** Additional faults. They take effect the next time that links are cut or healed. */
  besides: { readonly datagrams?: DatagramFaults } = {};

  async close(): Promise<void> {
    const processes = [...this.#processes.values()];
    for (const process of processes) if (!process.hasExited) process.signal("SIGKILL");
    await Promise.all(processes.map(({ exited }) => exited));
    await this.#overheard?.close();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #process(id: number, packageUrl: string): MemberProcess {
    const known = this.#processes.get(id);
    if (known !== undefined && !known.hasExited) {
      if (known.packageUrl === packageUrl) return known;
      known.end();
    }
    const process = new MemberProcess(this.#program, packageUrl);
    this.#processes.set(id, process);
    return process;
  }
}

async function disturb({ id, admin }: ChannelMember, faults: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${admin}/faults`, { method: "PUT", headers, body: JSON.stringify(faults) });
  if (!answer.ok) throw new Error(`member ${id} takes no faults: ${answer.status}`);
}

/** Resolves once the latest view of each of these members contains exactly them. */
export async function together(those: readonly ChannelMember[], name: string): Promise<void> {
  const wanted = those.map(({ id }) => id).join();
  for (const member of those)
    await until(
      () => {
        const last = those.map(({ id, reports }) => `${id}: ${JSON.stringify(reports.filter(isView).slice(-4))}`);
        return `member ${member.id} is in a view of ${wanted}. The last views of each:\n${last.join("\n")}`;
      },
      () => {
        const view = latestView(member, name);
        return view?.state === "member" && view.members.join() === wanted;
      },
    );
}

const isView = ({ kind }: Report): boolean => kind === "view";

export const latestView = (member: ChannelMember, name: string) =>
  member.all("view").findLast((view) => view.name === name);

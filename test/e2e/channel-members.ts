/** Members with channels, each in a process of its own: started, killed, paused and cut off as a test likes. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transformWithOxc } from "vite";
import type { JoinOptions } from "../../src/cluster/services/api.ts";
import type { DatagramFaults } from "../../src/runtime/fault-gate.ts";
import { freePorts } from "../network/free-ports.ts";
import type { Order, Report } from "./channel-process.ts";
import { CLI, until } from "./cluster-under-test.ts";

const packageUrl = pathToFileURL(join(CLI, "..", "..", "index.js")).href;

type Said<S extends Report["said"]> = Extract<Report, { said: S }>;

/** One process, which is one member after the other. */
class MemberProcess {
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  hasExited = false;
  current: ChannelMember | null = null;

  constructor(program: string) {
    const child = spawn(process.execPath, [program, packageUrl], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    child.stdin?.on("error", () => {}); // It has been killed meanwhile.
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.current?.reports.push(JSON.parse(line) as Report);
    });
    this.exited = new Promise((resolve) => child.on("close", resolve));
    void this.exited.then(() => {
      this.hasExited = true;
    });
  }

  order(order: Order): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  end(): void {
    this.#child.stdin?.end();
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }
}

/** One run of one member: from its start until it leaves or is killed. */
export class ChannelMember {
  readonly reports: Report[] = [];

  constructor(
    readonly id: number,
    readonly admin: string,
    readonly process: MemberProcess,
  ) {
    process.current = this;
  }

  order(order: Order): void {
    this.process.order(order);
  }

  /** The first report of that kind that fits, once it is there. */
  said<S extends Report["said"]>(said: S, fits: (report: Said<S>) => boolean = () => true): Promise<Said<S>> {
    return until(`member ${this.id} says ${said}`, () => this.all(said).find(fits) ?? null);
  }

  all<S extends Report["said"]>(said: S): Said<S>[] {
    return this.reports.filter((report): report is Said<S> => report.said === said);
  }

  /** What it has delivered of a channel, in order. */
  payloads(name: string): string[] {
    return this.all("delivered").flatMap((report) => (report.name === name ? [report.payload] : []));
  }

  get isUp(): boolean {
    return !this.process.hasExited && this.process.current === this && this.all("left").length === 0;
  }
}

export class ChannelMembers {
  /** Every run there was, in order. */
  readonly runs: ChannelMember[] = [];
  readonly ids: readonly number[];
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-channels-"));
  readonly #program = join(this.#folder, "channel-process.mjs");
  readonly #processes = new Map<number, MemberProcess>();
  #members: Readonly<Record<number, string>> = {};
  #admins: ReadonlyMap<number, string> = new Map();
  #multicast: JoinOptions["multicast"];
  #cluster = 0;

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

  /** A cluster that has never been, of the processes that run; the one that is ends. */
  async renew(): Promise<void> {
    for (const { process } of this.up) process.order({ do: "leave" });
    await Promise.all(this.up.map((member) => member.said("left")));
    const [port = 0, ...ports] = await freePorts(2 * this.ids.length + 1);
    this.#multicast = { group: "239.45.67.89", port, interface: "127.0.0.1" };
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

  /** Starts a member, or starts it again with the journal that it has left. */
  async start(id: number): Promise<ChannelMember> {
    const admin = this.#admins.get(id) as string;
    const dataDir = join(this.#folder, `data-${this.#cluster}-${id}`);
    mkdirSync(dataDir, { recursive: true });
    const member = new ChannelMember(id, `http://${admin}`, this.#process(id));
    this.runs.push(member);
    const who = { id, cluster: `test ${this.#cluster}`, members: this.#members, multicast: this.#multicast };
    member.order({ do: "join", options: { ...who, dataDir, admin, faultGate: true } });
    await member.said("joined");
    return member;
  }

  startAll(): Promise<ChannelMember[]> {
    return Promise.all(this.ids.map((id) => this.start(id)));
  }

  async kill(id: number): Promise<void> {
    const { process } = this.at(id);
    process.signal("SIGKILL");
    await process.exited;
  }

  /** Cuts all links between these groups; without groups at all, links are whole. */
  async partition(...groups: readonly (readonly number[])[]): Promise<void> {
    const cutTo = (id: number): number[] => groups.filter((group) => !group.includes(id)).flat();
    const cuts = this.up.map((member) => ({ member, cutTo: groups.length === 0 ? [] : cutTo(member.id) }));
    await Promise.all(cuts.map(({ member, cutTo: nodes }) => disturb(member, { cutTo: nodes, ...this.besides })));
  }

  /** Faults that there are besides cuts, from the next time that links are cut or made whole. */
  besides: { readonly datagrams?: DatagramFaults } = {};

  async close(): Promise<void> {
    const processes = [...this.#processes.values()];
    for (const process of processes) if (!process.hasExited) process.signal("SIGKILL");
    await Promise.all(processes.map(({ exited }) => exited));
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #process(id: number): MemberProcess {
    const known = this.#processes.get(id);
    if (known !== undefined && !known.hasExited) return known;
    const process = new MemberProcess(this.#program);
    this.#processes.set(id, process);
    return process;
  }
}

async function disturb({ id, admin }: ChannelMember, faults: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${admin}/faults`, { method: "PUT", headers, body: JSON.stringify(faults) });
  if (!answer.ok) throw new Error(`member ${id} takes no faults: ${answer.status}`);
}

/** Resolves once these, and no others, are in the latest view of each of them. */
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

const isView = ({ said }: Report): boolean => said === "view";

export const latestView = (member: ChannelMember, name: string) =>
  member.all("view").findLast((view) => view.name === name);

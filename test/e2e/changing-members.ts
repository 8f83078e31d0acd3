/**
 * Members of a cluster in separate processes. A test adds, removes, replaces, moves, restarts and disturbs them while
 * clients work.
 */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Random } from "../../src/core/random.ts";
import type { ClusterMember, JoinOptions } from "../../src/index.ts";
import { coterie } from "../commands/run-here.ts";
import { freePorts } from "../network/free-ports.ts";
import { PACKAGE, ScriptUnderTest, until } from "./cluster-under-test.ts";
import { Conversation } from "./conversation.ts";

const FOUNDERS = [1, 2, 3];
const MOST_VOTERS = 5;
const FEWEST_VOTERS = 3;
/** How long a fault lasts: about a heartbeat, or several elections. */
const LASTS_MS = [30, 1_500] as const;
/** The average duration of a sync on a slow disk. Leases last 0.4 s. */
const SLOW_SYNC_MS = 60;
const SLOW_FOR_MS = 2_000;
/** The largest error of a clock. Leases allow for 5 %. */
const DRIFT = 0.04;
const MACHINE = new URL("./faulty-machine.js", import.meta.url);
const PROGRAM = fileURLToPath(new URL("./speaking-member.js", import.meta.url));
/** The disk size of a member, if it can have a disk of its own. */
const DISK_BYTES = 64 << 20;

export const deeds = [
  ...(["kill", "kill the leader", "kill all", "pause", "pause the leader", "cut off", "cut the leader off"] as const),
  ...(["slow disk", "clock rates"] as const),
  ...(["restart one by one", "upgrade one by one", "full disk", "save a snapshot", "transfer"] as const),
  ...(["add", "add a learner", "remove", "remove the leader", "replace", "move"] as const),
];
export type Deed = (typeof deeds)[number];

interface Ports {
  readonly peer: number;
  readonly admin: number;
  readonly clients: number;
}

export class ChangingMembers {
  readonly #folder = mkdtempSync(join(tmpdir(), "coterie-members-"));
  readonly #draw: Random;
  readonly #running = new Map<number, ScriptUnderTest>();
  /** The name of each process. */
  readonly #names = new Map<number, string>();
  /**
   * Located in the folder of the later release, whose `node_modules` is a link. Once Node has checked a socket, as
   * releases up to 26 November 2026 do, it may follow that link in `require` but not in `import`, unless the program is
   * below the same first folder (nodejs/node#51142).
   */
  readonly #program = join(this.#folder, "speaking-member.mjs");
  readonly conversation = new Conversation(this.#folder);
  readonly #ports = new Map<number, Ports>();
  readonly #mounted: string[] = [];
  /** The clock speed of each machine. */
  readonly #rates = new Map<number, number>();
  /** The listed members between actions. All of them vote. */
  #listed: readonly number[] = FOUNDERS;
  #next = 4;
  #package = PACKAGE;
  readonly #later: string;
  #left: readonly Deed[] = [];
  #hasPicked = false;
  #isSecondTurn = false;
  /** Whether members can have disks of their own: only root may mount them. */
  hasDisks = true;
  /**
   * The number of processes that ended by themselves as expected: because their disks were full, and because they had
   * been removed.
   */
  readonly ended = { disk: 0, removed: 0 };
  /** The size of the largest folder and of the largest process, in bytes. */
  readonly most = { folder: 0, memory: 0 };

  /** @param later the location of the package that members are upgraded to */
  constructor(draw: Random, later: string) {
    this.#draw = draw;
    this.#later = later;
  }

  async found(): Promise<void> {
    copyFileSync(PROGRAM, this.#program);
    for (const id of FOUNDERS) await this.#prepare(id);
    for (const id of FOUNDERS) this.#start(id);
    await this.#allListen(FOUNDERS);
  }

  /** The client endpoints of the listed members. */
  readonly endpoints = (): readonly string[] =>
    this.#listed.map((id) => `http://127.0.0.1:${(this.#ports.get(id) as Ports).clients}`);

  /** Whether every kind has been picked once. */
  get hasDoneEach(): boolean {
    return this.#isSecondTurn || (this.#hasPicked && this.#left.length === 0);
  }

  /** Picks a kind of action. Every kind is picked once before any is repeated. */
  pick(): Deed {
    this.#isSecondTurn ||= this.#hasPicked && this.#left.length === 0;
    this.#hasPicked = true;
    const left = this.#left.length > 0 ? this.#left : deeds.filter((deed) => this.hasDisks || deed !== "full disk");
    const deed = this.#draw.pick(left);
    this.#left = left.filter((each) => each !== deed);
    return deed;
  }

  /** Carries out one action and its repair. Afterwards all listed members run as voters or learners. */
  async carryOut(deed: Deed): Promise<void> {
    const victim = deed.includes("leader") ? await this.#leader() : this.#draw.pick(this.#listed);
    switch (deed) {
      case "kill":
      case "kill the leader":
        return this.#restarted([victim], "SIGKILL");
      case "kill all":
        return this.#restarted(this.#listed, "SIGKILL");
      case "restart one by one":
      case "upgrade one by one":
        if (deed === "upgrade one by one") this.#package = this.#later;
        for (const id of this.#listed) await this.#restarted([id], "SIGTERM");
        return;
      case "pause":
      case "pause the leader":
        return this.#paused(victim);
      case "cut off":
      case "cut the leader off":
        return this.#cutOff(victim);
      case "full disk":
        return this.#fullDisk(victim);
      case "slow disk":
        return this.#slowDisk(victim);
      case "clock rates":
        return this.#driftApart();
      case "save a snapshot":
        return this.#saved();
      case "transfer":
        await this.#command("transfer", String(victim));
        return;
      case "add":
        return this.#listed.length < MOST_VOTERS ? this.#add() : this.#remove(victim);
      case "add a learner":
        return this.#listed.length < MOST_VOTERS ? this.#addLearner() : this.#replace(victim);
      case "remove":
      case "remove the leader":
        return this.#listed.length > FEWEST_VOTERS ? this.#remove(victim) : this.#add();
      case "replace":
        return this.#replace(victim);
      case "move":
        return this.#move(victim);
    }
  }

  /** Measures folders and processes. @returns their current sizes in MiB, smallest first */
  async weigh(): Promise<{ readonly folders: readonly number[]; readonly memory: readonly number[] }> {
    const [folders, memory]: [number[], number[]] = [[], []];
    for (const [id, process] of this.#running) {
      const names = await readdir(this.#dataOf(id), { recursive: true });
      folders.push(names.reduce((sum, name) => sum + sizeOf(join(this.#dataOf(id), name)), 0));
      memory.push(memoryOf(process.pid));
    }
    this.most.folder = Math.max(this.most.folder, ...folders);
    this.most.memory = Math.max(this.most.memory, ...memory);
    const sorted = (bytes: number[]): number[] => bytes.sort((a, b) => a - b).map((each) => Math.round(each / 2 ** 20));
    return { folders: sorted(folders), memory: sorted(memory) };
  }

  /**
   * Waits until all running members receive each other's messages on the channel.
   * @throws Error for violations so far
   */
  async converse(): Promise<void> {
    await this.conversation.progress([...this.#running.keys()].map((id) => this.#names.get(id) as string));
  }

  get standing(): string {
    return [...this.#running].map(([id, process]) => `member ${id}: ${process.standing}`).join("\n");
  }

  remove(): void {
    for (const process of this.#running.values()) process.signal("SIGKILL");
    for (const folder of this.#mounted) execFileSync("umount", ["--lazy", folder]);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #dataOf(id: number): string {
    return join(this.#folder, `data-${id}`);
  }

  #addressOf(id: number): string {
    return `127.0.0.1:${(this.#ports.get(id) as Ports).peer}`;
  }

  async #prepare(id: number): Promise<void> {
    const [peer = 0, admin = 0, clients = 0] = await freePorts(3);
    this.#ports.set(id, { peer, admin, clients });
    const folder = this.#dataOf(id);
    mkdirSync(folder);
    this.#afflict(id, 0);
    if (!this.hasDisks) return;
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "coterie", folder], { stdio: "ignore" });
      this.#mounted.push(folder);
    } catch {
      this.hasDisks = false;
      console.log("members have no disks of their own, as they cannot be mounted here: none will be full");
    }
  }

  #start(id: number, existing = false): void {
    const ids = [...new Set([...this.#listed, id])];
    const { admin, clients } = this.#ports.get(id) as Ports;
    const options: JoinOptions = {
      ...{ cluster: "test", id, existing, faultInjector: true },
      members: Object.fromEntries(ids.map((each) => [each, this.#addressOf(each)])),
      // A member cannot lock and remove the root folder of a mounted disk.
      dataDir: join(this.#dataOf(id), "journal"),
      admin: `127.0.0.1:${admin}`,
      clients: `127.0.0.1:${clients}`,
    };
    const machine = new URL(MACHINE);
    machine.searchParams.set("platform", new URL("./runtime/platform/real.js", this.#package).href);
    machine.searchParams.set("faults", this.#faultsOf(id));
    const { name, file } = this.conversation.enter(id);
    this.#names.set(id, name);
    const words = [this.#package, file, name, JSON.stringify(options)];
    this.#running.set(id, new ScriptUnderTest("--import", machine.href, this.#program, ...words));
  }

  async #allListen(ids: readonly number[]): Promise<void> {
    for (const id of ids) {
      const process = this.#running.get(id) as ScriptUnderTest;
      await until(`member ${id} runs`, () => process.stdout.includes("listening"), process);
    }
  }

  async #stop(id: number, signal: NodeJS.Signals): Promise<void> {
    const process = this.#running.get(id) as ScriptUnderTest;
    this.#running.delete(id);
    process.signal(signal);
    await process.finished;
  }

  async #restarted(ids: readonly number[], signal: NodeJS.Signals): Promise<void> {
    await Promise.all(ids.map((id) => this.#stop(id, signal)));
    await sleep(this.#draw.between(...LASTS_MS));
    for (const id of ids) this.#start(id);
    await this.#allListen(ids);
  }

  async #paused(id: number): Promise<void> {
    const process = this.#running.get(id) as ScriptUnderTest;
    process.signal("SIGSTOP");
    await sleep(this.#draw.between(...LASTS_MS));
    process.signal("SIGCONT");
  }

  async #cutOff(victim: number): Promise<void> {
    const others = this.#listed.filter((id) => id !== victim);
    await this.#cut(victim, others);
    await sleep(this.#draw.between(...LASTS_MS));
    await this.#cut(victim, []);
  }

  async #cut(id: number, cutTo: readonly number[]): Promise<void> {
    const { admin } = this.#ports.get(id) as Ports;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`http://127.0.0.1:${admin}/faults`, {
      method: "PUT",
      headers,
      body: JSON.stringify({ cutTo }),
    });
    if (!answer.ok) throw new Error(`member ${id} answers ${await answer.text()}`);
  }

  /**
   * Fills the disk of a member. The member ends and reports why, or continues if it does not have to write. After space
   * is freed, it continues from its state.
   */
  async #fullDisk(id: number): Promise<void> {
    const ballast = join(this.#dataOf(id), "ballast");
    const { bavail, bsize } = statfsSync(this.#dataOf(id));
    const process = this.#running.get(id) as ScriptUnderTest;
    try {
      execFileSync("dd", ["if=/dev/zero", `of=${ballast}`, `bs=${bsize}`, `count=${bavail}`], { stdio: "ignore" });
    } catch {
      // The disk became full earlier, because other processes wrote to it as well.
    }
    const ended = await Promise.race([process.finished, sleep(LASTS_MS[1], null)]);
    rmSync(ballast);
    if (ended === null && (await Promise.race([process.finished, sleep(100, null)])) === null) return;
    const { code, stderr } = await process.finished;
    if (code !== 1 || !stderr.includes("the disk is full"))
      throw new Error(`expected member ${id} to say that its disk is full, and to end with 1, but ${process.standing}`);
    this.ended.disk += 1;
    this.#start(id);
    await this.#allListen([id]);
  }

  async #slowDisk(id: number): Promise<void> {
    const before = await this.#slowSyncs(id);
    this.#afflict(id, SLOW_SYNC_MS);
    await sleep(SLOW_FOR_MS);
    await until(`the disk of member ${id} has been slow`, async () => (await this.#slowSyncs(id)) > before, this);
    this.#afflict(id, 0);
  }

  /** Returns how many syncs took longer than 25 ms, according to the member. */
  async #slowSyncs(id: number): Promise<number> {
    const { admin } = this.#ports.get(id) as Ports;
    const page = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
    const [count, quick] = ["count", 'bucket{le="0.025"}'].map((name) => {
      const line = page.split("\n").find((each) => each.startsWith(`coterie_journal_sync_seconds_${name} `));
      return Number(line?.split(" ")[1]);
    }) as [number, number];
    return count - quick;
  }

  /** Gives each clock its own rate until the next call. The rate survives restarts. */
  async #driftApart(): Promise<void> {
    for (const id of this.#listed) {
      this.#rates.set(id, this.#draw.between(1 - DRIFT, 1 + DRIFT));
      this.#afflict(id, 0);
    }
    await sleep(LASTS_MS[1]);
  }

  #afflict(id: number, syncMs: number): void {
    writeFileSync(this.#faultsOf(id), JSON.stringify({ rate: this.#rates.get(id) ?? 1, syncMs }));
  }

  #faultsOf(id: number): string {
    return join(this.#folder, `faults-${id}.json`);
  }

  async #saved(): Promise<void> {
    const file = join(this.#folder, "saved.snapshot");
    await this.#command("snapshot", "save", file);
    const { code, stdout, stderr } = await coterie("snapshot", "show", file);
    if (code !== 0) throw new Error(`a snapshot cannot be shown: ${stdout}${stderr}`);
  }

  async #add(): Promise<void> {
    const id = await this.#enter("add");
    await this.#settled([...this.#listed, id]);
  }

  async #addLearner(): Promise<void> {
    const id = await this.#enter("add", "--learner");
    await this.#untilListed(...this.#listed.map((each) => `${each} voter`), `${id} learner`);
    await this.#command("member", "promote", String(id));
    await this.#settled([...this.#listed, id]);
  }

  /** Half of the replaced members are dead. */
  async #replace(victim: number): Promise<void> {
    if (this.#draw.below(2) === 0) await this.#stop(victim, "SIGKILL");
    const id = await this.#enter("add", "--replaces", String(victim));
    await this.#settled([...this.#listed.filter((each) => each !== victim), id]);
    await this.#gone(victim);
  }

  async #remove(victim: number): Promise<void> {
    await this.#command("member", "remove", String(victim), "--wait");
    await this.#settled(this.#listed.filter((each) => each !== victim));
    await this.#gone(victim);
  }

  async #move(id: number): Promise<void> {
    await this.#stop(id, "SIGTERM");
    const [peer = 0] = await freePorts(1);
    await this.#command("member", "move", String(id), `127.0.0.1:${peer}`);
    this.#ports.set(id, { ...(this.#ports.get(id) as Ports), peer });
    this.#start(id);
    await this.#allListen([id]);
    await this.#settled(this.#listed);
  }

  /**
   * Lists a member and starts it. In a third of all cases a different member is killed in between and restarted. The
   * member being replaced is never killed, because it may already know that it does not come back.
   */
  async #enter(...words: readonly string[]): Promise<number> {
    const id = this.#next;
    this.#next += 1;
    await this.#prepare(id);
    const [verb = "", ...options] = words;
    await this.#command("member", verb, String(id), this.#addressOf(id), ...options);
    this.#start(id, true);
    await this.#allListen([id]);
    const leaving = words[0] === "add" && words[1] === "--replaces" ? Number(words[2]) : null;
    const staying = [...this.#running.keys()].filter((each) => each !== leaving);
    if (this.#draw.below(3) === 0) await this.#restarted([this.#draw.pick(staying)], "SIGKILL");
    return id;
  }

  /**
   * Waits until the process of a removed member has ended. A running member ends by itself once it learns of the
   * removal.
   */
  async #gone(id: number): Promise<void> {
    const process = this.#running.get(id);
    if (process === undefined) return;
    const told = await Promise.race([process.finished, sleep(LASTS_MS[1], null)]);
    if (told !== null && told.signal === null && !told.stderr.includes("has been removed"))
      throw new Error(`expected member ${id} to say that it was removed, but ${process.standing}`);
    if (told !== null) this.ended.removed += 1;
    await this.#stop(id, "SIGKILL");
  }

  async #settled(ids: readonly number[]): Promise<void> {
    await this.#untilListed(...ids.map((id) => `${id} voter`));
    this.#listed = ids;
  }

  /** Waits until exactly these members are listed. */
  async #untilListed(...wanted: readonly string[]): Promise<void> {
    let said = "";
    await until(
      () => `the list is ${wanted.join(", ")}, but it is ${said}`,
      async () => {
        said = (await this.#list()).map(({ id, role }) => `${id} ${role}`).join(", ");
        return said === wanted.join(", ");
      },
      this,
    );
  }

  async #list(): Promise<readonly ClusterMember[]> {
    const { members } = JSON.parse(await this.#command("member", "list", "--json")) as { members: ClusterMember[] };
    return members;
  }

  async #leader(): Promise<number> {
    const leader = (await this.#list()).find(({ id, isLeader }) => isLeader && this.#listed.includes(id));
    return leader?.id ?? this.#draw.pick(this.#listed);
  }

  /** @returns the output of the command */
  async #command(...words: readonly string[]): Promise<string> {
    const at = ["--timeout", "60s", "--endpoints", this.endpoints().join(",")];
    const { code, stdout, stderr } = await coterie(...words, ...at);
    if (code !== 0) throw new Error(`coterie ${words.join(" ")} ends with ${code}: ${stderr}\n${this.standing}`);
    return stdout;
  }
}

/** A file may be deleted while this runs. */
const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

function memoryOf(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes ?? 0) * 1_024;
}

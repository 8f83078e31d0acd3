/**
 * A world: members created by `join()` in one process, on simulated machines, in virtual time. The members run the real
 * code of `join()` on a simulated platform. Equal seeds lead to equal runs.
 */
import type { Client } from "../client/client.ts";
import type { JoinOptions, Member } from "../cluster/services/api.ts";
import type { AddOptions } from "../cluster/services/cluster-api.ts";
import { DEFAULT_CLUSTER } from "../cluster/services/membership.ts";
import type { CallOptions } from "../cluster/services/state/state-api.ts";
import { makeFolder, type NewCluster, newCluster } from "../cluster/snapshot/restored-folders.ts";
import { readSnapshot } from "../cluster/snapshot/snapshot-file.ts";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { type Random, random } from "../core/random.ts";
import type { PartitionShape } from "../sim/links.ts";
import { clientFaultPlan, type Fault, type FaultOptions, faultPlan, textOf } from "./faults.ts";
import { release } from "./release.ts";
import { replayedSeed, withSeed } from "./seeds.ts";
import {
  ClientMachine,
  type ClientOptions,
  connectFrom,
  FIRST_CLIENT_MACHINE,
  SimulatedClients,
} from "./simulated-clients.ts";
import { hostOf, type Run, SimulatedMachine } from "./simulated-machine.ts";
import { type LinkModel, SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import { VirtualTime } from "./virtual-time.ts";
import { begin, makeSureItRuns, speedsOf } from "./world-faults.ts";
import { namedIn, type Partition, WorldLinks } from "./world-links.ts";
import {
  type ProcessTools,
  type Program,
  type RunOptions,
  requireLink,
  requireRun,
  requireWorld,
  type WorldOptions,
} from "./world-options.ts";
import { runProgram } from "./world-programs.ts";
import { timerMs, type WorldTimers, worldTimers } from "./world-timers.ts";

const LIMIT_MS = 600_000;
const PORT = 7_100;

/**
 * Creates a world. Nothing happens in it until `run()`.
 *
 * @example
 * const world = simulate({ members: 3, seed: 7 });
 * await world.run(async () => {
 *   const lock = await world.member(1).mutex("invoice-42").acquire();
 *   world.partition([1], [2, 3]);
 *   const next = await world.member(2).mutex("invoice-42").acquire();
 *   expect(lock.isHeld).toBe(false);
 *   expect(next.token).toBeGreaterThan(lock.token);
 * });
 */
export const simulate = (options: WorldOptions): World => new World(options, new Error("made here"));

/** A simulated cluster in virtual time, created by `simulate()`. */
export class World {
  /** The seed of this world. Equal seeds and options lead to equal runs. */
  readonly seed: number;
  /**
   * The ids of all members, including removed ones. For the cluster's own list, call `member(id).cluster.members()`.
   */
  readonly members: NodeId[];
  /** The ids of the clients' machines. See `connect`. */
  readonly clients: readonly NodeId[];
  /** The events so far, one per line, with the time in milliseconds. */
  readonly log: string[] = [];
  /** Waits in virtual time. Outside `run()`, it also runs the world for that time. */
  readonly sleep: WorldTimers["sleep"];
  /** Calls a function after a delay in virtual time. */
  readonly setTimeout: WorldTimers["setTimeout"];
  /** Cancels a timer started with `setTimeout`. */
  readonly clearTimeout: WorldTimers["clearTimeout"];
  /** The random faults that are planned. A client's faults are added when it first connects. */
  readonly plan: Fault[];
  readonly #time = new VirtualTime();
  readonly #network: SimulatedNetwork;
  readonly #machines = new Map<NodeId, SimulatedMachine>();
  readonly #clients: SimulatedClients;
  readonly #make: (id: NodeId) => SimulatedMachine;
  #founders: readonly NodeId[];
  /** How many times each member has moved to a different address. */
  readonly #moves = new Map<NodeId, number>();
  readonly #clusterName: string;
  readonly #program: Program | undefined;
  /** An error whose stack identifies the test. Reading a stack is slow, so it is read only after a failure. */
  readonly #made: Error;
  readonly #links: WorldLinks;
  /** For each full disk, the function that frees it. */
  readonly #full = new Map<NodeId, () => void>();
  #hasBegun = false;
  readonly #faults: FaultOptions | undefined;
  readonly #chance: Random;

  constructor(options: WorldOptions, made: Error) {
    requireWorld(options);
    const { seed = replayedSeed() ?? 1, faults, network = {}, disk = {} } = options;
    this.seed = seed;
    this.members = [...idsOf(options.members)];
    this.#founders = [...this.members];
    this.#clusterName = options.join?.cluster ?? DEFAULT_CLUSTER;
    this.#program = options.program;
    this.#made = made;
    const chance = random(seed);
    this.#chance = chance;
    const around = {
      time: this.#time,
      network: () => this.#network,
      members: (id: NodeId) => this.#told(id),
      join: options.join ?? {},
      release: options.release ?? (() => release),
      note: (node: NodeId, text: string) => this.note(`node ${node} ${text}`),
      onJoined: (run: Run, id: NodeId) => this.#joined(run, id),
    };
    const speeds = speedsOf(options, chance.stream("clocks"));
    const rate = (id: NodeId) => ({ speed: speeds(id), aheadMs: chance.stream(`clock ${id}`).between(-500, 500) });
    this.#make = (id) => new SimulatedMachine(id, around, chance.stream(`machine ${id}`), rate(id), disk);
    this.#clients = new SimulatedClients(
      (id) => new ClientMachine(id, around, chance.stream(`machine ${id}`), rate(id)),
    );
    this.clients = this.#clients.ids;
    for (const id of this.members) this.#machines.set(id, this.#make(id));
    this.#network = new SimulatedNetwork(this.#time, [...this.#machines.values()], chance.stream("network"));
    this.#links = new WorldLinks(this.#network, this.members, network);
    const timers = worldTimers((ms, run) => this.#time.after(timerMs(ms), run));
    this.setTimeout = timers.setTimeout;
    this.clearTimeout = timers.clearTimeout;
    this.sleep = (ms, value, given) => {
      const asleep = (): Promise<NonNullable<typeof value>> => timers.sleep(ms, value as never, given);
      return this.#time.isDriven ? asleep() : this.run(asleep);
    };
    this.#faults = faults === "random" ? {} : faults;
    this.plan = this.#faults === undefined ? [] : faultPlan(this.#faults, this.members, chance.stream("faults"));
  }

  /** Returns the world's time, in milliseconds since it began. None of the members' clocks show this time. */
  now(): number {
    return this.#time.now;
  }

  /** A hash of the times of all events. It is the same for two runs that took the same course. */
  get digest(): number {
    return this.#time.digest;
  }

  /** The number of events that have run. */
  get events(): number {
    return this.#time.count;
  }

  /**
   * Advances time until the body has ended, or by the given number of milliseconds. In the first run, all members join
   * before the body begins. If it throws, the error message contains the seed.
   * @throws the error thrown by the body; UsageError if no events are left, or after `limitMs`
   */
  async run<T>(body: number | ((world: this) => T | PromiseLike<T>), options: RunOptions = {}): Promise<T> {
    requireRun(body, options);
    const { limitMs = LIMIT_MS } = options;
    const whole = async (): Promise<T> => {
      await this.#begin();
      if (typeof body !== "number") return body(this);
      await new Promise<void>((resolve) => void this.#time.after(body, resolve));
      return undefined as T;
    };
    try {
      return await this.#time.drive(whole, typeof body === "number" ? Number.POSITIVE_INFINITY : limitMs);
    } catch (error) {
      throw withSeed(error, { seed: this.seed, made: this.#made, log: this.log });
    }
  }

  /**
   * Returns the member in its current run.
   * @throws UsageError if its process is not running or it has not joined yet
   */
  member(id: NodeId): Member {
    const member = this.#machine(id).run?.member ?? null;
    if (member === null)
      throw new UsageError(
        "not-running",
        `expected member ${id} to be running, but it is down or has not joined yet: await restart(${id})`,
      );
    return member;
  }

  /**
   * Whether a member's process is running and has joined, even if the member has since left or failed. For a client:
   * whether its process is running.
   */
  isUp(id: NodeId): boolean {
    const client = this.#clients.find(id);
    return client === undefined ? (this.#machine(id).run?.member ?? null) !== null : client.process !== null;
  }

  /**
   * Cuts a machine's power. Its process ends, unsynced data may be lost, and the other machines are not notified. The
   * member's pending promises never settle, and its signals are not aborted, since a dead process does not run any
   * code.
   */
  crash(id: NodeId): void {
    this.#end(id, "crashes", true);
  }

  /** Ends the process, as with `kill -9`. Its disk keeps all writes, and its machine closes its connections. */
  kill(id: NodeId): void {
    this.#end(id, "is killed", false);
  }

  /**
   * Starts the member's process on its machine. If there is still a process whose member has left, ends it first.
   * Resolves when the member has joined.
   */
  restart(id: NodeId): Promise<Member> {
    const machine = this.#machine(id);
    if (machine.run?.member?.status().state === "left") this.#end(id, "ends", false);
    if (machine.run !== null)
      throw new UsageError(
        "already-running",
        `expected member ${id} to be down, but it is running: kill(${id}) or crash(${id}) first`,
      );
    this.note(`node ${id} starts`);
    return machine.start().joined;
  }

  /** Returns the address at which the other members can reach this member, whether or not it is running. */
  address(id: NodeId): string {
    return `${hostOf(id)}:${PORT + (this.#moves.get(id) ?? 0)}`;
  }

  /**
   * Adds a machine, whose process joins with `existing: true`. A member must also add the new member to the list; `add`
   * does both. Resolves when the new member has joined, although the other members may not accept it yet.
   */
  enter(id: NodeId): Promise<Member> {
    if (this.#machines.has(id))
      throw new UsageError("member-exists", `expected an id that no member has or has had, got ${id}`);
    const machine = this.#make(...(idsOf([id]) as [NodeId]));
    this.#links.add(machine, [...this.members, ...this.clients]);
    this.members.push(id);
    this.#machines.set(id, machine);
    return this.restart(id);
  }

  /**
   * Connects a client on its own machine, like `connect()`. From the first client on, all members serve clients. Random
   * faults pause the client and affect its links, as they do for members. Once its machine has been killed or has
   * crashed, none of its code runs.
   * @example
   * const client = await world.connect();
   * @throws CoordinationError `no-endpoint`
   */
  async connect(options: ClientOptions = {}): Promise<Client> {
    const { machine, isNew } = this.#clients.machineFor(options.machine);
    const { id } = machine;
    this.note(`client ${id} connects`);
    if (isNew) {
      this.#links.add(machine, [...this.members, ...this.clients]);
      const place = { client: id, members: [...this.members], now: this.now() };
      const plan = this.#faults && clientFaultPlan(this.#faults, place, this.#chance.stream(`faults ${id}`));
      for (const fault of plan ?? []) this.#await({ ...fault, at: this.now() + fault.at });
    }
    for (const { run } of this.#machines.values()) if (run !== null) this.#clients.serve(run);
    const connecting = connectFrom(machine, this.#network, this.members, options);
    const { process } = machine;
    const client = await connecting;
    if (options.program !== undefined && process !== null)
      this.#runProgram(id, process, (tools) => options.program?.(client, tools), client.signal);
    return client;
  }

  /**
   * Adds a member through a running one, and starts it. It can vote once it is up to date; `cluster.settled()` waits
   * for this.
   */
  async add(id: NodeId, options: AddOptions = {}): Promise<Member> {
    await this.#anybody().cluster.add({ id, address: this.address(id) }, options);
    return this.enter(id);
  }

  /**
   * Ends a member's process, changes the member's address through another running member, and starts the process at the
   * new address.
   */
  async move(id: NodeId, options: CallOptions = {}): Promise<Member> {
    const { cluster } = this.#anybody(id);
    if (this.#machine(id).run !== null) this.kill(id);
    this.#moves.set(id, (this.#moves.get(id) ?? 0) + 1);
    await cluster.move(id, this.address(id), options);
    return this.restart(id);
  }

  /**
   * Removes a member through a running one. Resolves once the change has taken effect. If the removed member's process
   * is running, the member has left or will leave soon.
   */
  async remove(id: NodeId, options: CallOptions = {}): Promise<void> {
    const { cluster } = this.#anybody(id);
    await cluster.remove(id, options);
    await cluster.settled(options);
  }

  /** Empties the disk of a stopped member. */
  wipe(id: NodeId): void {
    const machine = this.#machine(id);
    if (machine.run !== null)
      throw new UsageError(
        "already-running",
        `expected member ${id} to be down, but it is running: crash(${id}) first`,
      );
    this.note(`node ${id} loses its disk`);
    machine.disk.wipe();
  }

  /**
   * Founds a new cluster from the bytes returned by `member.cluster.snapshot()`, like `coterie snapshot restore`. All
   * members of the new cluster must be stopped. Only members with empty disks get a folder for the new cluster, so call
   * `wipe` for them first. A member that keeps its folder is still a member of the old cluster.
   */
  async restore(snapshot: Uint8Array, members: readonly NodeId[] = this.#founders): Promise<void> {
    const machines = members.map((id) => this.#machine(id));
    const running = machines.find(({ run }) => run !== null);
    if (running !== undefined)
      throw new UsageError(
        "already-running",
        `expected member ${running.id} to be down, but it is running: crash it first`,
      );
    this.note(`nodes ${members.join(", ")} will found a new cluster`);
    this.#founders = idsOf(members);
    const cluster = this.#clusterName;
    let made: NewCluster | null = null;
    const saved = await readSnapshot([snapshot], "the snapshot");
    for (const machine of machines) {
      if (!machine.disk.isEmpty) continue;
      await machine.prepare((platform, folder) => {
        made ??= newCluster(saved, { cluster, members }, platform);
        return makeFolder(platform, made, machine.id, folder, { warn: (text) => this.note(text) });
      });
    }
  }

  /**
   * Pauses a member's process, as with `kill -STOP`, until `resume` is called. After that, overdue timers run one after
   * another.
   */
  pause(id: NodeId): void {
    this.note(`node ${id} is paused`);
    this.#anyMachine(id).process?.pause();
  }

  /** Resumes a member's paused process. */
  resume(id: NodeId): void {
    this.note(`node ${id} resumes`);
    this.#anyMachine(id).process?.resume();
  }

  /** Makes the next sync on a member's disk fail with this code. The member fails, but its process does not end. */
  failDisk(id: NodeId, code = "EIO"): void {
    this.note(`node ${id}'s disk will fail`);
    this.#machine(id).disk.failNext(code);
  }

  /**
   * Fills a member's disk until `freeDisk` is called. The member fails when it next writes, and if it starts while the
   * disk is full, it cannot join.
   */
  fillDisk(id: NodeId): void {
    this.note(`node ${id}'s disk is full`);
    const free = this.#machine(id).disk.fill();
    const before = this.#full.get(id);
    this.#full.set(id, () => {
      free();
      before?.();
    });
  }

  /** Frees up a member's disk. Restarts the process if it has ended or its member has failed in the meantime. */
  freeDisk(id: NodeId): void {
    this.note(`node ${id}'s disk has room`);
    this.#full.get(id)?.();
    this.#full.delete(id);
    makeSureItRuns(this.#machine(id));
  }

  /**
   * Splits the machines into groups that cannot reach each other, or according to a named shape, as in the simulator.
   * Replaces earlier cuts. Clients that are not in any group can reach all members.
   */
  partition(...groups: (readonly NodeId[])[]): void;
  partition(shape: PartitionShape): void;
  partition(...given: Partition): void {
    const named = namedIn(given);
    const all = [...this.members, ...this.clients.filter((id) => named.includes(id))];
    this.#links.partition(all, given, (id) => all.indexOf(this.#anyMachine(id).id));
    this.note(`partition ${JSON.stringify(given)}`);
  }

  /** Cuts the link from one machine to another, in addition to earlier cuts. */
  cut(from: NodeId, to: NodeId): void {
    this.note(`cut from ${from} to ${to}`);
    this.#links.cut(this.#anyMachine(from).id, this.#anyMachine(to).id);
  }

  /** Ends all partitions and cuts. */
  heal(): void {
    this.note("the network is healed");
    this.#links.mend();
  }

  /**
   * Sets how the link from one machine to another behaves. Without a model, restores the behavior set with the
   * `network` option.
   */
  link(from: NodeId, to: NodeId, model?: LinkModel): void {
    if (model !== undefined) requireLink(model);
    this.#links.set(this.#anyMachine(from).id, this.#anyMachine(to).id, model);
    this.note(`link from ${from} to ${to}: ${JSON.stringify(model ?? this.#links.model)}`);
  }

  /** Writes a line to the world's log. */
  note(text: string): void {
    this.log.push(`${this.#time.now.toFixed(3).padStart(11)} ${text}`);
  }

  /** Lets all members join, and then starts the faults. Later calls do nothing. */
  async #begin(): Promise<void> {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    await Promise.all([...this.#machines.values()].map((machine) => machine.start().joined));
    for (const fault of this.plan.splice(0)) this.#await({ ...fault, at: this.now() + fault.at });
  }

  #await(fault: Fault): void {
    this.plan.push(fault);
    this.#time.at(fault.at, () => this.#suffer(fault));
  }

  #suffer(fault: Fault): void {
    this.note(`fault: ${textOf(fault)}`);
    const ends = begin(fault, {
      network: this.#network,
      links: this.#links.model,
      members: this.members,
      member: (id) => this.#machine(id),
      process: (id) => this.#anyMachine(id).process,
    });
    this.#time.after(fault.forMs, () => {
      this.note(`over: ${fault.kind} ${fault.nodes.join(" ")}`);
      ends();
    });
  }

  #end(id: NodeId, how: string, losesPower: boolean): void {
    this.note(`node ${id} ${how}`);
    this.#anyMachine(id).end(losesPower);
  }

  #joined(run: Run, id: NodeId): void {
    this.#clients.serve(run);
    const { process, member } = run;
    const program = this.#program;
    if (program === undefined || member === null) return;
    this.#runProgram(id, process, (tools) => program(member, tools), member.signal);
  }

  /**
   * Runs a program. If it fails because the member or client has ended, its process ends, too, since it has nothing
   * left to do. Any other error ends the run.
   */
  #runProgram(
    id: NodeId,
    process: SimulatedProcess,
    program: (tools: ProcessTools) => unknown,
    used: AbortSignal,
  ): void {
    runProgram(program, {
      process,
      used,
      log: (text) => this.note(`node ${id}: ${text}`),
      onEnd: () => this.kill(id),
      onError: (error) => this.#time.fail(error),
    });
  }

  #told(id: NodeId): Pick<JoinOptions, "members" | "existing"> {
    const isFounder = this.#founders.includes(id);
    const others = this.members.filter((each) => each !== id);
    const up = others.filter((each) => this.isUp(each));
    const known = up.length > 0 ? up : others; // If all members are starting at the same time, none of them is up yet.
    const those = isFounder ? this.#founders : [id, ...known];
    const members = Object.fromEntries(those.map((each) => [each, this.address(each)]));
    return { members, ...(isFounder ? {} : { existing: true }) };
  }

  /** Returns a running member other than the given one. */
  #anybody(but?: NodeId): Member {
    const id = this.members.find((each) => each !== but && this.isUp(each) && !this.member(each).signal.aborted);
    if (id === undefined) throw new UsageError("not-running", "expected a running member, got none");
    return this.member(id);
  }

  #machine(id: NodeId): SimulatedMachine {
    const machine = this.#machines.get(id);
    if (machine === undefined)
      throw new UsageError("unknown-node", unexpected("a member", `one of ${this.members.join(", ")}`, id));
    return machine;
  }

  #anyMachine(id: NodeId): SimulatedMachine | ClientMachine {
    return this.#clients.find(id) ?? this.#machine(id);
  }
}

function idsOf(members: number | readonly NodeId[]): readonly NodeId[] {
  const ids = typeof members === "number" ? upTo(members) : Array.isArray(members) ? [...members] : [];
  const isSound = ids.length > 0 && ids.every((id) => Number.isSafeInteger(id) && id >= 0 && id < FIRST_CLIENT_MACHINE);
  if (isSound && new Set(ids).size === ids.length) return ids;
  throw new UsageError("bad-option", unexpected("members", "their number, or a list of distinct ids", members));
}

const upTo = (count: number): NodeId[] =>
  Number.isSafeInteger(count) && count < FIRST_CLIENT_MACHINE ? Array.from({ length: count }, (_, i) => i + 1) : [];

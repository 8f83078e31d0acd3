/**
 * A machine in a world. It has a disk, clocks and, while the member's process is running, that process. It may lose
 * power.
 */

import type { JoinOptions, Member } from "../cluster/services/api.ts";
import { EnvironmentError, InvariantViolation } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";
import type { Log, LogLevel } from "../runtime/log.ts";
import type { Network, Platform } from "../runtime/platform/platform.ts";
import type { Release } from "./release.ts";
import { type DiskModel, SimulatedDisk } from "./simulated-disk.ts";
import type { Machine, SimulatedNetwork } from "./simulated-network.ts";
import { type ClockRate, SimulatedProcess } from "./simulated-process.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** The environment that all machines share. */
export interface Surroundings {
  readonly time: VirtualTime;
  readonly network: () => SimulatedNetwork;
  /** Returns the `join()` options that describe the other members. */
  members(id: NodeId): Pick<JoinOptions, "members" | "existing">;
  readonly join: Partial<JoinOptions>;
  /** Returns the release that the member runs from this start on. */
  release(id: NodeId): Release;
  note(node: NodeId, text: string): void;
  /** Called when the member in this process has joined. */
  onJoined(run: Run, id: NodeId): void;
}

/** One run of a member's process, from its start to its end. */
export interface Run {
  readonly process: SimulatedProcess;
  readonly network: Network;
  readonly release: Release;
  /** The member. Null until it has joined. */
  member: Member | null;
  readonly joined: Promise<Member>;
}

const DATA = "data";

/** Returns a machine's IP address. */
export const hostOf = (id: NodeId): string => `10.0.${id >> 8}.${id & 255}`;

/** A member's machine. */
export class SimulatedMachine implements Machine {
  readonly #around: Surroundings;
  readonly #chance: Random;
  readonly #rate: ClockRate;
  readonly host: string;
  readonly disk: SimulatedDisk;
  isUp = true;
  run: Run | null = null;
  #runs = 0;

  constructor(
    readonly id: NodeId,
    around: Surroundings,
    chance: Random,
    rate: ClockRate,
    disk: DiskModel,
  ) {
    this.#around = around;
    this.#chance = chance;
    this.#rate = rate;
    this.host = hostOf(id);
    this.disk = new SimulatedDisk(disk, chance.stream("disk"));
  }

  /** Starts the member's process, which then joins. */
  start(): Run {
    const [process, platform] = this.#process();
    const told = this.#around.members(this.id);
    const options: JoinOptions = {
      log: this.#log(),
      dataDir: DATA,
      ...this.#around.join,
      id: this.id,
      ...told,
      tls: "off",
    };
    const release = this.#around.release(this.id);
    const joined = release.joinOn(platform, options);
    const run: Run = { process, network: platform.network, release, member: null, joined };
    run.joined.then(
      (member) => this.#joined(run, member),
      (error: unknown) => this.#failed(run, error),
    );
    this.run = run;
    return run;
  }

  get process(): SimulatedProcess | null {
    return this.run?.process ?? null;
  }

  /** Runs `work` on the machine while the member's process is not running. */
  async prepare(work: (platform: Platform, folder: string) => Promise<void>): Promise<void> {
    const [process, platform] = this.#process();
    await work(platform, this.#around.join.dataDir ?? DATA);
    process.die();
  }

  /** Ends the process immediately. With `losesPower`, the machine also loses power. */
  end(losesPower: boolean): void {
    const { run } = this;
    if (run !== null) {
      run.process.die();
      this.#around.network().processDied(run.process, !losesPower);
    }
    this.run = null;
    if (!losesPower) return;
    this.isUp = false;
    this.disk.losePower();
  }

  #process(): [process: SimulatedProcess, platform: Platform] {
    const { time, network } = this.#around;
    this.isUp = true;
    this.#runs += 1;
    const process = new SimulatedProcess(time, this.#rate, this.#chance.stream(`run ${this.#runs}`));
    const { clock, timers, random } = process;
    const disk = this.disk.of(process);
    return [process, { clock, timers, random, disk, network: network().of(this, process), datagrams: null }];
  }

  #joined(run: Run, member: Member): void {
    run.member = member;
    this.#around.note(this.id, "joined");
    member.signal.addEventListener("abort", () => {
      const { cause } = member.signal.reason as Error;
      if (cause instanceof InvariantViolation) this.#around.time.fail(cause);
    });
    this.#around.onJoined(run, this.id);
  }

  #failed({ process }: Run, error: unknown): void {
    if (!process.isAlive) return;
    const isOfMachine = error instanceof EnvironmentError && (error.code === "member-removed" || this.disk.isFull);
    if (!isOfMachine) return this.#around.time.fail(error);
    this.#around.note(this.id, `cannot start: ${error.message}`);
    if (this.disk.isFull) this.end(false); // The process restarts once there is space.
  }

  /** Whether the process is still running although its member has failed. */
  get hasFailed(): boolean {
    const { signal } = this.run?.member ?? {};
    return signal?.aborted === true && (signal.reason as { code?: string }).code === "member-failed";
  }

  #log(): Log {
    const said = new Map<string, number>();
    const write = (level: LogLevel) => (text: string) => this.#around.note(this.id, `${level}: ${text}`);
    const once = (key: string, text: string): void => {
      const times = said.get(key) ?? 0;
      said.set(key, times + 1);
      if (times === 0) write("warn")(text);
    };
    return { info: write("info"), warn: write("warn"), error: write("error"), once };
  }
}

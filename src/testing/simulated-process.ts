/**
 * One run of a process, with its own clock, timers and randomness. It can be paused. Once it is dead, none of its code
 * runs.
 */
import type { Random as RandomStream } from "../core/random.ts";
import type { Clock, Random, Timer, Timers } from "../runtime/platform/platform.ts";
import { type Due, type Place, Scheduled, type VirtualTime } from "./virtual-time.ts";
import { timerMs } from "./world-timers.ts";

/** How a machine's clocks deviate from exact clocks. */
export interface ClockRate {
  /** How fast the clocks run: how many of their milliseconds pass in one millisecond of the world's time. */
  readonly speed: number;
  /** How far the system clock is ahead when the world begins. */
  readonly aheadMs: number;
}

/** The time of an exact system clock when a world begins: 2026-01-01. */
const BEGIN_MS = Date.UTC(2026, 0, 1);
/**
 * The resolution of timers. Node counts whole milliseconds, so even in an idle process a timer can be late by this
 * much.
 */
const TIMER_GRAIN_MS = 1;

/** One run of a process on a machine. */
export class SimulatedProcess implements Place {
  readonly #rate: ClockRate;
  readonly #chance: RandomStream;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  #state: "running" | "paused" | "dead" = "running";
  /** Events that became due while the process was paused. */
  #late: Scheduled[] = [];
  #arrived: Scheduled[] = [];
  readonly #beganAt: number;

  constructor(
    readonly time: VirtualTime,
    rate: ClockRate,
    chance: RandomStream,
  ) {
    this.#rate = rate;
    this.#chance = chance;
    this.#beganAt = time.now;
    this.clock = {
      now: () => this.#steady(),
      wall: () => Math.floor(this.#wall()),
      stamp: () => this.#wall(),
    };
    this.timers = {
      after: (ms, run) => new VirtualTimer(this.timer(ms, run)),
      every: (ms, run) => this.#every(ms, run),
      soon: (run) => new VirtualTimer(time.after(0, run, this)),
      cancel: (timer) => (timer as VirtualTimer | null)?.due.cancel(),
    };
    this.random = {
      fraction: () => chance.bits() / 2 ** 32,
      natural: (below) => Math.floor(((chance.bits() * 2 ** 20 + (chance.bits() >>> 12)) / 2 ** 52) * below),
      name: () => Array.from({ length: 4 }, () => chance.bits().toString(16).padStart(8, "0")).join("-"),
    };
  }

  get isAlive(): boolean {
    return this.#state !== "dead";
  }

  get isPaused(): boolean {
    return this.#state === "paused";
  }

  takes(due: Scheduled): boolean {
    if (this.#state === "paused") this.#late.push(due);
    return this.#state === "running";
  }

  /** Runs the handler for an outside event, now or when the process resumes. */
  arrive(run: () => void): void {
    if (this.#state === "running") run();
    else if (this.#state === "paused") this.#arrived.push(new Scheduled(run, this));
  }

  /** Runs the callback after this much of the world's time. */
  after(delayMs: number, run: () => void): Due {
    return this.time.after(delayMs, run, this);
  }

  /** Runs the callback after this much of the machine's time plus a short delay, as Node does. */
  timer(ms: number, run: () => void): Due {
    const waitMs = Math.max(1, Math.trunc(timerMs(ms))) + this.random.fraction() * TIMER_GRAIN_MS;
    return this.time.after(waitMs / this.#rate.speed, run, this);
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  /**
   * Resumes the process. Events that arrived during the pause run before or after overdue timers, at random, since both
   * can happen in a real process.
   */
  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    const both = [this.#arrived, this.#late];
    if (this.#chance.below(2) === 0) both.reverse();
    for (const due of both.flat()) this.time.again(this.time.now, due);
    this.#arrived = [];
    this.#late = [];
  }

  die(): void {
    this.#state = "dead";
    this.#arrived = [];
    this.#late = [];
  }

  #steady(): number {
    return (this.time.now - this.#beganAt) * this.#rate.speed;
  }

  #wall(): number {
    return BEGIN_MS + this.#rate.aheadMs + this.time.now * this.#rate.speed;
  }

  #every(ms: number, run: () => void): Timer {
    const again = (): void => {
      timer.due = this.timer(ms, again);
      run();
    };
    const timer = new VirtualTimer(this.timer(ms, again));
    return timer;
  }
}

class VirtualTimer implements Timer {
  constructor(public due: Due) {}

  unref(): this {
    return this;
  }
}

/**
 * Members whose readers cannot keep up, as they say: senders wait for them. What they say is good for a short time only
 * and is said again and again, so nobody waits for a member that has crashed or cannot be heard of.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";

const SAY_EVERY_MS = 250;
const GOOD_FOR_MS = 4 * SAY_EVERY_MS;

export class Pressure {
  /** Until when each is waited for, on the platform's clock. */
  readonly #until = new Map<NodeId, number>();
  #saying: Timer | null = null;
  #waking: Timer | null = null;

  constructor(
    private readonly platform: Pick<Platform, "clock" | "timers">,
    /** To all other members. */
    private readonly say: (isFull: boolean) => void,
    /** Somebody may have been waited for that is not any more. */
    private readonly onRelief: () => void,
  ) {}

  /** Whether readers of this member cannot keep up: its own sends wait for them, too. */
  get own(): boolean {
    return this.#saying !== null;
  }

  set own(isFull: boolean) {
    if (isFull === this.own) return;
    const { timers } = this.platform;
    timers.cancel(this.#saying);
    this.#saying = isFull ? timers.every(SAY_EVERY_MS, () => this.say(true)).unref() : null;
    this.say(isFull);
    if (!isFull) this.onRelief();
  }

  heard(from: NodeId, isFull: boolean): void {
    if (!isFull) {
      if (this.#until.delete(from)) this.onRelief();
      return;
    }
    this.#until.set(from, this.platform.clock.now() + GOOD_FOR_MS);
    this.#waking ??= this.platform.timers.after(GOOD_FOR_MS, () => this.#wake()).unref();
  }

  /** Those of `members` that are waited for. */
  slowAmong(members: readonly NodeId[]): readonly NodeId[] {
    if (this.#until.size === 0) return NOBODY;
    const now = this.platform.clock.now();
    return members.filter((member) => (this.#until.get(member) ?? 0) > now);
  }

  close(): void {
    this.platform.timers.cancel(this.#saying);
    this.platform.timers.cancel(this.#waking);
  }

  #wake(): void {
    this.#waking = null;
    const now = this.platform.clock.now();
    for (const [member, until] of this.#until) if (until <= now) this.#until.delete(member);
    if (this.#until.size > 0) this.#waking = this.platform.timers.after(SAY_EVERY_MS, () => this.#wake()).unref();
    this.onRelief();
  }
}

const NOBODY: readonly NodeId[] = [];

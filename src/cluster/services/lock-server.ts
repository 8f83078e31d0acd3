/** Who serves the locks of `elected-server`: as the program is told, and as long as the clock says so where it is this member. */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { MemberEvent } from "./api.ts";
import type { AlgorithmEvent } from "./engine.ts";
import { leaderToSay, type Standing } from "./followed-leader.ts";
import { OwnTenure } from "./tenure.ts";

export interface LockServerOptions {
  readonly platform: Platform;
  /** How the election of who serves stands. */
  standing(): Standing;
  /** To the locks, along their wires. */
  tell(event: AlgorithmEvent): void;
  publish(event: MemberEvent): void;
  /** This member serves without having been confirmed in time: its election may believe that it leads still. */
  onOverdue(): void;
}

export class LockServer {
  readonly #options: LockServerOptions;
  /** As the election said it last; null once that is over. */
  #elected: AlgorithmEvent | null = null;
  /** Who has been said to serve. */
  #said: NodeId | null = null;
  /** While this member serves. */
  #service: OwnTenure<number> | null = null;

  constructor(options: LockServerOptions) {
    this.#options = options;
  }

  /** What a lock that begins is to know. */
  get news(): readonly AlgorithmEvent[] {
    return this.#elected === null ? [] : [this.#elected];
  }

  onEvent(event: AlgorithmEvent, until: number | null): void {
    if (event.type === "elected") return this.#begin(event);
    if (event.epoch !== this.#service?.token) return; // It has ended already.
    if (event.type === "deposed") this.depose();
    else if (event.type === "confirmed") this.#service?.confirm(until);
  }

  /**
   * After a pause, what has arrived meanwhile may come before the timer that ends this member's leadership, and others may
   * have elected another: so the clock is looked at before anything is granted.
   */
  check(): void {
    void this.#service?.isHeld;
  }

  /** If this member serves, it does not any more. */
  depose(): void {
    if (this.#service === null) return;
    const epoch = this.#service.token;
    this.stop();
    this.#service = null;
    this.#elected = null;
    this.#options.tell({ type: "deposed", epoch });
    this.#say(null, null);
  }

  /** After a step: the leader that this member follows may be lost, or found again. */
  lookAgain(): void {
    const elected = this.#elected;
    const leader = leaderToSay(this.#said, (elected?.leader ?? null) as NodeId | null, this.#options.standing());
    if (leader !== this.#said) this.#say(leader, leader === null ? null : (elected?.epoch as number));
  }

  stop(): void {
    this.#service?.lose();
  }

  #begin(event: AlgorithmEvent): void {
    const { platform, standing, tell, onOverdue } = this.#options;
    const { self } = standing();
    const leader = event.leader as NodeId;
    const token = event.epoch as number;
    this.stop();
    this.#service = leader === self ? new OwnTenure({ platform, token, what: "serving", onOverdue }) : null;
    this.#elected = event;
    tell(event);
    if (leader === self || standing().leader !== null) this.#say(leader, token); // Otherwise it has been lost since.
  }

  #say(leader: NodeId | null, token: number | null): void {
    this.#said = leader;
    this.#options.publish({ type: "server-changed", server: leader, token });
  }
}

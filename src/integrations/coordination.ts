/**
 * A member inside a Node service: it leads while the service runs, reports whether it is ready, and leaves when the service
 * ends.
 */
import { hasEngine, join } from "../cluster/join.ts";
import type { JoinOptions, Leadership, Member } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";

/** Whether this process can serve its callers. `why` names the obstacle; null if there is none. */
export interface Health {
  readonly ready: boolean;
  readonly why: string | null;
}

/** How long closing waits for work that continues after it has lost leadership. */
const LAST_WORK_MS = 5_000;

/** A member of a cluster, or of an external engine: then it is a `Coordination<EngineMember>`. */
export class Coordination<M extends Member | EngineMember = Member> {
  readonly member: M;
  readonly #stopping = new AbortController();
  readonly #leading = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  /** @param member leaves when this is closed. */
  constructor(member: M) {
    this.member = member;
  }

  /** Calls `join()`. @throws the errors of `join()` */
  static join(options: JoinOptions): Promise<Coordination>;
  static join(options: EngineJoinOptions): Promise<Coordination<EngineMember>>;
  static join(options: JoinOptions | EngineJoinOptions): Promise<Coordination<Member | EngineMember>>;
  static async join(options: JoinOptions | EngineJoinOptions): Promise<Coordination<Member | EngineMember>> {
    return new Coordination<Member | EngineMember>(hasEngine(options) ? await join(options) : await join(options));
  }

  /** Aborted when the service begins to shut down, while this process is still a member. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /**
   * Runs `work` while this process leads the election of that name, and again each time it is elected. Only one process of
   * all runs it at a time. The work's `signal` is aborted when leadership is lost, and when the service shuts down.
   *
   * @returns once the work has ended while it leads, or the service shuts down.
   * @throws errors of the work while it leads, and CoordinationError if this member can no longer lead
   */
  lead(name: string, work: (leadership: Leadership) => void | Promise<void>): Promise<void> {
    const led = this.#lead(name, work);
    const ended = led.catch(() => {}).then(() => void this.#leading.delete(ended));
    this.#leading.add(ended);
    return led;
  }

  /**
   * Ready if the member has joined, reaches a majority of the members, and knows the leader of their log; with an engine,
   * if it has a session.
   */
  health(): Health {
    if (this.signal.aborted) return { ready: false, why: "this process is shutting down" };
    return "engine" in this.member ? healthOverEngine(this.member) : healthOfMember(this.member);
  }

  /** Aborts all work under leadership, through its signal. This process is still a member. */
  stop(): void {
    if (this.signal.aborted) return;
    this.#stopping.abort(new CoordinationError("member-left", "lost", "this process is shutting down"));
  }

  /**
   * Stops and leaves. It releases locks and leaderships, so that others need not wait for them. Further calls have no
   * effect.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.stop();
    let late: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      late = setTimeout(resolve, LAST_WORK_MS);
    });
    await Promise.race([Promise.all(this.#leading), patience]);
    clearTimeout(late);
    await this.member.leave();
  }

  async #lead(name: string, work: (leadership: Leadership) => void | Promise<void>): Promise<void> {
    const { signal } = this;
    while (!signal.aborted) {
      let isLost = false;
      const guarded = async (leadership: Leadership): Promise<void> => {
        try {
          await work(leadership);
        } finally {
          isLost = leadership.signal.aborted; // Read it here, since the end of the work ends leadership too.
        }
      };
      try {
        await (this.member as Pick<EngineMember, "election">).election(name).lead(guarded, { signal });
        if (!isLost) return;
      } catch (error) {
        if (signal.aborted) return;
        if (!isLost || this.member.signal.aborted) throw error;
      }
    }
  }
}

function healthOfMember(member: Member): Health {
  const { state, hasQuorum, reachable, peers, shared } = member.status();
  if (state !== "joined") return { ready: false, why: `this member has ${state}` };
  if (!hasQuorum) return { ready: false, why: `reaches ${reachable} of ${peers.length + 1} members: no majority` };
  if (shared !== null && shared.leader === null) return { ready: false, why: "knows no leader of the log" };
  return { ready: true, why: null };
}

function healthOverEngine({ engine, hasSession, signal }: EngineMember): Health {
  if (signal.aborted) return { ready: false, why: `this member of ${engine} has left` };
  return hasSession ? { ready: true, why: null } : { ready: false, why: `has no session at ${engine}` };
}

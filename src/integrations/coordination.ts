/** A member inside a service of Node: it leads while the service runs, says whether it is ready, and leaves when the service ends. */
import { hasEngine, join } from "../cluster/join.ts";
import type { JoinOptions, Leadership, Member } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";

/** Whether this process is of use to those who call it. `why` says what is missing; null where nothing is. */
export interface Health {
  readonly ready: boolean;
  readonly why: string | null;
}

/** Work that does not end when its leadership does is waited for so long, and then the member leaves. */
const LAST_WORK_MS = 5_000;

/** Over members, or over an engine that others run: then it is a `Coordination<EngineMember>`. */
export class Coordination<M extends Member | EngineMember = Member> {
  readonly member: M;
  readonly #stopping = new AbortController();
  readonly #leading = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  /** @param member is left when this is closed. */
  constructor(member: M) {
    this.member = member;
  }

  /** Joins as `join()` does. @throws what `join()` throws */
  static join(options: JoinOptions): Promise<Coordination>;
  static join(options: EngineJoinOptions): Promise<Coordination<EngineMember>>;
  static join(options: JoinOptions | EngineJoinOptions): Promise<Coordination<Member | EngineMember>>;
  static async join(options: JoinOptions | EngineJoinOptions): Promise<Coordination<Member | EngineMember>> {
    return new Coordination<Member | EngineMember>(hasEngine(options) ? await join(options) : await join(options));
  }

  /** Aborted as the service begins to shut down, while this process is still a member. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /**
   * Does `work` while this process leads the election of that name, and again whenever it comes to lead again: one process
   * among all does it. The work's `signal` is aborted as leadership is lost, and as the service shuts down.
   *
   * @returns once the work is done while it leads, or the service shuts down.
   * @throws what the work throws while it leads, and CoordinationError where this member can lead no more
   */
  lead(name: string, work: (leadership: Leadership) => void | Promise<void>): Promise<void> {
    const led = this.#lead(name, work);
    const ended = led.catch(() => {}).then(() => void this.#leading.delete(ended));
    this.#leading.add(ended);
    return led;
  }

  /** Ready: it has joined, reaches a majority of the members, and knows the leader of their log; or the engine keeps its session. */
  health(): Health {
    if (this.signal.aborted) return { ready: false, why: "this process is shutting down" };
    return "engine" in this.member ? healthOverEngine(this.member) : healthOfMember(this.member);
  }

  /** Ends all that leads here, through its signal; this process is a member still. */
  stop(): void {
    if (this.signal.aborted) return;
    this.#stopping.abort(new CoordinationError("member-left", "lost", "this process is shutting down"));
  }

  /** Stops, and leaves: locks and leaderships are given back, so others need not wait for them. Twice is once. */
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
          isLost = leadership.signal.aborted; // Looked at here: the end of the work ends leadership, too.
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

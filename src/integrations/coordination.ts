/**
 * A member inside a Node service. It takes part in elections while the service runs, reports whether it is ready, and
 * leaves when the service ends.
 */
import { hasEngine, join } from "../cluster/join.ts";
import type { JoinOptions, Leadership, Member } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import type { EngineJoinOptions, EngineMember } from "../cluster/services/external-engine.ts";

/** Whether this process is ready to serve its callers. */
export interface Health {
  /** Whether this process can acquire locks and lead. */
  readonly ready: boolean;
  /** The obstacle, as text for operators. Null if the process is ready. */
  readonly why: string | null;
}

/** When closing, how long to wait for work that continues after it has lost leadership. */
const LAST_WORK_MS = 5_000;

/** A member of a cluster or of an external engine. With an engine, its type is `Coordination<EngineMember>`. */
export class Coordination<M extends Member | EngineMember = Member> {
  /** The member, used for locks, elections, channels and shared state. */
  readonly member: M;
  readonly #stopping = new AbortController();
  readonly #leading = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  /** @param member the member, which leaves when this object is closed */
  constructor(member: M) {
    this.member = member;
  }

  /**
   * Calls `join()`.
   * @throws the errors of `join()`
   */
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
   * Runs `work` while this process is the leader in the election with this name, and again each time it is elected.
   * Only one process runs it at a time. The `signal` passed to `work` is aborted when leadership is lost, and when the
   * service shuts down.
   *
   * @returns once the work has ended while this process is the leader, or the service shuts down
   * @example
   * await coordination.lead("nightly-report", async ({ signal, token }) => {
   *   while (!signal.aborted) await writeReport({ token, signal });
   * });
   * @throws errors that the work throws while this process is the leader, and CoordinationError if this member can no
   * longer lead
   */
  lead(name: string, work: (leadership: Leadership) => void | Promise<void>): Promise<void> {
    const led = this.#lead(name, work);
    const ended = led.catch(() => {}).then(() => void this.#leading.delete(ended));
    this.#leading.add(ended);
    return led;
  }

  /**
   * Returns whether this process is ready. A member is ready if it has joined, can reach a majority of the members, and
   * knows who the leader of their log is. With an engine, it is ready if it has a session.
   */
  health(): Health {
    if (this.signal.aborted) return { ready: false, why: "this process is shutting down" };
    return "engine" in this.member ? healthOverEngine(this.member) : healthOfMember(this.member);
  }

  /** Aborts all work that requires leadership, through its signal. This process remains a member. */
  stop(): void {
    if (this.signal.aborted) return;
    this.#stopping.abort(new CoordinationError("member-left", "lost", "this process is shutting down"));
  }

  /**
   * Stops and leaves. Releases locks and leaderships, so that other processes do not have to wait for them. Further
   * calls have no effect.
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
          isLost = leadership.signal.aborted; // Read this here, since the end of the work also ends leadership.
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
  if (!hasQuorum)
    return {
      ready: false,
      why: `can reach only ${reachable} of ${peers.length + 1} members, which is not a majority`,
    };
  if (shared !== null && shared.leader === null) return { ready: false, why: "does not know who leads the log" };
  return { ready: true, why: null };
}

function healthOverEngine({ engine, hasSession, signal }: EngineMember): Health {
  if (signal.aborted) return { ready: false, why: `this ${engine} member has left` };
  return hasSession ? { ready: true, why: null } : { ready: false, why: `has no session with ${engine}` };
}

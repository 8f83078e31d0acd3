/** Three members in separate processes, which can be killed, paused and restarted. */
import { join } from "node:path";
import type { Timing } from "../../src/cluster/services/timing.ts";
import { eventually, freePorts, sharedNowMs, Workers, within } from "../workers.ts";
import type { Calls, MemberOptions, Notification, Standing } from "./member.ts";

const IDS = [1, 2, 3] as const;

/** An incident that happens to a member. */
export type Incident = "SIGKILL" | "SIGSTOP" | "leave()";

export class Group extends Workers<Calls, Notification> {
  readonly ids: readonly number[] = IDS;
  readonly #timing: Timing;
  readonly #members: Readonly<Record<number, string>>;
  readonly #waiting = new Set<(from: number, notification: Notification) => void>();

  private constructor(timing: Timing, ports: readonly number[]) {
    super("services", "services/member");
    this.#timing = timing;
    this.#members = Object.fromEntries(IDS.map((id, at) => [id, `127.0.0.1:${ports[at]}`]));
    this.onNotification = (from, notification) => {
      for (const waiting of [...this.#waiting]) waiting(from, notification);
    };
  }

  /**
   * Starts the members and waits until the log has a leader and the channel has a view with all members. Retries with
   * different ports, because another program may take a free port before the member listens on it.
   */
  static async of(timing: Timing, attempts = 3): Promise<Group> {
    const group = new Group(timing, await freePorts(IDS.length));
    for (const id of IDS) group.#startMember(id);
    try {
      await group.settled();
      return group;
    } catch (error) {
      group.end();
      if (attempts === 1) throw error;
      return Group.of(timing, attempts - 1);
    }
  }

  #startMember(id: number): void {
    const options: MemberOptions = {
      id,
      members: this.#members,
      dataDir: join(this.folder, String(id)),
      timing: this.#timing,
    };
    this.start(id, options);
  }

  /** Resolves with the next matching notification. */
  next(what: string, fits: (from: number, notification: Notification) => boolean): Promise<Notification> {
    return within(what, (resolve) => {
      const waiting = (from: number, notification: Notification): void => {
        if (!fits(from, notification)) return;
        this.#waiting.delete(waiting);
        resolve(notification);
      };
      this.#waiting.add(waiting);
    });
  }

  /** Waits until all members can reach each other, agree on the leader of the log, and are in the same view. */
  settled(): Promise<Standing & { readonly leader: number }> {
    return eventually("agreement of all members on leader and view", async () => {
      const [first, ...others] = await Promise.all(IDS.map((id) => this.call(id, "standing")));
      if (first === undefined || first.leader === null) return null;
      const isWhole = ({ reachable, isInView, viewMembers }: Standing): boolean =>
        reachable === IDS.length && isInView && viewMembers.length === IDS.length;
      const agrees = ({ view, leader }: Standing): boolean => view === first.view && leader === first.leader;
      return [first, ...others].every(isWhole) && others.every(agrees) ? { ...first, leader: first.leader } : null;
    });
  }

  /**
   * Makes the incident happen to a member. `atMs` is the time of the incident on the shared clock; `over` resolves with
   * the duration of the leave.
   */
  inflict(incident: Incident, id: number): { readonly atMs: number; readonly over: Promise<number | null> } {
    const atMs = sharedNowMs();
    if (incident === "leave()") return { atMs, over: this.call(id, "leave") };
    this.signal(String(id), incident);
    return { atMs, over: Promise.resolve(null) };
  }

  /** Restarts or resumes the member after an incident. */
  async repair(incident: Incident, id: number): Promise<void> {
    if (incident === "SIGSTOP") return this.signal(String(id), "SIGCONT");
    this.signal(String(id), "SIGKILL");
    await this.ended(String(id));
    this.#startMember(id);
  }
}

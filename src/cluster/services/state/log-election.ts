/**
 * An election on the replicated log. Each election has a single grant. Its holder leads until it releases the grant or
 * its session ends.
 */
import { UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { WaitId } from "../../../protocols/service/coordination-service/operations.ts";
import { sleep } from "../../../runtime/platform/sleep.ts";
import type { InstanceStatus, LeaderChange } from "../api.ts";
import { type ElectionEngine, LocalElection } from "../local-election.ts";
import { ASK_AGAIN_MS, isOutcomeUnknown, isPassing } from "./refusals.ts";
import type { Service, Told } from "./service.ts";

/**
 * The retry interval. It is long because there may be many elections, and all of them retry when the log is overloaded.
 */
const LOOK_AGAIN_MS = 250;

interface Leader {
  readonly node: NodeId;
  readonly token: number;
  readonly note: string;
}

export interface LogElectionOptions {
  readonly name: string;
  onChange(change: LeaderChange): void;
}

/** Campaigns for the grant of one election. */
export class LogElection {
  readonly local: LocalElection;
  readonly #service: Service;
  readonly #options: LogElectionOptions;
  readonly #forget: () => void;
  #leader: Leader | null = null;
  /** The metadata to publish while this member leads, as JSON. Empty if there is none. */
  #note = "";
  /** The number of the request. Null unless this member campaigns or leads. */
  #wait: WaitId | null = null;
  /** The token of this member's grant, once the session has been confirmed. */
  #own: number | null = null;
  /** The token of this member's grant, before the session has been confirmed. */
  #granted: number | null = null;
  /** The number of leader changes reported so far. It reveals whether the answer to an earlier query is outdated. */
  #told = 0;

  constructor(service: Service, options: LogElectionOptions) {
    this.#service = service;
    this.#options = options;
    this.local = new LocalElection(this.#engine());
    if (service.closed !== null) this.local.close(service.closed); // There will be no more events.
    const stop = [service.follow("grants", this.#name), service.listen((event, until) => this.#hear(event, until))];
    this.#forget = () => {
      for (const each of stop) each();
    };
    this.#look();
  }

  /**
   * Sets the metadata for this process's next campaign.
   * @throws UsageError if a campaign with different metadata is running
   */
  announce(note: string): void {
    if (this.local.isCampaigning && note !== this.#note)
      throw new UsageError(
        "other-setting",
        unexpected(
          `the metadata of the election "${this.#options.name}"`,
          `${shown(this.#note)}, as in this process's running campaign`,
          note === "" ? undefined : JSON.parse(note),
        ),
      );
    this.#note = note;
  }

  get isUsed(): boolean {
    return this.local.isUsed || this.#wait !== null;
  }

  get status(): InstanceStatus {
    const role = this.#own !== null ? "leader" : this.#wait !== null ? "candidate" : "follower";
    const { leader, held } = this.local;
    return { kind: "election", name: this.#options.name, role, leader, ...held };
  }

  retire(): void {
    this.#forget();
    this.local.retire();
  }

  get #name(): string {
    return `election/${this.#options.name}`;
  }

  #engine(): ElectionEngine {
    const election = this;
    const { platform, self, counts } = this.#service;
    const { name, onChange } = this.#options;
    return {
      ...{ platform, name, self, counts, onChange },
      get leader() {
        return election.#leader?.node ?? null;
      },
      stand: () => this.#stand(),
      resign: () => this.#resign(),
    };
  }

  #stand(): void {
    if (this.#wait !== null) return;
    this.#wait = this.#service.number();
    this.#submit(this.#wait);
  }

  #submit(wait: WaitId): void {
    const note = this.#note;
    const acquire = {
      type: "acquire",
      name: this.#name,
      wait,
      mode: "exclusive",
      permits: 1,
      capacity: 1,
      note,
    } as const;
    this.#service
      .submit(acquire, () => this.#wait === wait)
      .then(
        ({ result }) => {
          if (result.type === "granted") this.#win(wait, result.token);
        },
        (error: unknown) => void this.#notAsked(wait, error as Error),
      );
  }

  async #notAsked(wait: WaitId, error: Error): Promise<void> {
    const isWanted = (): boolean => this.#wait === wait && this.#granted === null && this.#service.closed === null;
    if (!isWanted()) return;
    const mayStand = isOutcomeUnknown(error);
    if (!mayStand && !isPassing(error)) {
      this.#wait = null;
      return this.local.refuse(error);
    }
    await sleep(this.#service.platform.timers, ASK_AGAIN_MS, { ref: false });
    if (!isWanted()) return;
    if (mayStand) this.#askAnew(wait);
    else this.#submit(wait);
  }

  /** Withdraws a request that may be in the queue, or releases its grant, and makes a new request. */
  #askAnew(wait: WaitId): void {
    this.#giveBack(wait);
    this.#wait = this.#service.number();
    this.#submit(this.#wait);
  }

  #resign(): void {
    const wait = this.#wait;
    if (wait === null) return;
    const own = this.#own;
    this.#wait = null;
    this.#own = null;
    this.#granted = null;
    if (own !== null) this.#change(null);
    this.#giveBack(wait);
  }

  #giveBack(wait: WaitId): void {
    const { session, closed, platform } = this.#service;
    if (closed !== null) return;
    const withdrawal = { type: "withdraw", name: this.#name, wait } as const;
    const isWanted = (): boolean => session === this.#service.session;
    this.#service.submit(withdrawal, isWanted).catch(async (error: unknown) => {
      if (!isPassing(error)) return;
      await sleep(platform.timers, ASK_AGAIN_MS, { ref: false });
      if (session === this.#service.session) this.#giveBack(wait);
    });
  }

  #hear(event: Told, until: number | null): void {
    if (event.type === "confirmed") return this.#confirm(until);
    if (event.type === "lost") return this.#lose(event.why);
    if (event.type === "closed") return this.local.close(event.reason);
    if (event.type === "restored") {
      if (this.#wait !== null && this.#granted === null) this.#submit(this.#wait);
      return this.#lookAgain();
    }
    if (!("name" in event) || event.name !== this.#name) return;
    if (event.type === "granted") {
      const isOwn = this.#service.isOwn(event.session);
      if (isOwn && event.wait === this.#wait) this.#win(event.wait, event.token);
      else if (this.#service.isOfThisRun(event.session))
        this.#giveBack(event.wait); // The grant is no longer wanted.
      else this.#lookAgain();
    } else if (event.type === "released") {
      this.#told += 1;
      if (event.token === this.#leader?.token) this.#change(null);
    }
  }

  #lookAgain(): void {
    this.#told += 1;
    this.#look();
  }

  #win(wait: WaitId, token: number): void {
    if (wait !== this.#wait || this.#granted !== null) return;
    this.#granted = token;
    this.#told += 1;
    if (this.#service.until !== null) this.#confirm(this.#service.until);
  }

  #confirm(until: number | null): void {
    const token = this.#granted;
    if (token === null || until === null) return;
    if (this.#own === null) {
      this.#own = token;
      this.#change({ node: this.#service.self, token, note: this.#note });
    }
    this.local.confirmed(token, until);
  }

  /**
   * Gives up leadership when the session has ended, since another member can soon acquire the grant. A campaign
   * continues in the next session.
   */
  #lose(why: string | undefined): void {
    const own = this.#own;
    this.#own = null;
    this.#granted = null;
    if (own !== null) this.#change(null, why);
    // Requests that have not been sent go to the log in the next session.
    if (this.#wait !== null) this.#askAnew(this.#wait);
  }

  /**
   * Queries the leader when no event reports it: after the election has been opened, and if the holder's session is
   * unknown to this member. A grant held by this member does not make it the leader until its session is confirmed,
   * since the grant may belong to an earlier incarnation or to a session that has ended.
   */
  #look(): void {
    const told = this.#told;
    const isWanted = (): boolean => told === this.#told && !this.local.isRetired;
    this.#service.query({ type: "holders", name: this.#name }, isWanted).then(
      ({ answer }) => {
        if (told !== this.#told || this.#own !== null) return;
        const [holder] = answer.holders;
        if (holder === undefined) {
          if (this.#leader !== null) this.#change(null);
        } else if (holder.member !== this.#service.self && holder.token !== this.#leader?.token)
          this.#change({ node: holder.member, token: holder.token, note: holder.note });
      },
      () => void this.#lookLater(told),
    );
  }

  /** Queries again after a delay, because the query failed: the log was overloaded, or the member is leaving. */
  async #lookLater(told: number): Promise<void> {
    await sleep(this.#service.platform.timers, LOOK_AGAIN_MS, { ref: false });
    if (told === this.#told && !this.local.isRetired && this.#service.closed === null) this.#look();
  }

  #change(leader: Leader | null, why?: string): void {
    const before = this.#leader;
    this.#leader = leader;
    if (leader === null) {
      return this.local.deposed(before?.token ?? null, why);
    }
    this.local.elected(leader.node, leader.token, metadataIn(leader.note));
  }
}

/** Parses the metadata. If another program has written invalid JSON, the leader has no metadata. */
function metadataIn(note: string): unknown {
  try {
    return note === "" ? undefined : JSON.parse(note);
  } catch {
    return undefined;
  }
}

const shown = (note: string): string => (note === "" ? "absent" : note);

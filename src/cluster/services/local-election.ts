/** An election in this process: its campaign, the work that runs while this process leads, and its watches. */
import { UsageError } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Counts } from "../../runtime/metrics.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { Election, LeaderChange, Leadership, LeadOptions } from "./api.ts";
import { CoordinationError } from "./coordination-error.ts";
import { requireOptions, requireRule, signal, work as workRule } from "./known-options.ts";
import { onAbort } from "./on-abort.ts";
import { type Feed, feed } from "./reading.ts";
import { isGivenUp, OwnTenure } from "./tenure.ts";

/** The log, as an election uses it. */
export interface ElectionEngine {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly name: string;
  readonly self: NodeId;
  readonly counts: Pick<Counts, "leaderships">;
  /** The current leader, even if the event that reports it has not arrived yet. */
  readonly leader: NodeId | null;
  /** Requests the grant. */
  stand(): void;
  /** Withdraws the request, or releases the grant. */
  resign(): void;
  /** Called when the leader changes, as far as this member knows. */
  onChange(change: LeaderChange): void;
}

/** The local side of one election: this process's campaign, and its watches. */
export class LocalElection {
  readonly name: string;
  readonly #engine: ElectionEngine;
  readonly #changes: Feed<LeaderChange> = feed((_waiting, latest) => [latest]);
  #now: LeaderChange = NOBODY;
  #said: LeaderChange = NOBODY;
  /** This member's current leadership, whether or not its work is running. */
  #tenure: OwnLeadership | null = null;
  #campaign: Campaign | null = null;
  #closed: CoordinationError | null = null;
  #isRetired = false;

  constructor(engine: ElectionEngine) {
    this.#engine = engine;
    this.name = engine.name;
  }

  get isUsed(): boolean {
    return this.#campaign !== null || this.#changes.isRead;
  }

  get isCampaigning(): boolean {
    return this.#campaign !== null;
  }

  get isRetired(): boolean {
    return this.#isRetired;
  }

  retire(): void {
    this.#isRetired = true;
  }

  get leader(): NodeId | null {
    return this.#now.leader;
  }

  get held() {
    return { token: this.#tenure?.token ?? null, isHeld: this.#tenure?.isHeld ?? false, waiting: 0 };
  }

  /** Whether this process leads and its work is running. */
  get leads(): boolean {
    return this.#campaign !== null && this.#tenure?.isHeld === true;
  }

  watch(options: { signal?: AbortSignal | undefined } = {}): AsyncIterableIterator<LeaderChange> {
    requireOptions("watch", options, { signal });
    return this.#changes.read(options.signal, this.#now);
  }

  async lead<T>(work: (leadership: Leadership) => T | Promise<T>, options: LeadOptions = {}): Promise<T> {
    requireOptions("lead", options, leadRules);
    requireRule("the work of lead()", work, workRule);
    const { signal } = options;
    if (this.#campaign !== null)
      throw new UsageError("already-campaigning", `this process already campaigns in ${this.#what}: call lead() once`);
    if (this.#closed !== null) throw this.#never(this.#closed);
    const campaign = new Campaign();
    this.#campaign = campaign;
    const stop = (): void => this.#stop(this.#aborted(signal as AbortSignal));
    const forget = onAbort(signal, stop);
    try {
      if (signal?.aborted === true) throw this.#aborted(signal);
      return await this.#campaigning(campaign, work);
    } finally {
      forget();
      this.#campaign = null;
      campaign.finished();
      if (this.#closed === null) this.#rest();
    }
  }

  #rest(): void {
    this.#tenure?.end(new CoordinationError("released", "released", `${this.#what} continues without this member`));
    if (this.leader === this.#engine.self) this.#change(NOBODY);
    this.#engine.resign();
  }

  /** @param metadata published by the leader */
  elected(leader: NodeId, token: number, metadata: unknown): void {
    const { self } = this.#engine;
    if (leader === self && this.#engine.leader !== self) return; // This member has stepped down in the meantime.
    if (this.#engine.leader === null) return; // Leadership has been lost in the meantime.
    const isSame = leader === this.#now.leader && token === this.#now.token;
    if (isSame && this.#tenure?.isHeld !== false) return;
    this.#change({ leader, token, ...(metadata === undefined ? {} : { metadata }) });
    if (leader === self) this.#beginTenure(token);
  }

  /** @param token the token of the leadership that has ended, or null for any leadership */
  deposed(token: number | null, why?: string): void {
    if (token === null || token === this.#now.token) this.#change(NOBODY, why);
  }

  /** @param until when the leadership expires unless it is renewed, according to the platform's clock */
  confirmed(token: number, until: number | null): void {
    if (this.#tenure?.token === token) this.#tenure.confirm(until);
  }

  /** Ends the campaign. Resolves once its work has ended. */
  async stopWorking(reason: CoordinationError): Promise<void> {
    const campaign = this.#campaign;
    this.#closed = reason;
    this.#stop(reason);
    await campaign?.done;
    this.#engine.resign();
  }

  /** Ends the campaign with this error once its work has ended. Called when the log has refused the candidacy. */
  refuse(error: Error): void {
    this.#campaign?.refuse(error);
  }

  close(reason: CoordinationError): void {
    this.#closed = reason;
    this.#stop(reason);
    this.#tenure?.end(reason);
    this.#changes.close(reason);
  }

  /** Repeatedly waits to be elected and runs the work. */
  async #campaigning<T>(campaign: Campaign, work: (leadership: Leadership) => T | Promise<T>): Promise<T> {
    this.#engine.stand();
    for (;;) {
      const tenure = await this.#nextTenure(campaign);
      if (tenure.isHeld) {
        const result = await resultOf(work, this.#counted(tenure));
        if (campaign.stopped !== null) throw this.#reasonAfter(campaign.stopped);
        if (tenure.isHeld || (result.failed && !comesOf(tenure, result.error))) return outcomeOf(result);
      }
      if (tenure.mustStand) this.#engine.stand();
    }
  }

  #counted(tenure: OwnLeadership): OwnLeadership {
    const { leaderships } = this.#engine.counts;
    leaderships.won += 1;
    tenure.onEnd = (reason) => {
      if (!isGivenUp(reason)) leaderships.lost += 1;
    };
    return tenure;
  }

  #nextTenure(campaign: Campaign): Promise<OwnLeadership> {
    return new Promise((resolve, reject) => {
      if (campaign.stopped !== null) return reject(this.#never(campaign.stopped));
      if (campaign.refused !== null) return reject(campaign.refused);
      campaign.wait = { elected: resolve, stopped: (why) => reject(this.#never(why)), refused: reject };
      if (this.#tenure?.isHeld === true) campaign.elected(this.#tenure);
    });
  }

  #stop(reason: CoordinationError): void {
    this.#campaign?.stop(reason);
    if (this.#campaign !== null) this.#tenure?.end(new CoordinationError(reason.code, "lost", reason.message));
  }

  #beginTenure(token: number): void {
    const tenure: OwnLeadership = new OwnLeadership(this.#engine.platform, token, this.name, () =>
      this.#overdue(tenure),
    );
    this.#tenure = tenure;
    this.#campaign?.elected(tenure);
  }

  #change(change: LeaderChange, why?: string): void {
    const { leader, token } = change;
    this.#now = change;
    this.#tenure?.lose(why);
    this.#tenure = null;
    this.#changes.publish(this.#now);
    if (leader !== this.#said.leader || token !== this.#said.token) this.#engine.onChange(this.#now);
    this.#said = this.#now;
  }

  /** Resigns after the deadline has passed. The algorithm may still consider this member the leader. */
  #overdue(tenure: OwnLeadership): void {
    if (tenure !== this.#tenure) return;
    this.#change(NOBODY);
    tenure.mustStand = true;
    this.#engine.resign();
  }

  get #what(): string {
    return `the election "${this.name}"`;
  }

  #aborted(signal: AbortSignal): CoordinationError {
    const text = `the campaign in ${this.#what} was aborted`;
    return new CoordinationError("lead-aborted", "never-acquired", text, { cause: signal.reason });
  }

  #never({ code, message, cause }: CoordinationError): CoordinationError {
    return new CoordinationError(code, "never-acquired", message, { cause });
  }

  #reasonAfter({ code, message, cause }: CoordinationError): CoordinationError {
    return new CoordinationError(code, "lost", message, { cause });
  }
}

const leadRules = { signal };

const NOBODY: LeaderChange = { leader: null, token: null };

class OwnLeadership extends OwnTenure implements Leadership {
  /** Whether this process gave up the leadership and must campaign again. */
  mustStand = false;
  /** Called when the leadership ends, if any work was running. */
  onEnd: (reason: CoordinationError) => void = () => {};

  constructor(
    platform: Pick<Platform, "clock" | "timers">,
    token: number,
    readonly name: string,
    onOverdue: () => void,
  ) {
    super({ platform, token, what: `the leadership of "${name}"`, onOverdue, onEnd: (reason) => this.onEnd(reason) });
  }
}

/** One call to `lead`. */
class Campaign {
  stopped: CoordinationError | null = null;
  refused: Error | null = null;
  wait: {
    elected(tenure: OwnLeadership): void;
    stopped(why: CoordinationError): void;
    refused(error: Error): void;
  } | null = null;
  finished: () => void = () => {};
  readonly done = new Promise<void>((resolve) => {
    this.finished = resolve;
  });

  elected(tenure: OwnLeadership): void {
    this.wait?.elected(tenure);
    this.wait = null;
  }

  refuse(error: Error): void {
    this.refused = error;
    this.wait?.refused(error);
    this.wait = null;
  }

  stop(why: CoordinationError): void {
    this.stopped ??= why;
    this.wait?.stopped(this.stopped);
    this.wait = null;
  }
}

type Result<T> = { readonly failed: false; readonly value: T } | { readonly failed: true; readonly error: unknown };

async function resultOf<T>(
  work: (leadership: Leadership) => T | Promise<T>,
  tenure: OwnLeadership,
): Promise<Result<T>> {
  try {
    return { failed: false, value: await work(tenure) };
  } catch (error) {
    return { failed: true, error };
  }
}

function outcomeOf<T>(result: Result<T>): T {
  if (result.failed) throw result.error;
  return result.value;
}

/** Whether work failed because its signal was aborted. */
const comesOf = ({ signal }: OwnLeadership, error: unknown): boolean =>
  error === signal.reason || (error instanceof Error && (error.name === "AbortError" || error.cause === signal.reason));

/**
 * A program's handle for an election. The underlying election is closed while it is unused, and reopened for the next
 * use. A program can therefore keep one handle or create one for each use.
 */
export class ElectionHandle implements Election {
  readonly #open: () => LocalElection;
  readonly #find: () => LocalElection | null;
  readonly #beforeLead: () => void;
  readonly name: string;
  #local: LocalElection;

  /**
   * @param find returns the open election with this name, if there is one
   * @param beforeLead called before each campaign of this handle, when the election is open. It may throw
   */
  constructor(open: () => LocalElection, find: () => LocalElection | null, beforeLead: () => void = () => {}) {
    this.#open = open;
    this.#find = find;
    this.#beforeLead = beforeLead;
    this.#local = open();
    this.name = this.#local.name;
  }

  /** The leader. Does not open the election, since a closed election has no leader. */
  get leader(): NodeId | null {
    const local = this.#local.isRetired ? this.#find() : this.#local;
    return local?.leader ?? null;
  }

  async lead<T>(work: (leadership: Leadership) => T | Promise<T>, options?: LeadOptions): Promise<T> {
    const local = this.#now;
    this.#beforeLead();
    return local.lead(work, options);
  }

  watch(options?: Parameters<LocalElection["watch"]>[0]): AsyncIterableIterator<LeaderChange> {
    return this.#now.watch(options);
  }

  get #now(): LocalElection {
    if (this.#local.isRetired) this.#local = this.#open();
    return this.#local;
  }
}

/** The election as this process uses it: whether it campaigns, what it does while it leads, and who watches. */
import { UsageError } from "../../core/errors.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { LeaderChange, Leadership, LeadOptions } from "./api.ts";
import { CoordinationError } from "./coordination-error.ts";
import type { AlgorithmEvent, Engine, LocalSide } from "./engine.ts";
import { leaderToSay } from "./followed-leader.ts";
import { requireOptions, requireRule, signal, work as workRule } from "./known-options.ts";
import { onAbort } from "./on-abort.ts";
import { type Feed, feed } from "./reading.ts";
import { isGivenUp, OwnTenure } from "./tenure.ts";

type Token = number | null;

export class LocalElection implements LocalSide {
  readonly name: string;
  readonly algorithm: string;
  readonly #engine: Engine;
  readonly #changes: Feed<LeaderChange<Token>> = feed((_waiting, latest) => [latest]);
  #now: LeaderChange<Token> = NOBODY;
  #said: LeaderChange<Token> = NOBODY;
  /** As the last event had it. */
  #elected: LeaderChange<Token> = NOBODY;
  /** While this member leads, whether it works or not. */
  #tenure: OwnLeadership | null = null;
  #campaign: Campaign | null = null;
  #closed: CoordinationError | null = null;
  #isRetired = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.name = engine.setting.name;
    this.algorithm = engine.setting.algorithm;
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

  /** Whether this process leads, and not only as the algorithm sees it: it has work to do. */
  get leads(): boolean {
    return this.#campaign !== null && this.#tenure?.isHeld === true;
  }

  watch(options: { signal?: AbortSignal | undefined } = {}): AsyncIterableIterator<LeaderChange<Token>> {
    requireOptions("watch", options, { signal });
    return this.#changes.read(options.signal, this.#now);
  }

  async lead<T>(work: (leadership: Leadership<Token>) => T | Promise<T>, options: LeadOptions = {}): Promise<T> {
    requireOptions("lead", options, leadRules);
    requireRule("the work of lead()", work, workRule);
    const { signal } = options;
    if (this.#campaign !== null)
      throw new UsageError("already-campaigning", `this process campaigns in ${this.#what} already: once is enough`);
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

  /** @throws UsageError where the algorithm does not go by rank. */
  rank(rank: number): void {
    if (!this.#engine.takes("rank"))
      throw new UsageError(
        "bad-option",
        `expected rank of election() to be absent: ${this.algorithm} does not go by rank`,
      );
    this.#engine.command({ type: "rank", rank } as Tagged);
  }

  /** Members that do not campaign are not candidates, where the algorithm knows such a thing. */
  resign(): void {
    if (this.#engine.takes("resign")) this.#engine.command({ type: "resign" });
  }

  /** The campaign is over. */
  #rest(): void {
    this.#tenure?.end(new CoordinationError("released", "released", `${this.#what} goes on without this member`));
    const leads = this.leader === this.#engine.self;
    if (!this.#engine.takes("resign")) {
      if (leads) this.#beginTenure(this.#now.token); // It goes on leading, with nothing to do.
      return;
    }
    if (leads) this.#change(NOBODY);
    this.resign();
  }

  onEvent(event: AlgorithmEvent, until: number | null): void {
    const epoch = typeof event.epoch === "number" ? event.epoch : null;
    if (event.type === "elected") this.#hearOf(leaderIn(event, epoch));
    else if (event.type === "deposed" && (epoch === null || epoch === this.#now.token))
      this.#change(NOBODY, typeof event.why === "string" ? event.why : undefined);
    else if (event.type === "confirmed" && this.#tenure?.token === epoch) this.#tenure.confirm(until);
  }

  /** After a step: the leader that this member follows may be lost, or found again. */
  lookAgain(): void {
    const leader = leaderToSay(this.#now.leader, this.#elected.leader, this.#engine);
    if (leader === this.#now.leader) return;
    this.#change(leader === null ? NOBODY : { ...this.#elected, leader });
  }

  /** Ends a campaign; resolves once its work has ended. */
  async stopWorking(reason: CoordinationError): Promise<void> {
    const campaign = this.#campaign;
    this.#closed = reason;
    this.#stop(reason);
    await campaign?.done;
    this.resign();
  }

  /** The algorithm would not let this member stand: the campaign ends with that error, once no work goes on any more. */
  refuse(error: Error): void {
    this.#campaign?.refuse(error);
  }

  close(reason: CoordinationError): void {
    this.#closed = reason;
    this.#stop(reason);
    this.#tenure?.end(reason);
    this.#changes.close(reason);
  }

  /** Waits to be elected and works, again and again. */
  async #campaigning<T>(campaign: Campaign, work: (leadership: Leadership<Token>) => T | Promise<T>): Promise<T> {
    this.#stand();
    for (;;) {
      const tenure = await this.#nextTenure(campaign);
      if (tenure.isHeld) {
        const result = await resultOf(work, this.#counted(tenure));
        if (campaign.stopped !== null) throw this.#reasonAfter(campaign.stopped);
        if (tenure.isHeld || (result.failed && !comesOf(tenure, result.error))) return outcomeOf(result);
      }
      if (tenure.mustStand) this.#stand();
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

  #stand(): void {
    if (this.#engine.takes("stand")) this.#engine.command({ type: "stand" });
    else if (this.leader === null && this.#engine.takes("call")) this.#engine.command({ type: "call" });
  }

  #stop(reason: CoordinationError): void {
    this.#campaign?.stop(reason);
    if (this.#campaign !== null) this.#tenure?.end(new CoordinationError(reason.code, "lost", reason.message));
  }

  #hearOf(elected: LeaderChange<Token>): void {
    const { self } = this.#engine;
    const { leader, token } = elected;
    this.#elected = elected;
    if (leader === self && this.#engine.leader !== self) return; // It has stepped down since.
    if (this.#engine.leader === null) return; // It has been lost since.
    const isSame = leader === this.#now.leader && token === this.#now.token;
    if (isSame && this.#tenure?.isHeld !== false) return;
    this.#change(elected);
    if (leader === self) this.#beginTenure(token);
  }

  #beginTenure(token: Token): void {
    const tenure: OwnLeadership = new OwnLeadership(this.#engine.platform, token, this.name, () =>
      this.#overdue(tenure),
    );
    this.#tenure = tenure;
    this.#campaign?.elected(tenure);
  }

  #change(change: LeaderChange<Token>, why?: string): void {
    const { leader, token } = change;
    this.#now = change;
    this.#tenure?.lose(why);
    this.#tenure = null;
    this.#changes.publish(this.#now);
    if (leader !== this.#said.leader || token !== this.#said.token) this.#engine.sayLeader(this.#now);
    this.#said = this.#now;
  }

  /** The clock was faster than the algorithm: it may still believe that it leads. */
  #overdue(tenure: OwnLeadership): void {
    if (tenure !== this.#tenure) return;
    this.#change(NOBODY);
    tenure.mustStand = this.#engine.takes("resign");
    if (tenure.mustStand) this.#engine.command({ type: "resign" });
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

const NOBODY: LeaderChange<Token> = { leader: null, token: null };

const leaderIn = ({ leader, metadata }: AlgorithmEvent, token: Token): LeaderChange<Token> => ({
  leader: leader as NodeId,
  token,
  ...(metadata === undefined ? {} : { metadata }),
});

class OwnLeadership extends OwnTenure<Token> implements Leadership<Token> {
  /** It was given up by this process, which has to stand again. */
  mustStand = false;
  /** Called when it ends, once there is work under it. */
  onEnd: (reason: CoordinationError) => void = () => {};

  constructor(
    platform: Pick<Platform, "clock" | "timers">,
    token: Token,
    readonly name: string,
    onOverdue: () => void,
  ) {
    super({ platform, token, what: `the leadership of "${name}"`, onOverdue, onEnd: (reason) => this.onEnd(reason) });
  }
}

/** One call of `lead`. */
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
  work: (leadership: Leadership<Token>) => T | Promise<T>,
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

/** Locks and elections through a member that runs on this machine already: this process is no member itself. */

import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { askServiceStatus, complaint } from "../cluster/admin-client.ts";
import { exchange } from "../cluster/http-exchange.ts";
import { eachLine } from "../cluster/local/lines.ts";
import type { AcquireOptions, Leadership, LeadOptions } from "../cluster/services/api.ts";
import { type CoordinationCode, CoordinationError } from "../cluster/services/coordination-error.ts";
import { requireName } from "../cluster/services/instance-name.ts";
import { fromMonotonicNs } from "../cluster/services/session-clock.ts";
import { type SessionWord, wordSchema } from "../cluster/services/session-words.ts";
import { OwnTenure } from "../cluster/services/tenure.ts";
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { MAX_WAIT_MS } from "../runtime/longest-wait.ts";
import { realPlatform } from "../runtime/platform/real.ts";
import { type Access, explainWaiting, missingOf } from "./access.ts";
import { monotonicMs } from "./supervisor/supervisor-lines.ts";

/** A member that runs says at once that it has heard. */
const FIRST_WORD_MS = 5_000;
/** The member hears so often that this process lives, and takes it for dead after as much as that. */
const ALIVE_EVERY_MS = 1_000;
const SILENCE_MS = 5_000;
const EXCHANGE_MS = 1_000;
const MAX_LINE_LENGTH = 16_384;

/** @param member the base URL of its admin pages */
export function throughMember(member: string): Access {
  return {
    mutex: (name) => ({
      name,
      acquire: (options = {}) => acquired({ member, page: "locks", name }, options),
    }),
    election: (name) => ({
      lead: (work, options = {}) => lead({ member, page: "elections", name }, work, options),
    }),
    explainWaiting: (what) => explainWaiting(what, async () => missingOf(await askServiceStatus(member))),
    leave: () => Promise.resolve(),
  };
}

interface Wanted {
  readonly member: string;
  readonly page: "locks" | "elections";
  readonly name: string;
}

/** As `Election` says; what the member lends ends with each leadership, and is asked for anew. */
async function lead<T>(
  wanted: Wanted,
  work: (leadership: Leadership) => T | Promise<T>,
  { signal }: LeadOptions,
): Promise<T> {
  for (;;) {
    const leadership = await acquired(wanted, { signal });
    try {
      const result = await work(leadership);
      if (leadership.isHeld) return result;
    } finally {
      await leadership.release();
    }
  }
}

async function acquired(wanted: Wanted, options: AcquireOptions): Promise<LentGrant> {
  requirePathName(wanted.name);
  return new Promise((resolve, reject) => new Session(wanted, options, resolve, reject));
}

/** @throws UsageError as the member would, and for what no page can be called. */
function requirePathName(name: string): void {
  if (requireName(name) === "." || name === "..")
    throw new UsageError("bad-name", unexpected("the name", "something else than dots", name));
}

/** One request whose answer goes on for as long as something is waited for, and held. */
class Session {
  readonly #wanted: Wanted;
  readonly #options: AcquireOptions;
  readonly #granted: (grant: LentGrant) => void;
  readonly #refused: (error: Error) => void;
  readonly #call: ClientRequest;
  readonly #began = monotonicMs();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #firstWord: NodeJS.Timeout;
  #id: string | null = null;
  #grant: LentGrant | null = null;
  #isOver = false;

  constructor(
    wanted: Wanted,
    options: AcquireOptions,
    granted: (grant: LentGrant) => void,
    refused: (error: Error) => void,
  ) {
    this.#wanted = wanted;
    this.#options = options;
    this.#granted = granted;
    this.#refused = refused;
    const { member, page, name } = wanted;
    const body = JSON.stringify({ silenceMs: SILENCE_MS });
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const url = `${member}/${page}/${encodeURIComponent(name)}`;
    this.#call = request(url, { method: "POST", headers, agent: false }, (response) => this.#answered(response));
    this.#call.on("error", (error: NodeJS.ErrnoException) => this.#gone(error.code ?? error.message));
    this.#call.on("close", () => this.#gone("it has closed the connection"));
    this.#firstWord = this.#after(FIRST_WORD_MS, () => this.#gone(`waited ${FIRST_WORD_MS} ms`));
    const { timeoutMs, signal } = options;
    if (timeoutMs !== undefined && timeoutMs <= MAX_WAIT_MS) {
      const late = `${this.#what} was not acquired within ${timeoutMs} ms`;
      this.#after(timeoutMs, () => this.#abandon("acquire-timeout", late));
    }
    signal?.addEventListener("abort", this.#aborted);
    if (signal?.aborted === true) this.#aborted();
    else this.#call.end(body);
  }

  get #what(): string {
    return `the ${this.#wanted.page === "locks" ? "lock" : "leadership of"} "${this.#wanted.name}"`;
  }

  #answered(response: IncomingMessage): void {
    if (response.statusCode === 200) return eachLine(response, MAX_LINE_LENGTH, (line) => this.#read(line));
    let text = "";
    eachLine(response, MAX_LINE_LENGTH, (line) => {
      text ||= line;
    });
    response.on("end", () => this.#end(refusalOf(response.statusCode ?? 0, text, this.#wanted.member)));
  }

  #read(line: string): void {
    if (this.#isOver) return;
    const word = wordSchema.safeParse(parsed(line));
    if (word.success) this.#take(word.data);
    else this.#gone("it says what this version does not understand");
  }

  #take(word: SessionWord): void {
    switch (word.event) {
      case "waiting":
        clearTimeout(this.#firstWord);
        this.#id = word.session;
        return this.#requireOneClock(word.monotonicNs);
      case "granted":
        return this.#begin(word.token, word.monotonicNs);
      case "certain":
        return this.#confirm(word.monotonicNs);
      case "lost":
        return this.#grant?.lose();
      case "refused": {
        const phase = word.code === "grant-lost" ? "lost" : "never-acquired";
        return this.#end(new CoordinationError(word.code as CoordinationCode, phase, word.message));
      }
      case "released":
        return;
    }
  }

  /** Its reading lies between two of ours, if this is one machine. */
  #requireOneClock(monotonicNs: string): void {
    const said = Number(monotonicNs) / 1e6;
    const now = monotonicMs();
    if (this.#began <= said && said <= now) return;
    const why = `but its clock said ${said} between ${this.#began} and ${now} here: it has to run on this machine`;
    this.#end(new EnvironmentError("different-clocks", `expected ${this.#wanted.member} to be a member here, ${why}`));
  }

  #begin(token: number, monotonicNs: string | null): void {
    this.#grant = new LentGrant(token, this.#wanted.name, this.#what, () => this.#release());
    this.#confirm(monotonicNs);
    this.#settle();
    const alive = setInterval(() => void this.#tell("PUT"), ALIVE_EVERY_MS);
    this.#timers.add(alive);
    this.#granted(this.#grant);
  }

  #confirm(monotonicNs: string | null): void {
    if (monotonicNs !== null) this.#grant?.confirm(fromMonotonicNs(monotonicNs));
  }

  /** The member knows at once that nothing runs under the grant any more. */
  async #release(): Promise<void> {
    this.#settle();
    await this.#tell("DELETE");
    this.#call.destroy();
  }

  async #tell(method: "PUT" | "DELETE"): Promise<void> {
    // Without an answer the member takes this process for dead, and waits a little longer.
    await exchange(`${this.#wanted.member}/sessions/${this.#id}`, { method, timeoutMs: EXCHANGE_MS }).catch(() => {});
  }

  readonly #aborted = (): void =>
    this.#abandon("acquire-aborted", `${this.#what} was not acquired: the wait was aborted`);

  #abandon(code: CoordinationCode, message: string): void {
    this.#end(new CoordinationError(code, "never-acquired", message));
  }

  #gone(why: string): void {
    this.#end(new EnvironmentError("no-answer", `the member at ${this.#wanted.member} does not answer: ${why}`));
  }

  /** The session is over: who waits is told why, what is held is lost. */
  #end(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#settle();
    this.#call.destroy();
    if (this.#grant === null) this.#refused(error);
    else this.#grant.lose();
  }

  /** The wait is over, or the session. */
  #settle(): void {
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #after(ms: number, act: () => void): NodeJS.Timeout {
    const timer = setTimeout(act, ms);
    this.#timers.add(timer);
    return timer;
  }
}

/** The member's grant, as this process knows it; its deadline ends it here as well. */
class LentGrant extends OwnTenure {
  readonly #what: string;
  readonly #giveBack: () => Promise<void>;
  #released: Promise<void> | null = null;

  constructor(
    token: number,
    readonly name: string,
    what: string,
    giveBack: () => Promise<void>,
  ) {
    super({ platform: realPlatform, token, what, onOverdue() {} });
    this.#what = what;
    this.#giveBack = giveBack;
  }

  release(): Promise<void> {
    this.end(new CoordinationError("released", "released", `${this.#what} has been given back`));
    this.#released ??= this.#giveBack();
    return this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

function refusalOf(status: number, text: string, member: string): Error {
  if (status === 404)
    return new UsageError(
      "no-service",
      `the member at ${member} serves no locks and elections: run \`coterie node\` with a config that names no protocol`,
    );
  const words = complaint(parsed(text), `the member at ${member} answered ${status}`);
  return status < 500 ? new UsageError("refused", words) : new EnvironmentError("refused", words);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

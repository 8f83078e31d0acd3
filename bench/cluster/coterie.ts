/** Three members of `join()` in processes of their own. The load runs in one of them, as in an application. */
import { setTimeout as sleep } from "node:timers/promises";
import { Group } from "../services/group.ts";
import { residentBytesOf } from "./resident.ts";
import type { Subject, Throughput, Work } from "./subject.ts";

const PATIENCE_MS = 20_000;
const LOOK_EVERY_MS = 20;

export class Coterie implements Subject {
  readonly name = "Coterie";
  readonly #group: Group;

  private constructor(group: Group) {
    this.#group = group;
  }

  static async start(): Promise<Coterie> {
    const group = await Group.of("default");
    await group.all({ ask: "write", timeoutMs: PATIENCE_MS }); // The first use starts the log.
    const coterie = new Coterie(group);
    await coterie.leader();
    return coterie;
  }

  get members(): readonly string[] {
    return this.#group.ids.map(String);
  }

  async leader(among: readonly string[] = this.members): Promise<string> {
    const until = performance.now() + PATIENCE_MS;
    while (performance.now() < until) {
      for (const member of among) {
        const { logLeader } = await this.#group.ask(Number(member), { ask: "standing" });
        if (String(logLeader) === member) return member;
      }
      await sleep(LOOK_EVERY_MS);
    }
    throw new Error(`nobody leads the log within ${PATIENCE_MS} ms`);
  }

  async load(work: Work, inFlight: number, ms: number): Promise<Throughput> {
    return this.#group.ask(Number(await this.leader()), { ask: "load", work, inFlight, ms });
  }

  async write(member: string, timeoutMs: number): Promise<boolean> {
    return (await this.#group.ask(Number(member), { ask: "write", timeoutMs })).isAccepted;
  }

  signal(member: string, signal: NodeJS.Signals): void {
    this.#group.signal(Number(member), signal);
  }

  async startAgain(member: string): Promise<void> {
    await this.#group.undo("kill", Number(member));
    await this.#group.settled();
  }

  residentBytes(): number {
    return residentBytesOf(this.#group.children);
  }

  end(): void {
    this.#group.end();
  }
}

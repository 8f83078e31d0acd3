/** Three members of `join()` in processes of their own. The load runs in one of them, as in an application. */
import { Group } from "../services/group.ts";
import { OURS } from "./figures.ts";
import { throughputOf } from "./load.ts";
import { residentBytesOf } from "./resident.ts";
import { type Subject, type Throughput, untilLed, type Work } from "./subject.ts";

const PATIENCE_MS = 20_000;

export class Coterie implements Subject {
  readonly name = OURS;
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

  leader(among: readonly string[] = this.members): Promise<string> {
    return untilLed(this.name, async () => {
      for (const member of among) {
        const { leader } = await this.#group.ask(Number(member), { ask: "standing" });
        if (String(leader) === member) return member;
      }
      return null;
    });
  }

  async load(work: Work, inFlight: number, ms: number): Promise<Throughput> {
    const leader = Number(await this.leader());
    if (work === "watch") return this.#watched(leader, ms);
    return this.#group.ask(leader, { ask: "load", work, inFlight, ms });
  }

  /** Both read the clock that the processes of a machine share. */
  async #watched(leader: number, ms: number): Promise<Throughput> {
    const other = this.#group.ids.find((id) => id !== leader) as number;
    await this.#group.ask(other, { ask: "begin-watch" });
    const { beganAt } = await this.#group.ask(leader, { ask: "write-watched", ms });
    const { arrivedAt } = await this.#group.ask(other, { ask: "end-watch", count: beganAt.length });
    return throughputOf(
      beganAt.map((at, turn) => (arrivedAt[turn] as number) - at),
      ms,
      0,
    );
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

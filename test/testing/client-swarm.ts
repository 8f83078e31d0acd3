/** Clients that are no members, in virtual time: members fail under them, connections stall and break, and what holds for members holds for them. */
import type { Client } from "../../src/client/client.ts";
import { type Random, random } from "../../src/core/random.ts";
import { CoordinationError } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";
import { ExclusiveUse } from "./exclusive-use.ts";
import { endpointOf, SimulatedClients } from "./simulated-clients.ts";

const CLIENTS = 4;
/** Several commands of the log, and several fragments of a word. */
const LARGE_CHARS = 300_000;
const MAX_LARGE = 5;
/** Of so many seeds one has large items, which take much work. */
const LARGE_EVERY = 5;
const MENDED_MS = 3_500;
const WELL_WITHIN_MS = 60_000;

export interface ClientSwarmResult {
  readonly grants: number;
  readonly added: number;
  readonly uncertain: number;
  readonly changes: number;
  readonly moves: number;
  readonly large: number;
}

class ClientSwarm {
  readonly #world: World;
  readonly #draw: Random;
  readonly #simulated: SimulatedClients;
  readonly #exclusive: ExclusiveUse;
  readonly #passesLarge: boolean;
  readonly #changes: string[][] = [];
  #clients: Client[] = [];
  #added = 0;
  #perhaps = 0;
  #isEnding = false;
  #large = 0;

  constructor(
    seed: number,
    private readonly faultsMs: number,
  ) {
    this.#passesLarge = seed % LARGE_EVERY === 0;
    this.#draw = random(seed).stream("clients");
    this.#simulated = new SimulatedClients(() => this.#world, this.#draw);
    this.#world = simulate({ members: 3, seed, faults: { forMs: faultsMs }, program: this.#simulated.serve });
    this.#exclusive = new ExclusiveUse(() => this.#world.now());
  }

  async run(): Promise<ClientSwarmResult> {
    const world = this.#world;
    await world.run(async () => {
      const working = Array.from({ length: CLIENTS }, (_, at) => this.#live(at));
      await world.sleep(this.faultsMs + MENDED_MS);
      this.#isEnding = true;
      this.#simulated.isMended = true;
      await Promise.all(working);
      await this.#endsWell();
    });
    return {
      grants: this.#exclusive.count,
      added: this.#added,
      uncertain: this.#perhaps,
      large: this.#large,
      changes: this.#changes.reduce((sum, told) => sum + told.length, 0),
      moves: this.#clients.reduce((sum, client) => sum + client.status().moves, 0),
    };
  }

  async #live(at: number): Promise<void> {
    const client = await this.#connected();
    this.#clients.push(client);
    await Promise.all([
      this.#count(client),
      this.#lock(client, at),
      this.#write(client, at),
      ...(this.#passesLarge ? [this.#passLarge(client)] : []),
    ]);
  }

  /** It begins at one member, and is told of the others. */
  #connected(): Promise<Client> {
    const endpoints = [endpointOf(this.#draw.pick(this.#world.members))];
    return this.#simulated.connect({ endpoints, timeoutMs: WELL_WITHIN_MS });
  }

  async #count(client: Client): Promise<void> {
    let last = 0;
    while (!this.#isEnding) {
      try {
        const value = await client.counter("all").add(1, { timeoutMs: 2_000 });
        if (value <= last) throw new Error(`a counter that only grows was ${last}, and then ${value}`);
        last = value;
        this.#added += 1;
      } catch (error) {
        if (!(error instanceof CoordinationError)) throw error;
        if (error.phase === "uncertain") this.#perhaps += 1;
      }
      await this.#rest(100);
    }
  }

  async #lock(client: Client, at: number): Promise<void> {
    const world = this.#world;
    while (!this.#isEnding) {
      try {
        const grant = await client.mutex("one").acquire({ timeoutMs: 200 + this.#draw.between(0, 3_000) });
        this.#exclusive.enter(
          "the lock",
          at,
          grant,
          () => world.now(),
          () => true,
        );
        await this.#rest(300);
        await grant.release();
      } catch (error) {
        if (!(error instanceof CoordinationError)) throw error;
      }
      await this.#rest(100);
    }
  }

  /** Each client has a key of its own, counts up in it, and watches all. */
  async #write(client: Client, at: number): Promise<void> {
    const map = client.map<number>("numbers");
    const told: string[] = [];
    this.#changes.push(told);
    void (async () => {
      for await (const change of map.watch({ after: 0 })) told.push(JSON.stringify(change));
    })().catch(() => {});
    for (let value = 1; !this.#isEnding; value++) {
      try {
        await map.put(`of ${at}`, value, { timeoutMs: 2_000 });
        const found = (await map.get(`of ${at}`, { timeoutMs: 2_000 })) ?? 0;
        if (found < value) throw new Error(`client ${at} has put ${value}, and reads ${found}`);
      } catch (error) {
        if (!(error instanceof CoordinationError)) throw error;
      }
      await this.#rest(100);
    }
  }

  /** An item says how long it is: none is seen in part. */
  async #passLarge(client: Client): Promise<void> {
    const queue = client.queue<string>("large");
    while (!this.#isEnding) {
      const length = Math.floor(this.#draw.between(0, LARGE_CHARS));
      try {
        if ((await queue.size({ timeoutMs: 2_000 })) < MAX_LARGE)
          await queue.add(`${length} ${"x".repeat(length)}`, { timeoutMs: 4_000 });
        const item = await queue.take({ timeoutMs: 4_000 });
        const [said, text = ""] = item.item.split(" ");
        if (Number(said) !== text.length) throw new Error(`an item of ${said} characters is read with ${text.length}`);
        await item.done({ timeoutMs: 4_000 });
        this.#large += 1;
      } catch (error) {
        if (!(error instanceof CoordinationError)) throw error;
      }
      await this.#rest(500);
    }
  }

  async #endsWell(): Promise<void> {
    const within = { timeoutMs: WELL_WITHIN_MS };
    const [first] = this.#clients as [Client];
    await first.map("numbers").put("end", 0, within);
    const total = await first.counter("all").get(within);
    if (total < this.#added || total > this.#added + this.#perhaps)
      throw new Error(`the counter is ${total}, of ${this.#added} additions for certain and ${this.#perhaps} perhaps`);
    await this.#world.sleep(3_000);
    const [longest = []] = this.#changes.toSorted((a, b) => b.length - a.length);
    for (const told of this.#changes)
      if (JSON.stringify(told) !== JSON.stringify(longest))
        throw new Error(`one watch was told ${told.length} changes, another ${longest.length}, or in another order`);
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #rest(ms: number): Promise<void> {
    await this.#world.sleep(this.#draw.between(0, ms));
  }
}

/** @param faultsMs for so long faults begin. */
export const clientSwarm = (seed: number, faultsMs: number): Promise<ClientSwarmResult> =>
  new ClientSwarm(seed, faultsMs).run();

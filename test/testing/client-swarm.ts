/** Clients that are no members, in virtual time: members fail under them, connections stall and break, and what holds for members holds for them. */
import { type Client, connectOn } from "../../src/client/client.ts";
import type { Dial } from "../../src/client/link.ts";
import { ClientDoor } from "../../src/cluster/clients/client-door.ts";
import type { JoinedMember } from "../../src/cluster/services/joined-member.ts";
import { type Random, random } from "../../src/core/random.ts";
import { CoordinationError, type Member } from "../../src/index.ts";
import { newCounts } from "../../src/runtime/metrics.ts";
import type { Platform, Timer } from "../../src/runtime/platform/platform.ts";
import { type ProcessTools, simulate, type World } from "../../src/testing/index.ts";
import { ExclusiveUse } from "./exclusive-use.ts";

const CLIENTS = 4;
const MENDED_MS = 3_500;
const WELL_WITHIN_MS = 60_000;
const DELAY_MS = [0.2, 4] as const;
/** How often something happens to a connection, and for how long it stalls. */
const TROUBLE_EVERY_MS = [300, 3_000] as const;
const STALL_MS = [100, 6_000] as const;
const LOOK_EVERY_MS = 20;

export interface ClientSwarmResult {
  readonly grants: number;
  readonly added: number;
  readonly uncertain: number;
  readonly changes: number;
  readonly moves: number;
}

/** A member that serves clients, in one run of its process. */
interface Served {
  readonly door: ClientDoor;
  readonly tools: ProcessTools;
  readonly member: Member;
}

/** One direction of a connection: what is said arrives late, in order, and not while it stalls. */
class Way {
  #last = 0;
  stalledUntil = 0;

  constructor(
    private readonly now: () => number,
    private readonly draw: Random,
  ) {}

  delayMs(): number {
    const at = Math.max(this.#last, this.stalledUntil, this.now() + this.draw.between(...DELAY_MS));
    this.#last = at;
    return at - this.now();
  }
}

class ClientSwarm {
  readonly #world: World;
  readonly #draw: Random;
  readonly #served = new Map<number, Served>();
  readonly #exclusive: ExclusiveUse;
  readonly #changes: string[][] = [];
  #clients: Client[] = [];
  #added = 0;
  #perhaps = 0;
  #isEnding = false;
  #isMended = false;

  constructor(
    seed: number,
    private readonly faultsMs: number,
  ) {
    this.#draw = random(seed).stream("clients");
    this.#world = simulate({
      members: 3,
      seed,
      faults: { forMs: faultsMs },
      program: (member, tools) => {
        const service = (member as JoinedMember).state.host;
        service.use();
        this.#served.set(member.id, {
          door: new ClientDoor({ service, counts: newCounts().clients }),
          tools,
          member,
        });
      },
    });
    this.#exclusive = new ExclusiveUse(() => this.#world.now());
  }

  async run(): Promise<ClientSwarmResult> {
    const world = this.#world;
    await world.run(async () => {
      const working = Array.from({ length: CLIENTS }, (_, at) => this.#live(at));
      await world.sleep(this.faultsMs + MENDED_MS);
      this.#isEnding = true;
      this.#isMended = true;
      await Promise.all(working);
      await this.#endsWell();
    });
    return {
      grants: this.#exclusive.count,
      added: this.#added,
      uncertain: this.#perhaps,
      changes: this.#changes.reduce((sum, told) => sum + told.length, 0),
      moves: this.#clients.reduce((sum, client) => sum + client.status().moves, 0),
    };
  }

  async #live(at: number): Promise<void> {
    const client = await this.#connected();
    this.#clients.push(client);
    await Promise.all([this.#count(client), this.#lock(client, at), this.#write(client, at)]);
  }

  #connected(): Promise<Client> {
    const options = { endpoints: this.#world.members.map(String), timeoutMs: WELL_WITHIN_MS };
    return connectOn(this.#platform(), this.#dial, options);
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

  /** A connection to the run of the member that serves now. */
  readonly #dial: Dial = (endpoint, ear) => {
    const world = this.#world;
    const id = Number(endpoint);
    const now = (): number => world.now();
    const [out, back] = [new Way(now, this.#draw), new Way(now, this.#draw)];
    let isOpen = true;
    let guest: ReturnType<ClientDoor["accept"]> | null = null;
    const served = this.#served.get(id);
    const runs = (): boolean =>
      world.isUp(id) && this.#served.get(id) === served && world.member(id) === served?.member;
    const end = (): void => {
      if (!isOpen) return;
      isOpen = false;
      ear.closed();
      if (runs()) served?.tools.setTimeout(() => guest?.left(), 1);
    };
    const toMember = (act: () => void): void => {
      world.setTimeout(() => {
        if (runs()) served?.tools.setTimeout(act, 0);
      }, out.delayMs());
    };
    const toClient = (act: () => void): void => void world.setTimeout(() => isOpen && act(), back.delayMs());
    const look = (): void => {
      if (!isOpen) return;
      if (runs()) world.setTimeout(look, LOOK_EVERY_MS);
      else end();
    };
    const suffer = (): void => {
      if (!isOpen || this.#isMended) return;
      if (this.#draw.between(0, 1) < 0.5) return end();
      for (const way of [out, back]) way.stalledUntil = now() + this.#draw.between(...STALL_MS);
      world.setTimeout(suffer, this.#draw.between(...TROUBLE_EVERY_MS));
    };
    toMember(() => {
      guest =
        served?.door.accept(
          {
            send: (text) => toClient(() => ear.heard(text)),
            queuedBytes: 0,
            close: () => toClient(end),
          },
          () => "write",
        ) ?? null;
      toClient(() => ear.opened());
    });
    world.setTimeout(look, LOOK_EVERY_MS);
    world.setTimeout(suffer, this.#draw.between(...TROUBLE_EVERY_MS));
    return {
      send: (text) => toMember(() => guest?.hear(text)),
      close: () => {
        isOpen = false;
        toMember(() => guest?.left());
      },
    };
  };

  #platform(): Pick<Platform, "clock" | "timers" | "random"> {
    const world = this.#world;
    type Due = ReturnType<World["setTimeout"]>;
    class Own implements Timer {
      constructor(public due: Due) {}
      unref(): this {
        return this;
      }
    }
    const draw = this.#draw;
    return {
      clock: { now: () => world.now(), wall: () => world.now(), stamp: () => world.now() },
      timers: {
        after: (ms, run) => new Own(world.setTimeout(run, ms)),
        every(ms, run) {
          const again = (): void => {
            timer.due = world.setTimeout(again, ms);
            run();
          };
          const timer = new Own(world.setTimeout(again, ms));
          return timer;
        },
        soon: (run) => new Own(world.setTimeout(run, 0)),
        cancel: (timer) => world.clearTimeout((timer as Own | null)?.due),
      },
      random: {
        fraction: () => draw.between(0, 1),
        natural: (below) => Math.floor(draw.between(0, below)),
        name: () => String(draw.between(0, 1)),
      },
    };
  }
}

/** @param faultsMs for so long faults begin. */
export const clientSwarm = (seed: number, faultsMs: number): Promise<ClientSwarmResult> =>
  new ClientSwarm(seed, faultsMs).run();

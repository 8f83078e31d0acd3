/** Clients that are no members, in a world: connections that are late, stall and break, to the members that run. */
import { type Client, type ConnectOptions, connectOn } from "../../src/client/client.ts";
import type { Dial } from "../../src/client/link.ts";
import { announce } from "../../src/cluster/clients/announce.ts";
import { ClientDoor } from "../../src/cluster/clients/client-door.ts";
import type { JoinedMember } from "../../src/cluster/services/joined-member.ts";
import type { Random } from "../../src/core/random.ts";
import type { Member } from "../../src/index.ts";
import { ENDPOINTS } from "../../src/protocols/service/coordination-service/operations.ts";
import { newCounts } from "../../src/runtime/metrics.ts";
import type { Platform, Timer } from "../../src/runtime/platform/platform.ts";
import type { ProcessTools, World } from "../../src/testing/index.ts";

const DELAY_MS = [0.2, 4] as const;
/** How often something happens to a connection, and for how long it stalls. */
const TROUBLE_EVERY_MS = [300, 3_000] as const;
const STALL_MS = [100, 6_000] as const;
const LOOK_EVERY_MS = 20;

export const endpointOf = (member: number): string => `http://member-${member}:7300`;
const memberAt = (endpoint: string): number => Number(/^http:\/\/member-(\d+):7300$/.exec(endpoint)?.[1]);

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

export class SimulatedClients {
  /** Whether nothing happens to connections any more. */
  isMended = false;
  readonly #served = new Map<number, Served>();
  readonly #world: () => World;
  readonly #draw: Random;

  constructor(world: () => World, draw: Random) {
    this.#world = world;
    this.#draw = draw;
  }

  /** A program of members: they serve clients, and say where. */
  readonly serve = (member: Member, tools: ProcessTools): void => {
    const service = (member as JoinedMember).state.host;
    service.use();
    announce(service, ENDPOINTS, endpointOf(member.id));
    this.#served.set(member.id, { door: new ClientDoor({ service, counts: newCounts().clients }), tools, member });
  };

  connect(options: ConnectOptions): Promise<Client> {
    return connectOn(this.#platform(), this.#dial, options);
  }

  /** A connection to the run of the member that serves now. */
  readonly #dial: Dial = (endpoint, ear) => {
    const world = this.#world();
    const id = memberAt(endpoint);
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
      if (!isOpen || this.isMended) return;
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
    const world = this.#world();
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

/**
 * The network between machines. A link from one machine to another has a delay, a bandwidth and a loss rate, and can be
 * cut. It models TCP as follows. A lost packet is resent after a timeout, and later packets wait for it. A cut stalls a
 * stream until a packet gets through again, with backoff between attempts. A stream ends when one end closes it, or
 * when it sends to an end whose process is dead.
 */

import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";
import type { HostPort } from "../runtime/host-port.ts";
import { formatHostPort } from "../runtime/host-port.ts";
import type { Listener, ListenerOptions, Network } from "../runtime/platform/platform.ts";
import { type Delay, sampler } from "../sim/delay.ts";
import { refusedBySystem } from "./simulated-disk.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import { SimulatedStream, type Transit, type Way } from "./simulated-stream.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** How a link behaves, in one direction between two machines. */
export interface LinkModel {
  /** The transit time of a packet, in milliseconds. Default: 0.2 to 2 ms. */
  readonly delayMs?: Delay;
  /** The fraction of packets lost, from 0 to less than 1. Default: 0. */
  readonly loss?: number;
  /** The bandwidth, in bytes per millisecond. Default: unlimited. */
  readonly bytesPerMs?: number;
}

const DEFAULT_DELAY: Delay = [0.2, 2];
/** The timeout before a packet is resent. It doubles each time, up to the limit. */
const RESEND_MS = 200;
const MAX_RESEND_MS = 60_000;
/** The initial timeout before an unanswered connection request is repeated. */
const SYN_AGAIN_MS = 1_000;
const FIRST_OWN_PORT = 40_000;

/** A machine, as seen by the network. */
export interface Machine {
  readonly id: NodeId;
  readonly host: string;
  /** Whether the machine has power. */
  readonly isUp: boolean;
}

class Link implements Way {
  readonly #from: Machine;
  readonly #to: Machine;
  loss = 0;
  #cuts = 0;
  bytesPerMs = Number.POSITIVE_INFINITY;
  #delayMs: () => number = () => 0;
  #freeAt = 0;

  constructor(
    readonly time: VirtualTime,
    readonly chance: Random,
    from: Machine,
    to: Machine,
  ) {
    this.#from = from;
    this.#to = to;
    this.set({});
  }

  get isOpen(): boolean {
    return this.#cuts === 0 && this.#from.isUp && this.#to.isUp;
  }

  get hasSender(): boolean {
    return this.#from.isUp;
  }

  /** Cuts the link until the returned function is called. Cuts may overlap. */
  cut(): () => void {
    let isOver = false;
    this.#cuts += 1;
    return () => {
      if (!isOver) this.#cuts -= 1;
      isOver = true;
    };
  }

  set({ delayMs = DEFAULT_DELAY, loss = 0, bytesPerMs = Number.POSITIVE_INFINITY }: LinkModel): void {
    if (!(loss >= 0 && loss < 1))
      throw new UsageError("bad-option", unexpected("loss", "a number from 0 to less than 1", loss));
    if (!(bytesPerMs > 0)) throw new UsageError("bad-option", unexpected("bytesPerMs", "a number > 0", bytesPerMs));
    this.#delayMs = sampler(delayMs, this.chance, "delayMs");
    this.loss = loss;
    this.bytesPerMs = bytesPerMs;
  }

  get isLossy(): boolean {
    return this.loss > 0;
  }

  /** Returns how long a packet takes if it is not lost, and how often it will be lost if the link stays as it is. */
  transit(bytes: number): Transit {
    const begin = Math.max(this.time.now, this.#freeAt);
    this.#freeAt = begin + bytes / this.bytesPerMs;
    const ms = this.#freeAt - this.time.now + this.#delayMs();
    let losses = 0;
    while (this.isLossy && this.chance.between(0, 1) < this.loss) losses += 1;
    return { ms, losses };
  }

  /** Returns how long a packet takes, including all retransmissions. */
  arrival(bytes: number): number {
    const { ms, losses } = this.transit(bytes);
    return ms + RESEND_MS * (2 ** losses - 1);
  }

  lostForMs(losses: number): number {
    return RESEND_MS * 2 ** losses;
  }

  /** Returns the timeout before a packet that has been lost this many times is resent. */
  resendMs(attempts: number): number {
    return Math.min(RESEND_MS * 2 ** attempts, MAX_RESEND_MS) * this.chance.between(1, 1.1);
  }
}

interface Port {
  readonly process: SimulatedProcess;
  readonly options: ListenerOptions;
  readonly streams: Set<SimulatedStream>;
}

/** A world's network. */
export class SimulatedNetwork {
  readonly #time: VirtualTime;
  readonly #chance: Random;
  readonly #machines: Machine[] = [];
  readonly #links = new Map<string, Link>();
  readonly #ports = new Map<string, Port>();
  readonly #streams = new Map<SimulatedProcess, Set<SimulatedStream>>();
  #ownPorts = FIRST_OWN_PORT;

  constructor(time: VirtualTime, machines: readonly Machine[], chance: Random) {
    this.#time = time;
    this.#chance = chance;
    for (const machine of machines) this.add(machine);
  }

  /**
   * Adds a machine, with links to and from all others. Each link has its own random stream, which does not depend on
   * other machines.
   */
  add(machine: Machine): void {
    this.#machines.push(machine);
    for (const other of this.#machines) {
      this.#connect(machine, other);
      if (other !== machine) this.#connect(other, machine);
    }
  }

  #connect(from: Machine, to: Machine): void {
    const link = new Link(this.#time, this.#chance.stream(`${from.id}-${to.id}`), from, to);
    this.#links.set(key(from.id, to.id), link);
  }

  link(from: NodeId, to: NodeId): Pick<Link, "cut" | "set"> {
    return this.#links.get(key(from, to)) as Link;
  }

  /** Returns the network as seen by a process on this machine. */
  of(machine: Machine, process: SimulatedProcess): Network {
    return {
      listener: (options) => this.#listener(machine, process, options),
      dial: (address, _tls, onReady) => {
        const there = this.#machines.find(({ host }) => host === address.host);
        if (there === undefined) return this.#dialNowhere(process);
        return this.#dial({ machine, process }, there, address, onReady);
      },
    };
  }

  /**
   * Closes all streams of a dead process, as the kernel would. The other ends notice this, unless the machine has lost
   * power.
   */
  processDied(process: SimulatedProcess, hasPower: boolean): void {
    for (const stream of this.#streams.get(process) ?? []) stream.abandon(hasPower);
    this.#streams.delete(process);
    for (const [address, port] of this.#ports) if (port.process === process) this.#ports.delete(address);
  }

  #listener(machine: Machine, process: SimulatedProcess, options: ListenerOptions): Listener {
    const port: Port = { process, options, streams: new Set() };
    let opened: string | null = null;
    return {
      open: ({ port: number }) => {
        const address = formatHostPort({ host: machine.host, port: number });
        if (this.#ports.has(address)) return Promise.reject(refusedBySystem("listen", "EADDRINUSE"));
        this.#ports.set(address, port);
        opened = address;
        return Promise.resolve();
      },
      renew: () => {}, // The simulation does not use TLS.
      close: () => {
        if (opened !== null) this.#ports.delete(opened);
        return new Promise((resolve) => {
          const look = (): void => {
            if (port.streams.size === 0) resolve();
            else for (const stream of port.streams) stream.once("close", look);
          };
          look();
        });
      },
    };
  }

  #dialNowhere(process: SimulatedProcess): SimulatedStream {
    const stream = new SimulatedStream(process, this.#chance, { host: "", port: 0 });
    process.after(0, () => stream.fail("ENOTFOUND"));
    return stream;
  }

  /** Requests a connection, and repeats the request until it is answered. */
  #dial(
    { machine, process }: { machine: Machine; process: SimulatedProcess },
    there: Machine,
    address: HostPort,
    onReady: () => void,
  ): SimulatedStream {
    const toThere = this.#links.get(key(machine.id, there.id)) as Link;
    const back = this.#links.get(key(there.id, machine.id)) as Link;
    const stream = this.#stream(process, address);
    const answer = (then: () => void): void =>
      void this.#time.after(back.arrival(0), () => {
        if (!stream.destroyed && process.isAlive && back.isOpen) process.arrive(then);
      });
    const refuse = (): void => answer(() => stream.fail("ECONNREFUSED"));
    const isAsked = { isAnswered: false };
    const ask = (attempt: number): void => {
      if (stream.destroyed || !process.isAlive || isAsked.isAnswered) return;
      this.#time.after(toThere.arrival(0), () => {
        if (stream.destroyed || !process.isAlive || isAsked.isAnswered || !toThere.isOpen) return;
        const port = this.#ports.get(formatHostPort(address));
        if (port === undefined || !port.process.isAlive) return refuse();
        if (!back.isOpen) return; // The answer is lost, so the request will be repeated.
        isAsked.isAnswered = true;
        this.#accept(port, { there: stream, host: machine.host, toThere, back });
        answer(() => {
          if (!stream.destroyed) onReady();
        });
      });
      this.#time.after(SYN_AGAIN_MS * 2 ** attempt, () => ask(attempt + 1));
    };
    ask(0);
    return stream;
  }

  #accept(
    port: Port,
    { there, host, toThere, back }: { there: SimulatedStream; host: string; toThere: Link; back: Link },
  ): void {
    const { process, options, streams } = port;
    const here = this.#stream(process, { host, port: ++this.#ownPorts });
    here.connect(there, back);
    there.connect(here, toThere);
    streams.add(here);
    here.once("close", () => streams.delete(here));
    process.arrive(() => {
      if (streams.size > options.maxStreams) {
        here.destroy();
        return options.onDropped(host);
      }
      options.onMade(here);
      options.onReady(here, null);
    });
  }

  #stream(process: SimulatedProcess, remote: HostPort): SimulatedStream {
    const stream = new SimulatedStream(process, this.#chance, remote);
    const ofProcess = this.#streams.get(process) ?? new Set();
    this.#streams.set(process, ofProcess.add(stream));
    stream.once("close", () => ofProcess.delete(stream));
    return stream;
  }
}

const key = (from: NodeId, to: NodeId): string => `${from} ${to}`;

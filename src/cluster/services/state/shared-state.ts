/** Everything that members share by name, built on this member's replicated service. */
import { EnvironmentError, UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { Election, ElectionOptions, InstanceStatus, LeaderChange, MemberEvent, Mutex } from "../api.ts";
import { electionRules } from "../call-options.ts";
import type { Channel, ChannelOptions, Transport } from "../channel-api.ts";
import type { CoordinationError } from "../coordination-error.ts";
import type { ChannelEnvelope } from "../envelope.ts";
import { type ChannelLinks, GroupChannel } from "../group-channel.ts";
import { requireName } from "../instance-name.ts";
import * as may from "../known-options.ts";
import { requireOptions } from "../known-options.ts";
import { ElectionHandle, type LocalElection } from "../local-election.ts";
import type { Timing } from "../timing.ts";
import { Arrivals } from "./arrivals.ts";
import { limits } from "./limits.ts";
import { LocalCounter } from "./local-counter.ts";
import { LocalMap } from "./local-map.ts";
import { LocalBarrier, LocalQueue } from "./local-queue.ts";
import { LogElection } from "./log-election.ts";
import { Grants, LocalReadWriteLock, LocalSemaphore, SharedMutex } from "./named-grants.ts";
import { LocalReplicated, type Machines, requireMachine } from "./replicated.ts";
import { ServiceHost, type ServiceHostOptions } from "./service-host.ts";
import type {
  Barrier,
  BarrierOptions,
  CallOptions,
  ReadWriteLock,
  Replicated,
  Semaphore,
  SemaphoreOptions,
  SharedCounter,
  SharedMap,
  SharedQueue,
  StateApi,
  StateMachine,
  StateStatus,
  Transaction,
} from "./state-api.ts";
import { transact } from "./transactions.ts";
import { textOf } from "./value-text.ts";
import { Waiters } from "./waiters.ts";
import { Waits } from "./waits.ts";

const count = may.needed(may.positive);

export interface SharedStateOptions extends ServiceHostOptions {
  readonly maxInstances: number;
  readonly timing: Timing;
  readonly links: ChannelLinks;
  /** Returns the members that are currently suspected. */
  suspected(): readonly NodeId[];
  /** Called when commands are waiting for their state machine to be defined. */
  onUndefined(machine: string, bytes: number, maxBytes: number): void;
  /** Called when other members use the channel with different options. */
  onRefused(channel: string, why: string): void;
  publish(event: MemberEvent): void;
}

/** The shared objects in this process, by name. */
export class SharedState implements StateApi {
  readonly #options: SharedStateOptions;
  readonly #machines: Machines;
  readonly host: ServiceHost;
  readonly waiters: Waiters;
  readonly waits: Waits;
  readonly #arrivals: Arrivals;
  readonly #grants: Grants;
  readonly #elections = new Map<string, LogElection>();
  readonly #channels = new Map<string, GroupChannel>();

  /** @param machines the definitions that the replicas look up */
  constructor(options: SharedStateOptions, machines: Machines) {
    this.#options = options;
    this.#machines = machines;
    this.host = new ServiceHost(options);
    this.waiters = new Waiters(this.host);
    this.waits = new Waits(this.host, this.waiters);
    this.#arrivals = new Arrivals(this.host, this.waiters);
    this.#grants = new Grants(this.host, this.waits);
    this.host.listen((event) => {
      if (event.type === "led") options.publish({ type: "log-leader-changed", leader: event.leader, term: event.term });
      else if (event.type === "commandsWait") options.onUndefined(event.machine, event.bytes, event.maxBytes);
      else if (event.type === "lost" && this.host.closed === null) {
        options.counts.sessionsLost.count += 1;
        options.publish({ type: "session-lost", session: event.session });
      }
    });
  }

  map<T>(name: string): SharedMap<T> {
    return new LocalMap<T>(this.#used(name), this.host);
  }

  counter(name: string): SharedCounter {
    return new LocalCounter(this.#used(name), this.host);
  }

  transaction<R>(work: (transaction: Transaction) => R | Promise<R>, options: CallOptions = {}): Promise<R> {
    return transact(this.host, work, options);
  }

  mutex(name: string): Mutex {
    return new SharedMutex(this.#used(name), this.#grants);
  }

  /** @throws UsageError in the same cases as `map`, and if the metadata is not valid JSON data */
  election<M>(name: string, options: ElectionOptions<M> = {}): Election<M> {
    requireOptions("election", options, electionRules);
    this.#used(name);
    const { metadata } = options;
    const note = metadata === undefined ? "" : textOf(metadata, "metadata of election()", limits.noteBytes);
    const open = (): LocalElection => this.#election(name).local;
    const find = (): LocalElection | null => this.#elections.get(name)?.local ?? null;
    return new ElectionHandle(open, find, () => this.#election(name).announce(note)) as Election as Election<M>;
  }

  /** @throws UsageError in the same cases as `map`, and if a channel on the log cannot provide the order */
  channel<T>(name: string, { order, transport = "tcp" }: ChannelOptions): Channel<T> {
    if (transport === "log" && order !== "total" && order !== "causal-total")
      throw new UsageError(
        "bad-option",
        `expected order "total" or "causal-total" for a channel on the log, got ${JSON.stringify(order)}: the log delivers messages to all members in the same order`,
      );
    const known = this.#channels.get(this.#used(name));
    if (known === undefined) return this.#openChannel(name, { order, transport }).local.use<T>();
    const { setting } = known;
    for (const [option, used, wanted] of [
      ["order", setting.order, order],
      ["transport", setting.transport, transport],
    ] as const)
      if (used !== wanted)
        throw new UsageError(
          "other-setting",
          unexpected(`the ${option} of the channel "${name}"`, `"${used}", which is in use here`, wanted),
        );
    return known.local.use<T>();
  }

  #openChannel(name: string, setting: Required<Pick<ChannelOptions, "order" | "transport">>): GroupChannel {
    this.#makeRoom(this.#channels, "channels");
    const { trace, timing, links, onFatal } = this.#options;
    const channel: GroupChannel = new GroupChannel(this.host, {
      ...{ name, order: setting.order, transport: setting.transport as Transport, trace, timing, links, onFatal },
      suspected: this.#options.suspected(),
      onUnused: () => {
        channel.retire();
        this.#channels.delete(name);
      },
      onRefused: (why) => {
        channel.stop();
        this.#channels.delete(name);
        this.#options.onRefused(name, why);
      },
    });
    if (this.host.closed === null) this.#channels.set(name, channel);
    else {
      channel.stop();
      channel.local.close(this.host.closed);
    }
    return channel;
  }

  /** @returns false if no open channel accepts the message over this transport */
  receive(from: NodeId, envelope: ChannelEnvelope, over: Transport): boolean {
    return this.#channels.get(envelope.name)?.receive(from, envelope, over) ?? false;
  }

  noteSuspicion(node: NodeId, isSuspected: boolean): void {
    for (const channel of this.channels) channel.noteSuspicion(node, isSuspected);
  }

  /** The elections and channels that are open in this process, and the locks that this process holds or waits for. */
  get inUse(): readonly InstanceStatus[] {
    const locks = [...this.waits.locks].map(([name, use]) => {
      const role = use.isHeld ? "held" : "wanted";
      return { kind: "mutex", name, role, leader: null, ...use } as const;
    });
    return [...[...this.elections, ...this.channels].map(({ status }) => status), ...locks];
  }

  get elections(): readonly LogElection[] {
    return [...this.#elections.values()];
  }

  get channels(): readonly GroupChannel[] {
    return [...this.#channels.values()];
  }

  #election(name: string): LogElection {
    const known = this.#elections.get(name);
    if (known !== undefined) return known;
    this.#makeRoom(this.#elections, "elections");
    const onChange = ({ leader, token }: LeaderChange): void =>
      this.#options.publish({ type: "leader-changed", election: name, leader, token });
    const election = new LogElection(this.host, { name, onChange });
    this.#elections.set(name, election);
    return election;
  }

  /** Closes unused objects if the limit has been reached. */
  #makeRoom(open: Map<string, LogElection | GroupChannel>, what: string): void {
    const { maxInstances } = this.#options;
    if (open.size < maxInstances) return;
    for (const [name, each] of open) {
      if (each.isUsed) continue;
      each.retire();
      open.delete(name);
    }
    if (open.size >= maxInstances)
      throw new EnvironmentError(
        "too-many-instances",
        `this member has ${maxInstances} ${what} in use, which is the maximum: raise limits.maxInstances or use fewer names at a time`,
      );
  }

  /**
   * Releases everything that this member holds, and transfers leadership of the log, so that other members need not
   * wait for either.
   */
  async leave(reason: CoordinationError, peers: readonly NodeId[]): Promise<void> {
    this.host.close(reason);
    await this.host.depart(peers);
  }

  stop(): void {
    for (const channel of this.channels) channel.stop();
    this.host.stop();
  }

  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    requireOptions("semaphore", options, { permits: count });
    return new LocalSemaphore(this.#used(name), options.permits, this.#grants);
  }

  readWriteLock(name: string): ReadWriteLock {
    return new LocalReadWriteLock(this.#used(name), this.#grants);
  }

  barrier(name: string, options: BarrierOptions): Barrier {
    requireOptions("barrier", options, { parties: count });
    return new LocalBarrier(this.#used(name), options.parties, this.#arrivals);
  }

  queue<T>(name: string): SharedQueue<T> {
    return new LocalQueue<T>(this.#used(name), this.host, this.waits);
  }

  replicated<S, C, R>(name: string, machine: StateMachine<S, C, R>): Replicated<S, C, R> {
    requireMachine(machine);
    this.#machines.define(this.#used(name), machine);
    return new LocalReplicated<S, C, R>(name, this.host);
  }

  get status(): StateStatus {
    const { leader, term, session, revision, waiting } = this.host;
    return { leader, term, session, revision, waiting };
  }

  /**
   * @throws UsageError if the name is invalid. After the member has ended, this method does not throw, but the calls
   *   reject
   */
  #used(name: string): string {
    return requireName(name);
  }
}

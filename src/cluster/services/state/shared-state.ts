/** All that members share by name, on the replicated service of this member. */
import { EnvironmentError, UsageError, unexpected } from "../../../core/errors.ts";
import type { NodeId } from "../../../core/protocol.ts";
import type { ElectionOptions, InstanceStatus, Kind, LeaderChange, MemberEvent, Mutex, MutexOptions } from "../api.ts";
import type { Channel, ChannelOptions, Order } from "../channel-api.ts";
import type { CoordinationError } from "../coordination-error.ts";
import { endedLogChannel } from "../ended-side.ts";
import { ElectionHandle } from "../handles.ts";
import { requireName } from "../instance-name.ts";
import * as may from "../known-options.ts";
import { requireOptions } from "../known-options.ts";
import type { LocalElection } from "../local-election.ts";
import { Arrivals } from "./arrivals.ts";
import { limits } from "./limits.ts";
import { LocalCounter } from "./local-counter.ts";
import { LocalMap } from "./local-map.ts";
import { LocalBarrier, LocalQueue } from "./local-queue.ts";
import { LogChannel } from "./log-channel.ts";
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
const LOG = "raft";

/** What the member says of itself. */
export interface OfMember extends Pick<ServiceHostOptions, "maxWaiters" | "counts" | "send" | "why"> {
  /** Commands wait here for a machine to be defined. */
  onUndefined(machine: string, bytes: number, maxBytes: number): void;
  readonly maxInstances: number;
  /** With which other algorithm a name is in use here; null: with none. */
  otherAlgorithm(kind: Kind, name: string): string | null;
}

export interface SharedStateOptions extends ServiceHostOptions, OfMember {
  publish(event: MemberEvent): void;
}

export class SharedState implements StateApi {
  readonly #options: SharedStateOptions;
  readonly #machines: Machines;
  readonly host: ServiceHost;
  readonly waiters: Waiters;
  readonly waits: Waits;
  readonly #arrivals: Arrivals;
  readonly #grants: Grants;
  readonly #elections = new Map<string, LogElection>();
  readonly #channels = new Map<string, LogChannel>();

  /** @param machines that the replicas look up. */
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

  mutex(name: string, { options }: MutexOptions): Mutex {
    requireNothing("mutex", { options });
    this.#requireJournal("mutex", "central-server");
    return new SharedMutex(this.#free("mutex", name), this.#grants);
  }

  /** @throws UsageError as `map` does, and for metadata that cannot be sent. */
  election(name: string, { metadata, options, rank }: ElectionOptions): ElectionHandle {
    requireNothing("election", { options, rank });
    this.#requireJournal("election", "bully");
    this.#free("election", name);
    const note = metadata === undefined ? "" : textOf(metadata, "metadata of election()", limits.noteBytes);
    const open = (): LocalElection => this.#election(name).local;
    const find = (): LocalElection | null => this.#elections.get(name)?.local ?? null;
    return new ElectionHandle(open, find, () => this.#election(name).announce(note));
  }

  /** @throws UsageError as `map` does, and for what a log does not give. */
  channel<T>(name: string, { order, reliable = true }: ChannelOptions): Channel<T> {
    if (!reliable || (order !== "total" && order !== "causal-total"))
      throw new UsageError(
        "bad-option",
        `expected order "total" or "causal-total" and reliable: true of a channel on the log, got ${JSON.stringify({ order, reliable })}: the log has one order for all`,
      );
    const known = this.#channels.get(this.#free("channel", name));
    if (known !== undefined && known.order !== order)
      throw new UsageError(
        "other-setting",
        unexpected(`the order of the channel "${name}"`, `"${known.order}", as it is in use here`, order),
      );
    const { closed } = this.host;
    if (known === undefined && closed !== null) return endedLogChannel(name, order, this.host, closed).use<T>();
    return (known ?? this.#openChannel(name, order)).local.use<T>();
  }

  #openChannel(name: string, order: Order): LogChannel {
    this.#makeRoom(this.#channels, "channels");
    const onUnused = (): void => {
      this.#channels.get(name)?.retire();
      this.#channels.delete(name);
    };
    const { trace, onFatal } = this.#options;
    const channel = new LogChannel(this.host, { name, order, trace, onUnused, onFatal });
    this.#channels.set(name, channel);
    return channel;
  }

  /** Whether this process uses that name on the log. */
  uses(kind: Kind, name: string): boolean {
    if (kind === "election") return this.#elections.get(name)?.isUsed === true;
    if (kind === "channel") return this.#channels.has(name);
    return kind === "mutex" && this.waits.uses(`mutex/${name}`);
  }

  /** Elections and channels that are open here, and locks that this process waits for or holds. */
  get inUse(): readonly InstanceStatus[] {
    const locks = [...this.waits.locks].map(([name, use]) => {
      const role = use.isHeld ? "held" : "wanted";
      return { kind: "mutex", name, algorithm: LOG, role, leader: null, ...use } as const;
    });
    return [...[...this.elections, ...this.channels].map(({ status }) => status), ...locks];
  }

  /** Those that are open here. */
  get elections(): readonly LogElection[] {
    return [...this.#elections.values()];
  }

  /** The same. */
  get channels(): readonly LogChannel[] {
    return [...this.#channels.values()];
  }

  #election(name: string): LogElection {
    const known = this.#elections.get(name);
    if (known !== undefined) return known;
    this.#makeRoom(this.#elections, "elections");
    const sayLeader = (change: LeaderChange<number | null>): void =>
      this.#options.publish({ type: "leader-changed", election: name, ...change });
    const election = new LogElection(this.host, { name, sayLeader });
    this.#elections.set(name, election);
    return election;
  }

  /** Where there is no room, what is not in use makes room. */
  #makeRoom(open: Map<string, LogElection | LogChannel>, what: string): void {
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
        `this member has ${maxInstances} ${what} in use, and takes no more: raise limits.maxInstances or use fewer names at a time`,
      );
  }

  /** What is held is given back, and another leads the log where this member does: the others need not wait for either. */
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

  get status(): StateStatus | null {
    if (!this.host.isRunning) return null;
    const { leader, term, session, revision, waiting } = this.host;
    return { leader, term, session, revision, waiting };
  }

  /** @throws UsageError if the name is in use with another algorithm. */
  #free(kind: Kind, name: string): string {
    const algorithm = this.#options.otherAlgorithm(kind, this.#used(name));
    if (algorithm === null) return name;
    throw new UsageError(
      "other-setting",
      `expected the algorithm of the ${kind} "${name}" to be ${algorithm}, as it is in use already, got raft, which is the default: name ${algorithm}, or wait until nobody uses it`,
    );
  }

  #requireJournal(call: string, other: string): void {
    if (this.#options.protocol !== null) return;
    const wanted = `expected join() to be given a dataDir, since locks and elections are kept in the journals of the members`;
    throw new UsageError(
      "no-journal",
      `${wanted}: give one, or name an algorithm of ${call}() that keeps none, such as ${other}`,
    );
  }

  /** @throws UsageError for a name that cannot be, or without a `dataDir`. After the member has ended, the calls reject. */
  #used(name: string): string {
    this.host.requireJournal();
    return requireName(name);
  }
}

/** @throws UsageError for what other algorithms know. */
function requireNothing(
  call: string,
  given: { readonly options?: object | undefined; readonly rank?: number | undefined },
): void {
  const { options = {}, rank } = given;
  const [unknown] = Object.entries({ ...(rank === undefined ? {} : { rank }), ...prefixed(options) });
  if (unknown === undefined) return;
  const [name, value] = unknown;
  const wanted = "absent, since raft, which is the default, has no such option";
  throw new UsageError("bad-option", unexpected(`${name} of ${call}()`, wanted, value));
}

const prefixed = (options: object): object =>
  Object.fromEntries(Object.entries(options).map(([name, value]) => [`options.${name}`, value as unknown]));

import type { NodeId } from "../../core/protocol.ts";
import type { Shape } from "../../core/shape.ts";
import type { AdminServer, AdminTls } from "../../runtime/admin.ts";
import { type Metric, register } from "../../runtime/metric-table.ts";
import { type Counts, count, countReceived } from "../../runtime/metrics.ts";
import type { Platform, TlsMaterial } from "../../runtime/platform/platform.ts";
import type { MessageId } from "../../trace/entry.ts";
import { channelOptions, type Envelope, envelopeShape, optionsText } from "./algorithms.ts";
import type {
  ElectionOptions,
  Kind,
  Member,
  MemberEvent,
  MemberStatus,
  Mutex,
  MutexOptions,
  ReadyOptions,
} from "./api.ts";
import { channelRules, electionRules, mutexRules, noMulticast, signalRule } from "./call-options.ts";
import type { Channel, ChannelOptions, Transport } from "./channel-api.ts";
import { stackFor } from "./channel-stacks.ts";
import { CoordinationError, type Missing } from "./coordination-error.ts";
import { endedSide } from "./ended-side.ts";
import type { LocalSide } from "./engine.ts";
import { typeOf } from "./envelope-words.ts";
import { firstContact } from "./first-contact.ts";
import { othersNow, requireFounder } from "./founders.ts";
import { ElectionHandle, MutexHandle } from "./handles.ts";
import { requireName } from "./instance-name.ts";
import { Instances } from "./instances.ts";
import { refusedIn, requireOptions } from "./known-options.ts";
import { leaveInOrder } from "./leaving.ts";
import type { LocalChannel } from "./local-channel.ts";
import type { LocalElection } from "./local-election.ts";
import { type LocalMembers, membersOf } from "./local-members.ts";
import type { LocalMutex } from "./local-mutex.ts";
import { MemberDirectory } from "./member-directory.ts";
import { changeEvent, latestEvents, refusalEvent } from "./member-events.ts";
import { MemberLinks } from "./member-links.ts";
import { memberMetrics } from "./member-metrics.ts";
import { serveMemberPages } from "./member-pages.ts";
import { statusOf } from "./member-status.ts";
import { MemberTrace } from "./member-trace.ts";
import type { Membership } from "./membership.ts";
import { controllerForMany } from "./on-abort.ts";
import { type Feed, feed } from "./reading.ts";
import { readyRules, whenReady } from "./ready.ts";
import { RefusalNotes } from "./refusal-notes.ts";
import { Sessions } from "./sessions.ts";
import { SharedParts } from "./shared-parts.ts";
import { sharedProtocols } from "./shared-protocols.ts";
import { watchStalls } from "./stall-watch.ts";
import { Machines } from "./state/replicated.ts";
import { type OfMember, SharedState, type SharedStateOptions } from "./state/shared-state.ts";
import { Sharing } from "./state/sharing.ts";
import { leaseOptions } from "./timing.ts";

/** The algorithm of locks and elections where their user does not say otherwise: the replicated log. */
const LOG = "raft";

export class JoinedMember extends Sharing implements Member {
  readonly #membership: Membership;
  readonly #controller = controllerForMany();
  readonly #events: Feed<MemberEvent> = feed(latestEvents);
  readonly #began: number;
  readonly #trace: MemberTrace;
  readonly #notes: RefusalNotes;
  readonly #links: MemberLinks;
  readonly #shared: SharedParts;
  readonly state: SharedState;
  readonly cluster: LocalMembers;
  readonly #directory: MemberDirectory;
  readonly #instances: Instances;
  readonly #machines = new Machines();
  readonly sessions = new Sessions(this, () => count(this.#counts.refused, "too-many-sessions"));
  #admin: AdminServer | null = null;
  #state: MemberStatus["state"] = "joined";
  #leaving: Promise<void> | null = null;
  #unwatch: () => void = () => {};
  #unregister: () => void = () => {};

  constructor(membership: Membership) {
    super();
    this.#membership = membership;
    const { platform, id, log, limits, timing, founders } = membership;
    this.#began = platform.clock.now();
    this.#trace = new MemberTrace(id, platform.clock, membership.admin !== null);
    this.#notes = new RefusalNotes(log, this.#counts, (event) => this.#events.publish(event));
    const protocols = sharedProtocols(membership, this.#machines.definitions);
    const known = othersNow(membership);
    this.#links = this.#linking(envelopeShape(protocols));
    const around = this.#around(founders);
    this.#shared = new SharedParts({
      ...around,
      ...protocols,
      leadership: founders.includes(id) ? protocols.leadership : null,
      known,
      tell: (event) => this.#instances.tell(event),
      heard: (node) => this.#instances.heard(node),
    });
    this.state = new SharedState(
      this.#forState({ ...around, peers: known, protocol: protocols.service }),
      this.#machines,
    );
    this.#instances = new Instances({
      ...around,
      ...limits,
      timing,
      counts: this.#counts,
      log,
      send: (to, envelope) => this.#links.attempt(to, envelope),
      insist: (to, envelope) => this.#links.insist(to, envelope),
      multicast: (to, envelope, transport) => this.#links.multicast(to, envelope, transport),
      news: () => this.#shared.news(),
      checkService: () => this.#shared.checkService(),
      onExhausted: () => this.#shared.beginEpoch(),
      give: (part, command) => this.#shared.give(part, command),
      onRefused: (setting, by, why) => this.#notes.instance(setting, by, why),
      onFull: ({ kind, name }, by) => this.#notes.full(kind, name, by),
      isOnLog: (kind, name) => this.state.uses(kind, name),
      onStray: (from, envelope) => this.#notes.datagram(from, envelope),
    });
    const [service, shared, transport] = [this.state.host, this.#shared, this.#links.tcp];
    this.cluster = membersOf(membership, service, transport);
    this.#directory = new MemberDirectory(membership, {
      ...{ service, shared, transport },
      onChanged: (list) => this.#events.publish(changeEvent(list)),
      onRemoved: () => this.#removed(),
    });
  }

  /** What all parts are told alike; of the members, those that cannot change. */
  #around(founders: readonly NodeId[]) {
    const { platform, id: self, journal } = this.#membership;
    return {
      platform,
      self,
      peers: founders.filter((member) => member !== self),
      journal,
      trace: this.#trace,
      send: (to: NodeId, envelope: Envelope) => this.#links.send(to, envelope),
      hasRoom: (members: readonly NodeId[]) => this.#links.hasRoom(members),
      bounds: (transport: Transport) => this.#links.bounds(transport),
      publish: (event: MemberEvent) => this.#events.publish(event),
      onFatal: (error: Error) => this.fail(error),
    };
  }

  /** A clause; empty while there is a majority. */
  get #whyNoQuorum(): string {
    const why = this.#shared.whyNoQuorum;
    const { obstacle } = this.#membership.identity;
    return why === "" || obstacle === null ? why : `${why}. ${obstacle}`;
  }

  #linking(shape: Shape<Envelope>): MemberLinks {
    return new MemberLinks({
      membership: this.#membership,
      counts: this.#counts,
      trace: this.#trace,
      notes: this.#notes,
      shape,
      deliver: (from, envelope, by, id) => this.#deliver(from, envelope, by, id),
      onCaller: (node, address) => this.#directory.heardOf(node, address),
      isSuspected: (member) => this.#shared.isSuspected(member),
      onFatal: (error) => this.fail(error),
    });
  }

  #forState(around: Omit<SharedStateOptions, keyof OfMember>): SharedStateOptions {
    return {
      ...around,
      ...this.#membership.limits,
      counts: this.#counts,
      send: (to, envelope) => this.#links.send(to, envelope),
      why: () => this.#whyNoQuorum,
      onUndefined: (machine, bytes, maxBytes) => this.#notes.undefinedMachine(machine, bytes, maxBytes),
      otherAlgorithm: (kind, name) => this.#instances.find({ kind, name })?.setting.algorithm ?? null,
    };
  }

  /** @throws EnvironmentError if an address is taken; the reason of `signal` if it is aborted meanwhile. Then all is closed again. */
  async open(signal?: AbortSignal): Promise<void> {
    this.#membership.identity.onDisagreement = (node, found) => this.#events.publish(refusalEvent(node, found));
    const { registry } = this.#membership;
    try {
      if (registry !== null) this.#unregister = register(registry, this.#metrics);
      await this.#links.open();
      this.#admin = await this.#serveAdmin();
      await firstContact(this.#links.tcp, this.#platform, signal);
      signal?.throwIfAborted();
      this.signal.throwIfAborted(); // It may have failed meanwhile.
    } catch (error) {
      await this.#close();
      this.#unregister();
      throw error;
    }
    this.#trace.started();
    this.#shared.start();
    this.state.host.start();
    this.#instances.start();
    this.#unwatch = watchStalls(this.#platform, (forMs) => this.#events.publish({ type: "stalled", forMs }));
  }

  get #platform(): Platform {
    return this.#membership.platform;
  }

  get #counts(): Counts {
    return this.#membership.counts;
  }

  /** Connections from now on are proved with these certificates. */
  renew(tls: TlsMaterial): void {
    this.#links.tcp.renew(tls);
  }

  /** The same of the admin pages. */
  renewPages(tls: AdminTls): void {
    this.#admin?.renew(tls);
  }

  get id(): NodeId {
    return this.#membership.id;
  }

  get admin(): string | null {
    return this.#admin?.url ?? null;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  election(name: string, given: ElectionOptions = {}): never {
    requireOptions("election", given, electionRules);
    const { algorithm = LOG, options = {}, rank } = given;
    if (algorithm === LOG) return this.state.election(name, given) as never;
    const open = (): LocalElection => {
      const local = this.#use("election", name, algorithm, this.#timed(algorithm, options)) as LocalElection;
      if (rank !== undefined && !this.signal.aborted) local.rank(rank);
      return local;
    };
    const find = () => (this.#instances.find({ kind: "election", name })?.local as LocalElection | undefined) ?? null;
    return new ElectionHandle(open, find) as never; // The overloads of `Member` say which tokens it has.
  }

  mutex(name: string, given: MutexOptions = {}): Mutex {
    requireOptions("mutex", given, mutexRules);
    const { algorithm = LOG, options = {} } = given;
    if (algorithm === LOG) return this.state.mutex(name, given);
    return new MutexHandle(() => this.#use("mutex", name, algorithm, this.#timed(algorithm, options)) as LocalMutex);
  }

  channel<T>(name: string, given: ChannelOptions): Channel<T> {
    requireOptions("channel", given, channelRules);
    const { order, reliable = true, transport = "tcp" } = given;
    if (transport === "log") return this.state.channel<T>(name, given);
    if (transport === "udp" && !this.#links.multicasts) throw noMulticast(name);
    const { algorithm } = stackFor(order, reliable, transport);
    const local = this.#use("channel", name, algorithm, channelOptions(transport, this.#membership.timing));
    return (local as LocalChannel).use<T>();
  }

  ready(options: ReadyOptions = {}): Promise<void> {
    requireOptions("ready", options, readyRules);
    const { identity } = this.#membership;
    const [missing, obstacle] = [() => this.missing, () => identity.obstacle];
    return whenReady(
      { platform: this.#platform, events: this.#events, signal: this.signal, missing, obstacle },
      options,
    );
  }

  /** What this member lacks to be ready; null if it is. */
  get missing(): Missing | null {
    if (!this.#shared.hasQuorum) return "no-majority";
    return this.#membership.journal !== null && this.state.host.leader === null ? "no-log-leader" : null;
  }

  events(options: { signal?: AbortSignal | undefined } = {}): AsyncIterableIterator<MemberEvent> {
    requireOptions("events", options, signalRule);
    return this.#events.read(options.signal);
  }

  status(): MemberStatus {
    const parts = { shared: this.#shared, service: this.state, instances: this.#instances, transport: this.#links.tcp };
    return statusOf(this.#membership, parts, this.#state, this.#platform.clock.now() - this.#began);
  }

  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    if (this.#state === "failed") this.#unregister(); // Until then they tell that it has failed.
    return this.#leaving;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  #use(kind: Kind, name: string, algorithm: string, options: object): LocalSide {
    requireFounder(this.#membership, kind);
    try {
      const setting = { kind, name: requireName(name), algorithm, options: optionsText(options) };
      if (!this.signal.aborted) return this.#instances.use(setting).local;
      const { platform, id: self, counts, limits } = this.#membership;
      return endedSide(setting, { platform, self, counts, ...limits }, this.signal.reason as CoordinationError);
    } catch (error) {
      throw refusedIn(kind, error, algorithm);
    }
  }

  /** What the caller leaves open follows from the member's timing. */
  #timed(algorithm: string, options: object): object {
    return { ...leaseOptions(this.#membership.timing, algorithm), ...options };
  }

  #deliver(from: NodeId, envelope: Envelope, by: Transport, id: () => MessageId): void {
    this.#trace.received(from, envelope, id);
    countReceived(this.#counts, from, typeOf(envelope));
    if (envelope.type === "detector" || envelope.type === "leadership") return this.#shared.receive(from, envelope);
    if (envelope.type === "service") return this.state.host.receive(from, envelope.content);
    if (envelope.type === "channel") this.#shared.hear(from);
    this.#instances.receive(from, envelope, by);
  }

  async #leave(): Promise<void> {
    if (this.#state === "failed") return;
    this.#state = "left";
    const { id, config } = this.#membership;
    const reason = new CoordinationError("member-left", "lost", `member ${id} of ${config.cluster} has left`);
    this.#controller.abort(reason);
    try {
      const [platform, shared, instances, transport] = [this.#platform, this.#shared, this.#instances, this.#links.tcp];
      await leaveInOrder(
        { platform, shared, instances, transport, state: this.state, sessions: this.sessions },
        reason,
      );
    } finally {
      await this.#close();
      this.#unregister();
    }
  }

  /** Nothing may go on from here: an algorithm has violated its own invariants, or the disk has failed. */
  fail(error: Error): void {
    this.#end("member-failed", `has failed: ${error.message}`, error);
  }

  #removed(): void {
    this.#end("member-removed", "has been removed from the cluster: it does not come back");
  }

  #end(code: "member-failed" | "member-removed", how: string, cause?: Error): void {
    if (this.#state !== "joined") return;
    this.#state = "failed";
    const { id, config, log } = this.#membership;
    const reason = new CoordinationError(code, "lost", `member ${id} of ${config.cluster} ${how}`, { cause });
    log.error(reason.message, { event: code });
    this.#controller.abort(reason);
    this.state.host.close(reason);
    this.#instances.close(reason);
    this.#leaving = this.#close();
    this.#leaving.catch(() => {}); // The caller of `leave` is told what cannot be closed.
  }

  async #close(): Promise<void> {
    this.#unwatch();
    this.#instances.stop();
    this.state.stop();
    this.#shared.stop();
    this.#events.close(this.signal.aborted ? (this.signal.reason as CoordinationError) : null);
    this.#links.stop();
    await Promise.all([this.#links.tcp.close(), this.#admin?.close(), this.doors.close()]);
    await this.#membership.journal?.close();
  }

  get #metrics(): readonly Metric[] {
    return memberMetrics({
      counts: this.#counts,
      instances: this.#instances,
      shared: this.#shared,
      state: this.state,
      isJoined: () => this.#state === "joined",
      peers: () => this.#links.tcp.peers,
    });
  }

  #serveAdmin(): Promise<AdminServer> | null {
    const { admin, faultInjector } = this.#membership;
    const trace = this.#trace.stream;
    if (admin === null || trace === null) return null;
    return serveMemberPages({
      place: admin,
      status: () => this.status(),
      missing: () => this.missing,
      view: () => this.state.host.view,
      trace,
      counts: this.#counts,
      metrics: this.#metrics,
      injector: faultInjector ? this.#links.injector : null,
      sessions: this.sessions,
    });
  }
}

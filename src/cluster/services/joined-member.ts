/** A member that `join()` has made: one transport, one journal, one failure detector, and any number of instances. */
import { canonical } from "../../core/plain.ts";
import type { NodeId } from "../../core/protocol.ts";
import type { Shape } from "../../core/shape.ts";
import { MAX_LISTED } from "../../protocols/service/coordination-service/member-words.ts";
import type { AdminServer, AdminTls } from "../../runtime/admin.ts";
import { type FaultInjector, faultInjector } from "../../runtime/fault-injector.ts";
import { type Metric, register } from "../../runtime/metric-table.ts";
import { type Counts, count, countReceived } from "../../runtime/metrics.ts";
import type { Platform, TlsMaterial } from "../../runtime/platform/platform.ts";
import { limitsWith } from "../../runtime/transport/limits.ts";
import { type SendResult, type TcpOptions, type TcpTransport, tcpTransport } from "../../runtime/transport/tcp.ts";
import { type UdpMulticast, type UdpOptions, udpMulticast } from "../../runtime/transport/udp-multicast.ts";
import type { UdpPlace } from "../../runtime/transport/udp-place.ts";
import type { LossReason, MessageId } from "../../trace/entry.ts";
import { transportPlaces } from "../config.ts";
import {
  channelOptions,
  type Envelope,
  envelopeShape,
  optionsText,
  SERVICE_VERSION,
  type ServiceEnvelope,
} from "./algorithms.ts";
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
import { type Bounds, boundsWithin } from "./channel-text.ts";
import { CoordinationError, type Missing } from "./coordination-error.ts";
import { isOfNames, roughBytes, typeOf } from "./envelope-words.ts";
import { firstContact } from "./first-contact.ts";
import { othersNow, requireFounder } from "./founders.ts";
import { ElectionHandle, MutexHandle } from "./handles.ts";
import type { Instance } from "./instance.ts";
import { Instances } from "./instances.ts";
import { refusedIn, requireOptions } from "./known-options.ts";
import { leaveInOrder } from "./leaving.ts";
import type { LocalChannel } from "./local-channel.ts";
import type { LocalElection } from "./local-election.ts";
import { type LocalMembers, membersOf } from "./local-members.ts";
import type { LocalMutex } from "./local-mutex.ts";
import { MemberDirectory } from "./member-directory.ts";
import { changeEvent, latestEvents, refusalEvent } from "./member-events.ts";
import { memberMetrics } from "./member-metrics.ts";
import { serveMemberPages } from "./member-pages.ts";
import { statusOf } from "./member-status.ts";
import { MemberTrace } from "./member-trace.ts";
import type { Membership } from "./membership.ts";
import { controllerForMany } from "./on-abort.ts";
import { type Feed, feed } from "./reading.ts";
import { readyRules, whenReady } from "./ready.ts";
import { RefusalNotes } from "./refusal-notes.ts";
import { Resending } from "./resending.ts";
import { Sessions } from "./sessions.ts";
import { SharedParts } from "./shared-parts.ts";
import { sharedProtocols } from "./shared-protocols.ts";
import { watchStalls } from "./stall-watch.ts";
import { Machines } from "./state/replicated.ts";
import { type OfMember, SharedState, type SharedStateOptions } from "./state/shared-state.ts";
import { Sharing } from "./state/sharing.ts";
import { leaseOptions } from "./timing.ts";
import { UNSENT } from "./unrecorded.ts";

/** With so much on its way to a member, what is sent on channels waits. */
const FULL_LINK_BYTES = 1024 * 1024;
/** The algorithm of locks and elections where their user does not say otherwise: the replicated log. */
const LOG = "raft";

/** What both transports are told alike. */
type Ways = Omit<TcpOptions<Envelope>, "members" | "deliver" | "limits" | "identity" | "tls">;

export class JoinedMember extends Sharing implements Member {
  readonly #membership: Membership;
  readonly #injector: FaultInjector;
  readonly #controller = controllerForMany();
  readonly #events: Feed<MemberEvent> = feed(latestEvents);
  readonly #began: number;
  readonly #trace: MemberTrace;
  readonly #notes: RefusalNotes;
  readonly #transport: TcpTransport<Envelope>;
  /** Null where this member does not multicast. */
  readonly #udp: UdpMulticast<Envelope> | null;
  readonly #resending: Resending<Envelope>;
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
    this.#injector = faultInjector(platform.random);
    this.#began = platform.clock.now();
    this.#trace = new MemberTrace(id, platform.clock, membership.admin !== null);
    this.#notes = new RefusalNotes(log, this.#counts, (event) => this.#events.publish(event));
    const protocols = sharedProtocols(membership, this.#machines.definitions);
    const known = othersNow(membership);
    const around = this.#around(founders);
    const onOverflow = (to: NodeId): void => this.#notes.overflow(to);
    this.#resending = new Resending({ platform, send: around.send, bytesOf: roughBytes, leads: isOfNames, onOverflow });
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
      send: (to, envelope) => this.#resending.attempt(to, envelope),
      insist: (to, envelope) => this.#resending.insist(to, envelope),
      multicast: (to, envelope, transport) => this.#multicast(to, envelope, transport),
      news: () => this.#shared.news(),
      checkService: () => this.#shared.checkService(),
      onExhausted: () => this.#shared.beginEpoch(),
      give: (part, command) => this.#shared.give(part, command),
      onRefused: (setting, by, why) => this.#notes.instance(setting, by, why),
      onFull: ({ kind, name }, by) => this.#notes.full(kind, name, by),
      isOnLog: (kind, name) => this.state.uses(kind, name),
      onStray: (from, envelope) => this.#notes.datagram(from, envelope),
    });
    const ways = this.#ways(envelopeShape(protocols));
    this.#transport = this.#linking(ways);
    const [service, shared, transport] = [this.state.host, this.#shared, this.#transport];
    this.cluster = membersOf(membership, service, transport);
    this.#directory = new MemberDirectory(membership, {
      ...{ service, shared, transport },
      onChanged: (list) => this.#events.publish(changeEvent(list)),
      onRemoved: () => this.#removed(),
    });
    this.#udp = membership.multicast && this.#multicasting(ways, founders, membership.multicast);
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
      send: (to: NodeId, envelope: Envelope) => this.#send(to, envelope),
      hasRoom: (members: readonly NodeId[]) => this.#hasRoom(members),
      bounds: (transport: Transport) => this.#bounds(transport),
      publish: (event: MemberEvent) => this.#events.publish(event),
      onFatal: (error: Error) => this.fail(error),
    };
  }

  #linking(ways: Ways): TcpTransport<Envelope> {
    const { id, config, identity, tls } = this.#membership;
    return tcpTransport<Envelope>({
      ...ways,
      deliver: (from, envelope, messageId) => this.#deliver(from, envelope, "tcp", messageId),
      outlives: ({ type }) => type === "channel", // Its views say which run of a member they mean, and who is in one counts on it.
      ...transportPlaces(id, config),
      maxPeers: MAX_LISTED,
      onCaller: (node, address) => this.#directory.heardOf(node, address),
      identity,
      tls,
    });
  }

  #forState(around: Omit<SharedStateOptions, keyof OfMember>): SharedStateOptions {
    return {
      ...around,
      ...this.#membership.limits,
      counts: this.#counts,
      send: (to, envelope) => this.#sendOfService(to, envelope),
      why: () => this.#shared.whyNoQuorum,
      otherAlgorithm: (kind, name) => this.#instances.find({ kind, name })?.setting.algorithm ?? null,
    };
  }

  #ways(shape: Shape<Envelope>) {
    const { platform, id, config, journal, timing, log } = this.#membership;
    return {
      platform,
      cluster: config.cluster,
      self: id,
      protocol: canonical(["services", journal !== null, ...(timing === "default" ? [] : [timing])]),
      shape,
      injector: this.#injector,
      counts: this.#counts,
      log,
      onLost: (to: NodeId, ids: () => readonly MessageId[], why: LossReason) => this.#trace.lost(to, ids, why),
      onFatal: (error: Error) => this.fail(error),
    };
  }

  /** @throws EnvironmentError if an address is taken; the reason of `signal` if it is aborted meanwhile. Then all is closed again. */
  async open(signal?: AbortSignal): Promise<void> {
    this.#membership.identity.onDisagreement = (node, found) => this.#events.publish(refusalEvent(node, found));
    const { registry } = this.#membership;
    try {
      if (registry !== null) this.#unregister = register(registry, this.#metrics);
      await this.#transport.open();
      await this.#udp?.open();
      this.#admin = await this.#serveAdmin();
      await firstContact(this.#transport, this.#platform, signal);
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
    this.#transport.renew(tls);
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
      const local = this.#use("election", name, algorithm, this.#timed(algorithm, options)).local as LocalElection;
      if (rank !== undefined) local.rank(rank);
      return local;
    };
    const find = () => (this.#instances.find({ kind: "election", name })?.local as LocalElection | undefined) ?? null;
    return new ElectionHandle(open, find) as never; // The overloads of `Member` say which tokens it has.
  }

  mutex(name: string, given: MutexOptions = {}): Mutex {
    requireOptions("mutex", given, mutexRules);
    const { algorithm = LOG, options = {} } = given;
    if (algorithm === LOG) return this.state.mutex(name, given);
    return new MutexHandle(
      () => this.#use("mutex", name, algorithm, this.#timed(algorithm, options)).local as LocalMutex,
    );
  }

  channel<T>(name: string, given: ChannelOptions): Channel<T> {
    requireOptions("channel", given, channelRules);
    const { order, reliable = true, transport = "tcp" } = given;
    if (transport === "log") return this.state.channel<T>(name, given);
    if (transport === "udp" && this.#udp === null) throw noMulticast(name);
    const { algorithm } = stackFor(order, reliable, transport);
    const { local } = this.#use("channel", name, algorithm, channelOptions(transport, this.#membership.timing));
    return (local as LocalChannel).use<T>();
  }

  ready(options: ReadyOptions = {}): Promise<void> {
    requireOptions("ready", options, readyRules);
    return whenReady(
      { platform: this.#platform, events: this.#events, signal: this.signal, missing: () => this.missing },
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
    const parts = { shared: this.#shared, service: this.state, instances: this.#instances, transport: this.#transport };
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

  #use(kind: Kind, name: string, algorithm: string, options: object): Instance {
    requireFounder(this.#membership, kind);
    try {
      return this.#instances.use({ kind, name, algorithm, options: optionsText(options) });
    } catch (error) {
      throw refusedIn(kind, error, algorithm);
    }
  }

  /** What the caller leaves open follows from the member's timing. */
  #timed(algorithm: string, options: object): object {
    return { ...leaseOptions(this.#membership.timing, algorithm), ...options };
  }

  #send(to: NodeId, envelope: Envelope): SendResult {
    count(this.#counts.messagesSent, typeOf(envelope));
    const result = this.#transport.hasPeer(to) ? this.#transport.send(to, envelope) : UNSENT;
    this.#trace.sent(to, envelope, result);
    return result;
  }

  /** A member of an earlier release could not read it, and would take it for damage. */
  #sendOfService(to: NodeId, envelope: ServiceEnvelope): SendResult {
    if ((this.#transport.versionOf(to) ?? 0) >= SERVICE_VERSION) return this.#send(to, envelope);
    count(this.#counts.lost, "down");
    return UNSENT;
  }

  #multicast(to: readonly NodeId[], envelope: Envelope, transport: Transport): void {
    if (transport === "tcp" || this.#udp === null) {
      for (const member of to) this.#send(member, envelope);
      return;
    }
    count(this.#counts.messagesSent, typeOf(envelope));
    const resultOf = this.#udp.send(envelope, to);
    if (this.#trace.wanted) for (const member of to) this.#trace.sent(member, envelope, resultOf(member));
  }

  #multicasting(
    ways: Omit<UdpOptions<Envelope>, "members" | "place" | "deliver" | "fallback" | "linked">,
    members: readonly NodeId[],
    place: UdpPlace,
  ): UdpMulticast<Envelope> {
    return udpMulticast({
      ...ways,
      members,
      place,
      deliver: (from, envelope, messageId) => {
        if (envelope.type === "channel") this.#deliver(from, envelope, "udp", messageId);
        else this.#notes.datagram(from, envelope);
      },
      fallback: (to, envelope) => this.#transport.send(to, envelope),
      linked: () => this.#transport.peers.flatMap(({ id, link }) => (link === "open" ? [id] : [])),
    });
  }

  #bounds(transport: Transport): Bounds {
    const { limits, members } = this.#membership.config;
    const datagramBytes = transport === "udp" ? this.#udp?.payloadBytes : undefined;
    return boundsWithin(limitsWith(limits).maxFrameBytes, Object.keys(members).length, datagramBytes);
  }

  #hasRoom(members: readonly NodeId[]): boolean {
    return this.#transport.peers.every(({ id, queuedBytes }) => {
      if (!members.includes(id)) return true;
      return (queuedBytes < FULL_LINK_BYTES || this.#shared.isSuspected(id)) && !this.#resending.isFull(id);
    });
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
      const [platform, shared, instances, transport] = [this.#platform, this.#shared, this.#instances, this.#transport];
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
    this.#events.close();
    this.#resending.close();
    this.#udp?.close();
    await Promise.all([this.#transport.close(), this.#admin?.close(), this.doors.close()]);
    await this.#membership.journal?.close();
  }

  get #metrics(): readonly Metric[] {
    return memberMetrics({
      counts: this.#counts,
      instances: this.#instances,
      shared: this.#shared,
      state: this.state,
      isJoined: () => this.#state === "joined",
      peers: () => this.#transport.peers,
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
      injector: faultInjector ? this.#injector : null,
      sessions: this.sessions,
    });
  }
}

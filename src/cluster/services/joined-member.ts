import type { NodeId } from "../../core/protocol.ts";
import type { AnyProtocol } from "../../protocols/entry.ts";
import { heartbeat } from "../../protocols/membership/heartbeat.ts";
import { coordinationService } from "../../protocols/service/coordination-service/coordination-service.ts";
import type { AdminServer, AdminTls } from "../../runtime/admin.ts";
import { type Metric, register } from "../../runtime/metric-table.ts";
import { type Counts, count, countReceived } from "../../runtime/metrics.ts";
import type { Platform, TlsMaterial } from "../../runtime/platform/platform.ts";
import type { MessageId } from "../../trace/entry.ts";
import type { Election, ElectionOptions, Member, MemberEvent, MemberStatus, Mutex, ReadyOptions } from "./api.ts";
import { channelRules, noMulticast, signalRule } from "./call-options.ts";
import type { Channel, ChannelOptions, Transport } from "./channel-api.ts";
import { CoordinationError, type Missing } from "./coordination-error.ts";
import { type Envelope, envelopeShape, typeOf } from "./envelope.ts";
import { firstContact } from "./first-contact.ts";
import { othersNow } from "./founders.ts";
import { requireOptions } from "./known-options.ts";
import { leaveInOrder } from "./leaving.ts";
import { type LocalMembers, membersOf } from "./local-members.ts";
import { MemberDetector } from "./member-detector.ts";
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
import { watchStalls } from "./stall-watch.ts";
import { Machines } from "./state/replicated.ts";
import { SharedState } from "./state/shared-state.ts";
import { Sharing } from "./state/sharing.ts";
import { detectorOptions, serviceOptions } from "./timing.ts";

/** The object that `join()` returns. */
export class JoinedMember extends Sharing implements Member {
  readonly #membership: Membership;
  readonly #controller = controllerForMany();
  readonly #events: Feed<MemberEvent> = feed(latestEvents);
  readonly #began: number;
  readonly #trace: MemberTrace;
  readonly #notes: RefusalNotes;
  readonly #links: MemberLinks;
  readonly #detector: MemberDetector;
  readonly state: SharedState;
  readonly cluster: LocalMembers;
  readonly #directory: MemberDirectory;
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
    const { platform, id: self, log, journal, limits, timing } = membership;
    this.#began = platform.clock.now();
    this.#trace = new MemberTrace(self, platform.clock, membership.admin !== null);
    this.#notes = new RefusalNotes(log, this.#counts, (event) => this.#events.publish(event));
    const detector = heartbeat(detectorOptions(timing)) as never as AnyProtocol;
    const service = this.#serviceProtocol();
    const known = othersNow(membership);
    const trace = this.#trace;
    this.#links = new MemberLinks({
      ...{ membership, counts: this.#counts, trace, notes: this.#notes, shape: envelopeShape(detector, service) },
      deliver: (from, envelope, by, id) => this.#deliver(from, envelope, by, id),
      onCaller: (node, address) => this.#directory.heardOf(node, address),
      isSuspected: (member) => this.#detector.isSuspected(member),
      onFatal: (error) => this.fail(error),
    });
    const around = {
      ...{ platform, self, trace },
      publish: (event: MemberEvent) => this.#events.publish(event),
      onFatal: (error: Error) => this.fail(error),
    };
    this.#detector = new MemberDetector({
      ...{ ...around, known, protocol: detector },
      send: (to, envelope) => this.#links.send(to, envelope),
      onSuspicion: (node, isSuspected) => this.state.noteSuspicion(node, isSuspected),
    });
    this.state = new SharedState(
      {
        ...{ ...around, ...limits, journal, timing, peers: known, protocol: service, counts: this.#counts },
        links: this.#links,
        send: (to, envelope) => this.#links.send(to, envelope),
        why: () => this.#whyNoQuorum,
        suspected: () => this.#detector.suspected,
        onUndefined: (machine, bytes, maxBytes) => this.#notes.undefinedMachine(machine, bytes, maxBytes),
        onRefused: (channel, why) => this.#notes.channel(channel, why),
      },
      this.#machines,
    );
    this.cluster = membersOf(membership, this.state.host, this.#links.tcp);
    this.#directory = new MemberDirectory(membership, {
      ...{ service: this.state.host, detector: this.#detector, transport: this.#links.tcp },
      onChanged: (list) => this.#events.publish(changeEvent(list)),
      onRemoved: () => this.#removed(),
    });
  }

  /** Returns the protocol of the service. A new member votes only once the log lists it as a voter. */
  #serviceProtocol(): AnyProtocol {
    const { timing, founders, known, id, config } = this.#membership;
    const first = known.list?.voters ?? Object.keys(config.members).map(Number);
    const voters = founders.length === 0 ? first.filter((member) => member !== id) : founders;
    const { session = {}, log = {} } = serviceOptions(timing);
    return coordinationService({ session, log: { ...log, voters } }, this.#machines.definitions);
  }

  /** Why no majority is reachable, as a clause. Empty if one is reachable. */
  get #whyNoQuorum(): string {
    const why = this.#detector.whyNoQuorum;
    const { obstacle } = this.#membership.identity;
    return why === "" || obstacle === null ? why : `${why}. ${obstacle}`;
  }

  /**
   * @throws EnvironmentError if an address is in use; the reason of `signal` if it is aborted during the call. In both
   *   cases, everything that was opened is closed again
   */
  async open(signal?: AbortSignal): Promise<void> {
    this.#membership.identity.onDisagreement = (node, found) => this.#events.publish(refusalEvent(node, found));
    const { registry } = this.#membership;
    try {
      if (registry !== null) this.#unregister = register(registry, this.#metrics);
      await this.#links.open();
      this.#admin = await this.#serveAdmin();
      await firstContact(this.#links.tcp, this.#platform, signal);
      signal?.throwIfAborted();
      this.signal.throwIfAborted(); // The member may have failed in the meantime.
    } catch (error) {
      await this.#close();
      this.#unregister();
      throw error;
    }
    this.#trace.started();
    this.#detector.start();
    this.state.host.start();
    this.#unwatch = watchStalls(this.#platform, (forMs) => this.#events.publish({ type: "stalled", forMs }));
  }

  get #platform(): Platform {
    return this.#membership.platform;
  }

  get #counts(): Counts {
    return this.#membership.counts;
  }

  /** Uses the given certificates for new connections. */
  renew(tls: TlsMaterial): void {
    this.#links.tcp.renew(tls);
  }

  /** Uses the given certificates for the admin pages. */
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

  election<M>(name: string, options: ElectionOptions<M> = {}): Election<M> {
    return this.state.election(name, options);
  }

  mutex(name: string): Mutex {
    return this.state.mutex(name);
  }

  channel<T>(name: string, given: ChannelOptions): Channel<T> {
    requireOptions("channel", given, channelRules);
    if (given.transport === "udp" && !this.#links.multicasts) throw noMulticast(name);
    return this.state.channel<T>(name, given);
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

  /** Why this member is not ready. Null if it is. */
  get missing(): Missing | null {
    if (!this.#detector.hasQuorum) return "no-majority";
    return this.state.host.leader === null ? "no-log-leader" : null;
  }

  events(options: { signal?: AbortSignal | undefined } = {}): AsyncIterableIterator<MemberEvent> {
    requireOptions("events", options, signalRule);
    return this.#events.read(options.signal);
  }

  status(): MemberStatus {
    const parts = { detector: this.#detector, service: this.state, transport: this.#links.tcp };
    return statusOf(this.#membership, parts, this.#state, this.#platform.clock.now() - this.#began);
  }

  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    if (this.#state === "failed") this.#unregister(); // Until this point, the metrics show that the member has failed.
    return this.#leaving;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave();
  }

  #deliver(from: NodeId, envelope: Envelope, by: Transport, id: () => MessageId): void {
    this.#trace.received(from, envelope, id);
    countReceived(this.#counts, from, typeOf(envelope));
    if (envelope.type === "detector") return this.#detector.receive(from, envelope.body);
    if (envelope.type === "service") return this.state.host.receive(from, envelope.content);
    this.#detector.hear(from);
    if (!this.state.receive(from, envelope, by) && by === "udp") this.#notes.datagram(from, envelope);
  }

  async #leave(): Promise<void> {
    if (this.#state === "failed") return;
    this.#state = "left";
    const { id, config } = this.#membership;
    const reason = new CoordinationError("member-left", "lost", `member ${id} of ${config.cluster} has left`);
    this.#controller.abort(reason);
    try {
      const [platform, detector, transport] = [this.#platform, this.#detector, this.#links.tcp];
      await leaveInOrder({ platform, detector, transport, state: this.state, sessions: this.sessions }, reason);
    } finally {
      await this.#close();
      this.#unregister();
    }
  }

  /** Ends the member because an algorithm has violated its own invariants, or because the disk has failed. */
  fail(error: Error): void {
    this.#end("member-failed", `has failed: ${error.message}`, error);
  }

  #removed(): void {
    this.#end("member-removed", "has been removed from the cluster for good");
  }

  #end(code: "member-failed" | "member-removed", how: string, cause?: Error): void {
    if (this.#state !== "joined") return;
    this.#state = "failed";
    const { id, config, log } = this.#membership;
    const reason = new CoordinationError(code, "lost", `member ${id} of ${config.cluster} ${how}`, { cause });
    log.error(reason.message, { event: code });
    this.#controller.abort(reason);
    this.state.host.close(reason);
    this.#leaving = this.#close();
    this.#leaving.catch(() => {}); // `leave()` reports errors that occur during closing.
  }

  async #close(): Promise<void> {
    this.#unwatch();
    this.state.stop();
    this.#detector.stop();
    this.#events.close(this.signal.aborted ? (this.signal.reason as CoordinationError) : null);
    this.#links.stop();
    await Promise.all([this.#links.tcp.close(), this.#admin?.close(), this.doors.close()]);
    await this.#membership.journal.close();
  }

  get #metrics(): readonly Metric[] {
    return memberMetrics({
      counts: this.#counts,
      detector: this.#detector,
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

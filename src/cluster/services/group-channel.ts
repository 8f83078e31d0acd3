/**
 * A channel at a member. It connects the multicast algorithm that the checker explores to this member's replicated
 * service. The group and its views are log entries. Messages are sent over links, or also through the log with
 * `transport: "log"`.
 */
import type { NodeId, StateOf, Tagged, Vocabulary } from "../../core/protocol.ts";
import { hasShape } from "../../core/shape.ts";
import type { AnyProtocol } from "../../protocols/entry.ts";
import { channelStacks } from "../../protocols/multicast/family/channels.ts";
import { type LogMulticast, logMulticast, logWires, stallWires } from "../../protocols/multicast/log-multicast.ts";
import type { GroupOperation } from "../../protocols/service/coordination-service/operations.ts";
import { Host } from "../../runtime/host.ts";
import type { Timer } from "../../runtime/platform/platform.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import type { InstanceStatus } from "./api.ts";
import type { Order, Transport } from "./channel-api.ts";
import { type Bounds, MAX_PAYLOAD_BYTES } from "./channel-text.ts";
import { CoordinationError } from "./coordination-error.ts";
import { type ChannelEnvelope, messageShape } from "./envelope.ts";
import { type ChannelEngine, LocalChannel } from "./local-channel.ts";
import type { MemberTrace } from "./member-trace.ts";
import { ASK_AGAIN_MS } from "./state/refusals.ts";
import type { Told } from "./state/service.ts";
import type { ServiceHost } from "./state/service-host.ts";
import { type Timing, viewOptions } from "./timing.ts";
import { UNNAMED, UNTOLD } from "./unrecorded.ts";
import { type AlgorithmEvent, by, type Wired, wired } from "./wired.ts";

/** The links to other members, as channels use them. */
export interface ChannelLinks {
  /** Sends a message, and retries until the link accepts it. */
  insist(to: NodeId, envelope: ChannelEnvelope): SendResult;
  send(to: NodeId, envelope: ChannelEnvelope): SendResult;
  multicast(to: readonly NodeId[], envelope: ChannelEnvelope, transport: Transport): void;
  hasRoom(members: readonly NodeId[]): boolean;
  bounds(transport: Transport): Bounds;
}

export interface GroupChannelOptions {
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  readonly timing: Timing;
  readonly links: ChannelLinks;
  readonly trace: MemberTrace;
  /** The members that are currently suspected. */
  readonly suspected: readonly NodeId[];
  /** Called when the channel has not been used in this process for a while. */
  onUnused(): void;
  /** Called when the group already uses different options. */
  onRefused(why: string): void;
  onFatal(error: Error): void;
}

/** The interval between checks for use. A channel counts as unused after two consecutive checks. */
const LOOK_EVERY_MS = 5_000;
/**
 * Size limits for messages sent through the log. Nesting JSON in JSON may double its size, and a log entry holds 65,000
 * bytes.
 */
const LOG_BOUNDS: Bounds = { payloadBytes: MAX_PAYLOAD_BYTES, batchBytes: 30_000 };
const LOG_ALGORITHM = "log-multicast";

/**
 * Returns the group's options as recorded in the log. Members that open the name with different options are refused.
 */
const settingOf = (order: Order, transport: Transport): string => JSON.stringify({ order, transport });

export class GroupChannel {
  readonly local: LocalChannel;
  readonly #options: GroupChannelOptions;
  readonly #algorithm: string;
  readonly #service: ServiceHost;
  readonly #host: Host<Vocabulary>;
  readonly #wired: Wired;
  readonly #messages: ReturnType<typeof messageShape>;
  readonly #unlisten: () => void;
  readonly #again = new Set<Timer>();
  /** The protocol's state. The host mutates this object. */
  #state!: StateOf<LogMulticast>;
  #look: Timer | null = null;
  #isOpen = true;

  constructor(service: ServiceHost, options: GroupChannelOptions) {
    const { name, order, transport, timing, suspected, onUnused } = options;
    this.#options = options;
    this.#service = service;
    const group = { group: name, setting: settingOf(order, transport) };
    const stack = channelStacks[order];
    const views = { ...group, ...viewOptions(timing) };
    const protocol = (transport === "log" ? logMulticast(group) : stack.make({ views })) as never as AnyProtocol;
    this.#algorithm = transport === "log" ? LOG_ALGORITHM : stack.algorithm;
    this.#messages = messageShape(protocol);
    const perform = by({ perform: ({ operation }: { operation: GroupOperation }) => this.#perform(operation) });
    const takes = (command: string): boolean => Object.hasOwn(protocol.shapes.command ?? {}, command);
    this.#wired = wired(
      "multicast",
      { ...logWires, ...stallWires },
      (command) => this.#give(command),
      (_session, command) => perform(command),
    );
    this.#host = this.#hostOf(protocol);
    this.local = new LocalChannel(this.#engine(takes));
    this.#unlisten = service.listen((event) => this.#serve(event));
    this.#host.start();
    this.local.begin();
    const { session, leader } = service;
    if (session !== null && service.isOfThisRun(session)) this.#wired.onShared({ type: "began", session });
    if (leader === null) this.#wired.onShared({ type: "led", leader });
    for (const node of suspected) this.noteSuspicion(node, true);
    this.#lookWhetherUsed(onUnused, false);
  }

  get isUsed(): boolean {
    return this.local.isUsed;
  }

  get setting(): Pick<GroupChannelOptions, "order" | "transport"> {
    return this.#options;
  }

  get status(): InstanceStatus {
    const { role } = this.#host.view;
    const { held, status } = this.local;
    const { name } = this.#options;
    return { kind: "channel", name, role, leader: null, ...held, channel: status };
  }

  /**
   * @param envelope received from another member, over a link or in a datagram
   * @returns false for a datagram to a channel that does not use datagrams
   */
  receive(from: NodeId, envelope: ChannelEnvelope, over: Transport): boolean {
    const { transport } = this.#options;
    if (over === "udp" && transport !== "udp") return false;
    if (!this.#isOpen || transport === "log") return true;
    if (envelope.type === "pressure") this.local.onPressure(from, envelope.isFull);
    else if (envelope.content.type === this.#algorithm && "body" in envelope.content)
      this.#host.receive(from, envelope.content.body as never, UNNAMED);
    return true;
  }

  /**
   * Forwards a suspicion to the algorithm. With `transport: "log"` this is unnecessary, since members do not wait for
   * each other.
   */
  noteSuspicion(node: NodeId, isSuspected: boolean): void {
    if (this.#options.transport !== "log") this.#give({ type: isSuspected ? "suspect" : "restore", node } as Tagged);
  }

  /** Called when this process no longer uses the channel. */
  retire(): void {
    this.#give({ type: "leave" });
    this.stop();
  }

  stop(): void {
    this.#isOpen = false;
    this.#unlisten();
    this.#host.stop();
    this.local.stop();
    const { timers } = this.#service.platform;
    timers.cancel(this.#look);
    for (const timer of this.#again) timers.cancel(timer);
  }

  #lookWhetherUsed(onUnused: () => void, wasUnused: boolean): void {
    this.#look = this.#service.platform.timers.after(LOOK_EVERY_MS, () => {
      if (wasUnused && !this.isUsed) onUnused();
      else this.#lookWhetherUsed(onUnused, !this.isUsed);
    });
    this.#look.unref();
  }

  #hostOf(protocol: AnyProtocol): Host<Vocabulary> {
    const { platform, self } = this.#service;
    const { name, transport, links, trace, onFatal } = this.#options;
    const overLinks = {
      send: (to: NodeId, body: Tagged) => links.insist(to, this.#envelope(body)),
      multicast: (body: Tagged) => {
        const others = this.local.members.filter((member) => member !== self);
        links.multicast(others, this.#envelope(body), transport);
        return () => UNTOLD;
      },
    };
    const throughLog = {
      send: (to: NodeId, body: Tagged) => {
        this.#say(to, body);
        return UNTOLD;
      },
    };
    return new Host<Vocabulary>({
      platform,
      self,
      protocol: { ...protocol, init: (...node) => (this.#state = protocol.init(...node) as StateOf<LogMulticast>) },
      peers: [], // Members of the group are added later.
      trace: trace.of(["channel", name]),
      onEvent: (event) => {
        this.#wired.onOwn(event);
        this.local.onEvent(event);
      },
      onFatal,
      ...(transport === "log" ? throughLog : overLinks),
    });
  }

  #engine(takes: (command: string) => boolean): ChannelEngine {
    const { platform, self, maxWaiters } = this.#service;
    const { name, order, transport, links } = this.#options;
    const isOnLog = transport === "log";
    return {
      ...{ platform, name, order, transport, self, maxWaiters, takes },
      bounds: isOnLog ? LOG_BOUNDS : links.bounds(transport),
      command: (command) => this.#give(command),
      hasRoom: (members) => isOnLog || links.hasRoom(members),
      sendPressure: (isFull) => {
        if (isOnLog) return; // On the log, a slow reader here does not block senders at other members.
        const others = this.local.members.filter((member) => member !== self);
        for (const member of others) links.send(member, { type: "pressure", name, isFull });
      },
    };
  }

  #envelope(body: Tagged): ChannelEnvelope {
    return { type: "channel", name: this.#options.name, content: { type: this.#algorithm, body } };
  }

  #give(command: Tagged): void {
    if (this.#isOpen) this.#host.carryOut(command as never);
  }

  /** Sends a message to one member through the log. */
  #say(to: NodeId, body: Tagged): void {
    const { wait } = this.#state.order;
    const { name } = this.#options;
    this.#perform({ type: "say", name, wait, number: 0, to, text: JSON.stringify(body) });
  }

  #perform(operation: GroupOperation): void {
    const service = this.#service;
    if (service.closed !== null) return;
    service
      .submit(operation, () => this.#isOpen)
      .catch((error: unknown) => {
        if (!this.#isOpen || service.closed !== null) return;
        if ((error as { code?: string }).code === "other-setting") return this.#refuse((error as Error).message);
        const timer = service.platform.timers.after(ASK_AGAIN_MS, () => {
          this.#again.delete(timer);
          this.#give({ type: "notDone", operation } as Tagged);
        });
        this.#again.add(timer);
      });
  }

  #refuse(why: string): void {
    this.local.close(new CoordinationError("instance-refused", "lost", why));
    this.#options.onRefused(why);
  }

  #serve(event: Told): void {
    if (event.type === "closed") return this.local.close(event.reason);
    if (event.type === "grouped" && event.name === this.#options.name)
      for (const { member } of event.members) if (member !== this.#service.self) this.#host.meet(member);
    this.#wired.onShared(event as AlgorithmEvent);
    if (event.type !== "said" || event.name !== this.#options.name || event.to !== this.#service.self) return;
    const body = parsed(event.text);
    if (this.#isOpen && hasShape(this.#messages, body)) this.#host.receive(event.from, body as never, UNNAMED);
  }
}

/** Parses a message. It comes from another member, so it may be invalid. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

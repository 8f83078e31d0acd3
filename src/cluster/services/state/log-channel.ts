/**
 * A channel on the replicated log: the multicast that the checker explores as `log-multicast`, with this member's replicated service at
 * the other end of its wires. What one member says to another alone goes through the log as well, so the group needs no links of its own.
 */
import type { NodeId, StateOf, Tagged, Vocabulary } from "../../../core/protocol.ts";
import { hasShape, type Shapes, variants } from "../../../core/shape.ts";
import type { AnyProtocol } from "../../../protocols/index.ts";
import type { Order } from "../../../protocols/multicast/family/stacks.ts";
import { type LogMulticast, logMulticast, logWires, stallWires } from "../../../protocols/multicast/log-multicast.ts";
import type { GroupOperation } from "../../../protocols/service/coordination-service/operations.ts";
import { Host } from "../../../runtime/host.ts";
import type { TraceSink } from "../../../runtime/host-options.ts";
import type { Timer } from "../../../runtime/platform/platform.ts";
import { takes } from "../algorithms.ts";
import type { InstanceStatus } from "../api.ts";
import { MAX_PAYLOAD_BYTES } from "../channel-text.ts";
import type { AlgorithmEvent, Engine } from "../engine.ts";
import { LocalChannel } from "../local-channel.ts";
import type { MemberTrace } from "../member-trace.ts";
import { UNNAMED, UNTOLD } from "../unrecorded.ts";
import { by, wired } from "../wired.ts";
import { ASK_AGAIN_MS } from "./refusals.ts";
import type { Told } from "./service.ts";
import type { ServiceHost } from "./service-host.ts";

export interface LogChannelOptions {
  readonly name: string;
  readonly order: Order;
  readonly trace: MemberTrace;
  /** Nobody here has used it for a while. */
  onUnused(): void;
  onFatal(error: Error): void;
}

/** Twice in a row it has to be unused. */
const LOOK_EVERY_MS = 5_000;
/** As JSON within JSON it may take twice as much, and an entry of the log holds 65,000 bytes. */
const BATCH_BYTES = 30_000;

export class LogChannel {
  readonly local: LocalChannel;
  readonly order: Order;
  readonly #name: string;
  readonly #service: ServiceHost;
  readonly #host: Host<Vocabulary>;
  readonly #forget: () => void;
  /** The host's own, which goes on changing. */
  #state!: StateOf<LogMulticast>;
  readonly #again = new Set<Timer>();
  #look: Timer | null = null;
  #isOpen = true;

  constructor(service: ServiceHost, { name, order, trace, onUnused, onFatal }: LogChannelOptions) {
    this.#name = name;
    this.#service = service;
    this.order = order;
    const protocol = logMulticast({ group: name }) as never as AnyProtocol;
    const messages = variants((protocol.shapes.message ?? {}) as Shapes<Tagged>);
    const { onOwn, onShared } = wired(
      "multicast",
      { ...logWires, ...stallWires },
      (command) => this.#give(command),
      (_session, command) => ask(command),
    );
    const ask = by({ perform: ({ operation }: { operation: GroupOperation }) => this.#ask(operation) });
    this.#host = this.#hostOf(protocol, trace.of(["channel", name]), onFatal, (event) => {
      onOwn(event);
      this.local.onEvent(event);
    });
    this.local = new LocalChannel(this.#engine(protocol), { order, carrier: "log" });
    this.#forget = service.listen((event) => {
      if (event.type === "closed") return this.local.close(event.reason);
      this.#meet(event);
      onShared(event as AlgorithmEvent);
      this.#receive(event, messages);
    });
    this.#host.start();
    this.local.begin();
    const { session, leader } = service;
    if (session !== null && service.isOfThisRun(session)) onShared({ type: "began", session });
    if (leader === null) onShared({ type: "led", leader });
    this.#lookWhetherUsed(onUnused, false);
  }

  get isUsed(): boolean {
    return this.local.isUsed;
  }

  get status(): InstanceStatus {
    const { role } = this.#host.view;
    const { algorithm, held, status } = this.local;
    return { kind: "channel", name: this.#name, algorithm, role, leader: null, ...held, channel: status };
  }

  /** Nobody uses it here any more. */
  retire(): void {
    this.#give({ type: "leave" });
    this.stop();
    this.local.retire();
  }

  stop(): void {
    this.#isOpen = false;
    this.#forget();
    this.#host.stop();
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

  #hostOf(
    protocol: AnyProtocol,
    trace: TraceSink<Vocabulary>,
    onFatal: (error: Error) => void,
    onEvent: (event: AlgorithmEvent) => void,
  ): Host<Vocabulary> {
    const { platform, self } = this.#service;
    const init: AnyProtocol["init"] = (node, others) => {
      const state = protocol.init(node, others);
      this.#state = state as StateOf<LogMulticast>;
      return state;
    };
    const send = (to: NodeId, body: Tagged): typeof UNTOLD => {
      this.#say(to, body);
      return UNTOLD;
    };
    return new Host<Vocabulary>({
      ...{ platform, self, trace, onFatal, onEvent, send },
      protocol: { ...protocol, init },
      peers: [], // Those in the group, once they are.
    });
  }

  #engine(protocol: AnyProtocol): Engine {
    const { platform, self, counts, maxWaiters } = this.#service;
    const options = JSON.stringify({ transport: "log" });
    return {
      platform,
      setting: { kind: "channel", name: this.#name, algorithm: "log-multicast", options },
      self,
      peers: [],
      maxWaiters,
      counts,
      leader: null,
      isSettled: true,
      takes: (command) => takes(protocol, command),
      command: (command) => this.#give(command),
      hasRoom: () => true,
      bounds: () => ({ payloadBytes: MAX_PAYLOAD_BYTES, batchBytes: BATCH_BYTES }),
      sayLeader: () => {},
      sayPressure: () => {}, // Who reads slowly here keeps nobody else from sending.
    };
  }

  #give(command: Tagged): void {
    if (this.#isOpen) this.#host.carryOut(command as never);
  }

  #say(to: NodeId, body: Tagged): void {
    const { wait } = this.#state.order;
    this.#ask({ type: "say", name: this.#name, wait, number: 0, to, text: JSON.stringify(body) });
  }

  #ask(operation: GroupOperation): void {
    const service = this.#service;
    if (service.closed !== null) return;
    service
      .submit(operation, () => this.#isOpen)
      .catch(() => {
        if (!this.#isOpen || service.closed !== null) return;
        const timer = service.platform.timers.after(ASK_AGAIN_MS, () => {
          this.#again.delete(timer);
          this.#give({ type: "notDone", operation } as Tagged);
        });
        this.#again.add(timer);
      });
  }

  /** Members that enter the group can be spoken to. */
  #meet(event: Told): void {
    if (event.type !== "grouped" || event.name !== this.#name) return;
    for (const { member } of event.members) if (member !== this.#service.self) this.#host.meet(member);
  }

  #receive(event: Told, messages: Parameters<typeof hasShape>[0]): void {
    if (event.type !== "said" || event.name !== this.#name || event.to !== this.#service.self || !this.#isOpen) return;
    const body = parsed(event.text);
    if (hasShape(messages, body)) this.#host.receive(event.from, body as never, UNNAMED);
  }
}

/** It comes from another member, so it may be anything. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** One election, one lock or one channel of a member: its own host, under its own name. */
import { UsageError } from "../../core/errors.ts";
import type { NodeId, Tagged, Vocabulary } from "../../core/protocol.ts";
import type { AnyProtocol, Embedded } from "../../protocols/index.ts";
import { Host, keepsJournal } from "../../runtime/host.ts";
import type { Journal, Slot } from "../../runtime/journal/journal.ts";
import { forgetProtocolSlot, protocolSlot } from "../../runtime/journal/protocol-slot.ts";
import type { Counts } from "../../runtime/metrics.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import { embeddedOf, protocolOf, type Setting, takes } from "./algorithms.ts";
import type { InstanceStatus, MemberEvent } from "./api.ts";
import type { AlgorithmEvent, Engine } from "./engine.ts";
import type { EpochFloors } from "./epoch-floors.ts";
import { LocalChannel } from "./local-channel.ts";
import { LocalElection } from "./local-election.ts";
import { LocalMutex } from "./local-mutex.ts";
import type { MemberTrace } from "./member-trace.ts";
import type { RequestRuns } from "./request-runs.ts";
import { UNNAMED, UNTOLD } from "./unrecorded.ts";
import type { ViewFloors } from "./view-floors.ts";
import { by, type Wired, wired } from "./wired.ts";

/** What the member is to an instance. */
export interface Surroundings {
  readonly platform: Platform;
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
  readonly maxWaiters: number;
  readonly counts: Pick<Counts, "locks" | "leaderships">;
  readonly trace: MemberTrace;
  /** Null where this member keeps none. */
  readonly journal: Journal | null;
  /** What outlives instances that nobody uses any more; null without a journal. */
  readonly outliving: Outliving | null;
  /** A message of the instance of that setting. */
  send(to: NodeId, setting: Setting, body: Tagged): SendResult;
  /** A message of the instance of that setting to all of these. */
  multicast(to: readonly NodeId[], setting: Setting, body: Tagged): void;
  hasRoom(members: readonly NodeId[]): boolean;
  bounds: Engine["bounds"];
  /** To all others: whether readers of the channel keep up here. */
  sayPressure(setting: Setting, isFull: boolean): void;
  /** Looks at the clock: a server without a confirmation for too long is told so before anything else happens. */
  checkService(): void;
  /** What was granted in this epoch is no longer known here: if this member serves, another is to begin. */
  onExhausted(): void;
  /** A command of a wire to a part that all share. */
  give(part: string, command: Tagged): void;
  publish(event: MemberEvent): void;
  onFatal(error: Error): void;
}

export interface Outliving {
  readonly runs: RequestRuns;
  readonly floors: EpochFloors;
  readonly views: ViewFloors;
}

export class Instance {
  readonly local: LocalMutex | LocalElection | LocalChannel;
  /** Whether the leader of the member's epoch serves it. */
  readonly heedsEpochs: boolean;
  /** How it is put away when nobody uses it. */
  readonly forgotten: Embedded["forgotten"];
  readonly #wired: Wired;
  /** What its algorithm tells the detector concerns it alone, until the next sign of life: others have not waited for that member. */
  readonly #suspectedItself = new Set<NodeId>();
  readonly #detector = by({
    suspect: ({ node }) => this.#suspectedItself.add(node),
    hear: ({ node }) => this.#suspectedItself.delete(node),
  });
  readonly #host: Host<Vocabulary>;
  readonly #slot: Slot<never> | null;
  /** In the journal; null where it has no slot of its own there. */
  readonly #slotName: string | null;
  readonly #surroundings: Surroundings;
  #runs = true;
  /** The highest token that this node has been given, or has given. */
  #token = 0;
  /** How much it has been told here, and by others. */
  #told = 0;

  /** @param before the channel that a program has opened while its instance was put away. */
  constructor(
    readonly setting: Setting,
    surroundings: Surroundings,
    before: LocalChannel | null = null,
  ) {
    const { platform, self, peers, maxWaiters, counts, onFatal } = surroundings;
    this.#surroundings = surroundings;
    const { kind } = setting;
    const protocol = protocolOf(setting);
    const { part, wires, forgotten } = embeddedOf(setting);
    this.forgotten = forgotten;
    this.#wired = wired(
      part,
      wires(JSON.parse(setting.options)),
      (command) => this.tell(command),
      (to, command) => (to === "detector" ? this.#detector(command) : surroundings.give(to, command)),
    );
    this.heedsEpochs = this.#wired.listensTo("election");
    this.#slot = this.#slotFor(protocol);
    this.#slotName = this.#slot === null || this.heedsEpochs ? null : slotNameOf(setting);
    this.#host = new Host<Vocabulary>({
      platform,
      protocol,
      self,
      peers,
      send: (to, body) => {
        this.#noteToken(body);
        return surroundings.send(to, setting, body);
      },
      ...(kind === "channel" ? { multicast: (body: Tagged) => this.#multicast(body) } : {}),
      trace: surroundings.trace.of([kind, setting.name]),
      slot: this.#slot,
      onEvent: (event, until) => this.#note(event, until),
      ...(this.heedsEpochs ? { beforeStep: surroundings.checkService } : {}),
      ...(kind === "election" ? { afterStep: () => this.#afterStep() } : {}),
      onFatal: (error) => {
        this.#runs = false;
        onFatal(error);
      },
    });
    const host = this.#host;
    const give = (command: Tagged): void => {
      if (!this.#runs) return;
      if (kind === "channel") host.carryOut(command as never);
      else host.command(command);
    };
    const engine: Engine = {
      platform,
      setting,
      self,
      peers,
      maxWaiters,
      counts,
      get leader() {
        return host.view.leader ?? null;
      },
      get isSettled() {
        return host.isSettled;
      },
      takes: (command) => takes(protocol, command),
      command: (command) => {
        this.#told += 1;
        give(command);
      },
      hasRoom: surroundings.hasRoom,
      bounds: surroundings.bounds,
      sayLeader: (change) => surroundings.publish({ type: "leader-changed", election: setting.name, ...change }),
      sayPressure: (isFull) => surroundings.sayPressure(setting, isFull),
    };
    before?.attach(engine);
    this.local = before ?? new sides[kind](engine);
    this.tell = (command) => {
      if (engine.takes(command.type)) give(command);
    };
  }

  /** Gives a command to algorithms that know it. */
  readonly tell: (command: Tagged) => void;

  get keepsJournal(): boolean {
    return this.#slot !== null;
  }

  /** Whether it leaves anything of its own in the journal. */
  get hasSlot(): boolean {
    return this.#slotName !== null;
  }

  /** Whether neither this process has a use for it nor its algorithm has anything to do. */
  get isIdle(): boolean {
    return !this.local.isUsed && this.isQuiet;
  }

  /** Whether its algorithm has promised nothing that still lasts. */
  get isQuiet(): boolean {
    return this.#host.isQuiet;
  }

  get activity(): number {
    return this.#told + (this.local instanceof LocalChannel ? this.local.deliveries : 0);
  }

  get epoch(): number {
    return this.#host.view.term ?? 0;
  }

  get token(): number {
    return this.#token;
  }

  get status(): InstanceStatus {
    const { kind, name, algorithm } = this.setting;
    const { role } = this.#host.view;
    const leader = this.local instanceof LocalElection ? this.local.leader : null;
    const channel = this.local instanceof LocalChannel ? { channel: this.local.status } : {};
    return { kind, name, algorithm, role, leader, ...this.local.held, ...channel };
  }

  start(): void {
    this.#host.start();
    if (this.local instanceof LocalElection) this.local.resign();
    if (this.local instanceof LocalChannel) this.local.begin();
  }

  /** Whether its members must agree to put it away. Messages that they exchange whether it is used or not do not count there. */
  get isJoint(): boolean {
    return this.forgotten === "together";
  }

  receive(from: NodeId, body: Tagged): void {
    if (!this.isJoint) this.#told += 1;
    this.#host.receive(from, body as never, UNNAMED);
  }

  /** A sign of life, from a node that nobody suspects. */
  heard(node: NodeId): void {
    if (this.#suspectedItself.delete(node)) this.onShared({ type: "restored", node });
  }

  /** What a part that all share has emitted. */
  onShared(event: AlgorithmEvent): void {
    this.#wired.onShared(event);
  }

  /** Whether its messages may come by datagram. */
  get multicasts(): boolean {
    return this.local instanceof LocalChannel && this.local.transport === "udp";
  }

  /** Whether all that it has done has left. */
  get isSettled(): boolean {
    return this.#host.isSettled;
  }

  stop(): void {
    this.#runs = false;
    this.#host.stop();
    this.#slot?.release();
  }

  /** Nobody uses it: what must outlive it is kept elsewhere from now on, and the rest is forgotten. */
  retire(): void {
    this.raiseFloors();
    this.local.retire();
    this.stop();
    this.forgetSlot();
  }

  raiseFloors(): void {
    const { outliving } = this.#surroundings;
    const records = this.#slotName === null ? [] : (this.#slot?.records ?? []);
    if (this.setting.kind === "channel") outliving?.views.raise(records);
    else outliving?.floors.raise(this.setting.algorithm, records);
  }

  /** Once it has stopped. */
  forgetSlot(): void {
    const { journal } = this.#surroundings;
    if (this.#slotName !== null && journal !== null)
      forgetProtocolSlot(journal, this.#slotName, protocolOf(this.setting));
  }

  #slotFor(protocol: AnyProtocol): Slot<never> | null {
    const { self, journal, outliving } = this.#surroundings;
    const { kind, algorithm } = this.setting;
    if (this.heedsEpochs && outliving !== null) return outliving.runs.take() as Slot<never>;
    const why = kind === "channel" ? VIEWS_ARE_KEPT : undefined;
    const slot = slotOf(protocol, journal, slotNameOf(this.setting), why);
    if (slot !== null && kind === "channel") outliving?.views.begin(protocol, slot);
    else if (slot !== null) outliving?.floors.begin(algorithm, self, slot);
    return slot;
  }

  #noteToken({ token }: AlgorithmEvent): void {
    if (typeof token === "number") this.#token = Math.max(this.#token, token);
  }

  /** Only those in the view have a use for it. */
  #multicast(body: Tagged): () => SendResult {
    const { self, multicast } = this.#surroundings;
    const members = this.local instanceof LocalChannel ? this.local.members : [];
    multicast(
      members.filter((member) => member !== self),
      this.setting,
      body,
    );
    return () => UNTOLD;
  }

  #afterStep(): void {
    if (this.local instanceof LocalElection) this.local.lookAgain();
  }

  #note(event: AlgorithmEvent, until: number | null): void {
    this.#noteToken(event);
    this.#wired.onOwn(event);
    this.local.onEvent(event, until);
  }
}

const sides = { election: LocalElection, mutex: LocalMutex, channel: LocalChannel } as const;

export const slotNameOf = ({ kind, algorithm, name }: Setting): string => `${kind}/${algorithm}/${name}`;

/** What a caller chooses of a channel is not its protocol. */
const VIEWS_ARE_KEPT = "the views of a reliable channel are kept in a journal: or do without, with `reliable: false`";

/**
 * Where a protocol that journals does so; null for others.
 * @param why it needs one, in the words of the caller.
 * @throws UsageError where it has to and this member keeps no journal.
 */
export function slotOf(
  protocol: AnyProtocol,
  journal: Journal | null,
  name: string,
  why = `${protocol.name} keeps a journal: or choose an algorithm that keeps none`,
): Slot<never> | null {
  if (!keepsJournal(protocol)) return null;
  if (journal !== null) return protocolSlot<Vocabulary>(journal, name, protocol);
  throw new UsageError("no-journal", `expected join() to be given a dataDir, since ${why}`);
}

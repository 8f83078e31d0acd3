/**
 * The elections, locks and channels that a member takes part in: what runs under each name, for the programs that use it. Which names
 * there are, with which settings, and when one is put away, the protocol `names` says, which is run here beside them.
 */
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import { equal } from "../../core/plain.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import { admission, type Names, names } from "../../protocols/index.ts";
import { watching } from "../../protocols/membership/family/watching.ts";
import { nameWires } from "../../protocols/membership/names/wires.ts";
import { Host } from "../../runtime/host.ts";
import type { Log } from "../../runtime/log.ts";
import { type Envelope, type InstanceEnvelope, readChannelOptions, reasonText, type Setting } from "./algorithms.ts";
import type { Kind } from "./api.ts";
import type { Transport } from "./channel-api.ts";
import { repairs } from "./channel-stacks.ts";
import { CoordinationError } from "./coordination-error.ts";
import { type Arrived, EarlyMessages } from "./early-messages.ts";
import type { AlgorithmEvent } from "./engine.ts";
import { EpochFloors } from "./epoch-floors.ts";
import { Instance, type Outliving, type Surroundings, slotNameOf } from "./instance.ts";
import { requireName } from "./instance-name.ts";
import { InstanceUse } from "./instance-use.ts";
import { KnownSettings } from "./known-settings.ts";
import { LocalChannel } from "./local-channel.ts";
import { envelopeOf, keyOf, messageIn, type Named, namedBy, retirementIn, settingOf, textOf } from "./name-messages.ts";
import { hasOwnLease, shortfallMs } from "./own-lease.ts";
import { RequestRuns } from "./request-runs.ts";
import { ServedLocks } from "./served-locks.ts";
import { differenceOf, onLog, otherRelease } from "./setting-difference.ts";
import { namesOptions, type Timing } from "./timing.ts";
import { UNNAMED, UNRECORDED } from "./unrecorded.ts";
import { ViewFloors } from "./view-floors.ts";
import { by, wired } from "./wired.ts";

export interface InstancesOptions extends Omit<Surroundings, "send" | "multicast" | "sayPressure" | "outliving"> {
  readonly maxInstances: number;
  readonly timing: Timing;
  readonly log: Log;
  /** If the link takes it, and no word of names waits for that. */
  send(to: NodeId, envelope: Envelope): ReturnType<Surroundings["send"]>;
  /** Again and again, until it is on its way. */
  insist(to: NodeId, envelope: Envelope): ReturnType<Surroundings["send"]>;
  /** To all of these, over the transport that the channel asks for. */
  multicast(to: readonly NodeId[], envelope: Envelope, transport: Transport): void;
  /** What a new instance is to know of the world, as shared parts have emitted it: who is suspected, who leads. */
  news(): readonly AlgorithmEvent[];
  /** Another member refused an instance of this one, or this one refused another's. */
  onRefused(setting: Setting, by: NodeId, why: string): void;
  /** A member, this one or another, has too many instances to take this one, too. */
  onFull(named: Named, by: NodeId): void;
  /** Whether this member uses the name on the replicated log, and so not with any of these algorithms. */
  isOnLog(kind: Kind, name: string): boolean;
  /** A message came by datagram, and is of no channel that uses them. */
  onStray(from: NodeId, envelope: InstanceEnvelope): void;
}

export class Instances {
  readonly #options: InstancesOptions;
  readonly #open = new Map<string, Instance>();
  readonly #early: EarlyMessages;
  /** Names that this member ran with other settings than most, while it was bound by a promise: the slot is there still. */
  readonly #left = new Map<string, Instance>();
  #closed: CoordinationError | null = null;
  readonly #known: KnownSettings;
  readonly #outliving: Outliving | null;
  readonly #served: ServedLocks;
  readonly #usage: InstanceUse;
  readonly #names: Host<Names>;
  /** Theirs, and only read here: messages are many, and each is looked at. */
  #state!: Readonly<Names["state"]>;
  /** Whether the step that names take is one that this member asks for, and no timer's. */
  #isAsked = false;
  /** Between this member and the last that ran a name otherwise. */
  #lastDifference = "";
  /** Of suspicions they are told as an algorithm is. */
  readonly #wired = wired(
    "names",
    { ...watching("names"), ...nameWires({ instance: "instance", early: "early", program: "program" }) },
    (command) => this.#give(command as Names["command"]),
    (end, command) => this.#ends[end]?.(command),
  );

  constructor(options: InstancesOptions) {
    this.#options = options;
    const { platform, self, peers, journal, log, onFatal } = options;
    this.#known = new KnownSettings(journal);
    this.#outliving = journal && {
      runs: new RequestRuns(journal),
      floors: new EpochFloors(journal),
      views: new ViewFloors(journal),
    };
    this.#served = new ServedLocks(self, platform);
    this.#usage = new InstanceUse(options.timing, this.#served, (command) => this.#give(command));
    const protocol = names(namesOptions(options.timing));
    this.#names = new Host<Names>({
      platform,
      protocol: { ...protocol, init: (...node) => (this.#state = protocol.init(...node)) },
      self,
      peers,
      send: (to, message) => options.insist(to, envelopeOf(message)),
      trace: UNRECORDED,
      onEvent: (event) => this.#wired.onOwn(event),
      beforeStep: () => {
        if (!this.#isAsked) this.look();
      },
      onFatal,
    });
    this.#early = new EarlyMessages(platform, log, ({ from, envelope: { type: kind, name } }) =>
      this.#give({ type: "inquire", name: keyOf({ kind, name }), of: from }),
    );
  }

  /** Begins, and opens again what an earlier run of this member used, unless others run it otherwise by now. */
  start(): void {
    this.#ask(() => this.#names.start());
    for (const { setting, isEstablished } of this.#known.all) {
      const failure = this.#attempt(setting, { by: null, isEstablished });
      if (this.#open.get(keyOf(setting))?.hasSlot === false) this.#options.journal?.forget(slotNameOf(setting)); // Of an earlier version.
      if (failure === null || this.#saidFull(setting, failure)) continue;
      this.#known.forget(setting);
      this.#options.onRefused(setting, this.#options.self, failure.message);
    }
  }

  get all(): readonly Instance[] {
    return [...this.#open.values()];
  }

  /** The instance as this member wants it. @throws UsageError if it is in use otherwise, or cannot be. */
  use(setting: Setting, how: Beginning = AT_WILL): Instance {
    if (this.#closed !== null) throw this.#closed;
    requireName(setting.name);
    const known = this.#open.get(keyOf(setting));
    if (this.#options.isOnLog(setting.kind, setting.name)) throw new UsageError("other-setting", onLog(setting));
    if (known === undefined) return this.#begin(setting, how);
    const difference = differenceOf(setting, known.setting);
    if (difference !== null) throw new UsageError("other-setting", difference);
    return known;
  }

  /** @param by what it came over. A datagram brings messages of channels that use them, and nothing else. */
  receive(from: NodeId, envelope: Exclude<Envelope, { type: OfOthers }>, by: Transport = "tcp"): void {
    if (!this.#options.peers.includes(from)) return; // A member that came later: it takes no part in names.
    switch (envelope.type) {
      case "hello":
      case "ask":
      case "open":
      case "refuse":
      case "full":
        return this.#hear(from, messageIn(envelope));
      case "pressure": {
        const local = this.#open.get(keyOf({ kind: "channel", name: envelope.name }))?.local;
        if (local instanceof LocalChannel) local.onPressure(from, envelope.isFull);
        return;
      }
      case "election":
      case "mutex":
      case "channel":
        return this.#deliver({ from, envelope, by });
    }
  }

  /** What is known of how others run it; null if it is not open here. */
  standing(named: Named): Readonly<Names["state"]["running"][string]> | null {
    return this.#state.running[keyOf(named)] ?? null;
  }

  /** What is open of that name. */
  find(named: Named): Instance | null {
    return this.#open.get(keyOf(named)) ?? null;
  }

  /** What a part that all share has emitted, along the wires of each. */
  tell(event: AlgorithmEvent): void {
    const { servesIn } = this.#served;
    this.#served.onShared(event);
    this.#wired.onShared(event);
    for (const instance of this.#open.values()) {
      instance.onShared(event);
      if (this.#served.servesIn !== servesIn) this.#holdBack(instance);
    }
  }

  /** This member is about to end. */
  depart(): void {
    for (const instance of this.#open.values()) instance.tell({ type: "depart" });
  }

  /** The name may have had the usual options, and leases that outlast those of its own. */
  #holdBack(instance: Instance): void {
    const missingMs = shortfallMs(instance.setting, this.#options.timing);
    const resume = missingMs > 0 ? this.#served.resume(missingMs) : null;
    if (resume !== null) instance.tell(resume);
  }

  heard(node: NodeId): void {
    for (const instance of this.#open.values()) instance.heard(node);
  }

  /** Whether all that has been done here has left. */
  get isSettled(): boolean {
    return this.all.every(({ isSettled }) => isSettled);
  }

  /** Waiters are told so, what is held is given back, and nothing more begins. */
  close(reason: CoordinationError): void {
    this.#closed = reason;
    for (const instance of this.#open.values()) {
      if (this.#staysKnown(instance)) this.#remember(instance);
      instance.local.close(reason);
    }
    this.#give({ type: "close" });
  }

  stop(): void {
    this.#names.stop();
    for (const instance of this.#open.values()) instance.stop();
    this.#open.clear();
    this.#early.clear();
  }

  /** What names do because this member says so. */
  #ask(step: () => void): void {
    const before = this.#isAsked;
    this.#isAsked = true;
    try {
      step();
    } finally {
      this.#isAsked = before;
    }
  }

  #give(command: Names["command"]): void {
    this.#ask(() => this.#names.carryOut(command));
  }

  #hear(from: NodeId, message: Names["message"]): void {
    const instance = "name" in message ? this.#open.get(message.name) : undefined;
    if (instance !== undefined) this.#usage.look(instance);
    this.#ask(() => this.#names.receive(from, message, UNNAMED));
  }

  /** Tells names what is used here, before they look what is idle. What is in use is remembered over a restart. */
  look(): void {
    for (const instance of this.#open.values()) {
      const isUsed = this.#usage.look(instance);
      // Later than it is so: the first messages need the disk.
      if (this.#staysKnown(instance) || (isUsed && !instance.isJoint)) this.#remember(instance);
    }
  }

  #remember({ keepsJournal, setting }: Instance): void {
    if (keepsJournal) this.#known.note(setting, this.standing(setting)?.isEstablished === true);
  }

  /** A member is at the other ends of the wires of names: with what runs under them, messages that wait, and its programs. */
  readonly #ends: Readonly<Record<string, (command: Tagged) => void>> = {
    instance: by({
      begin: ({ name }) => this.#started(this.#named(name)),
      renew: ({ name }) => this.#renewed(this.#named(name)),
      end: ({ name }) => this.#retire(this.#named(name)),
      giveUp: ({ name, by: other, why }) => this.#gaveWay(this.#named(name), other, why),
    }),
    early: by({
      joined: ({ name }) => {
        for (const arrived of this.#early.take(name)) this.#deliver(arrived);
      },
      parted: ({ name, node }) => this.#early.dropOf(node, name),
    }),
    program: by({
      consider: ({ name, setting, from }) => this.#wanted(from, name, settingOf(name, setting)),
      compare: ({ name, setting, from }) => {
        const other = settingOf(name, setting);
        this.#lastDifference = this.#difference(other);
        this.#refuse(from, other, this.#lastDifference);
      },
      refused: ({ name, by: other, why }) => this.#options.onRefused(this.#named(name).setting, other, why),
      full: ({ name, by: other }) => this.#options.onFull(namedBy(name), other),
    }),
  };

  /** One that names run. */
  #named(name: string): Instance {
    return this.#open.get(name) as Instance;
  }

  /** All are agreed to put it away, and it has been used since this member was asked. Others go on as they are. */
  #renewed(instance: Instance): void {
    const { local, setting } = instance;
    if (!(local instanceof LocalChannel)) return;
    this.#retire(instance);
    this.#started(this.#make(setting, local));
  }

  #retire(instance: Instance): void {
    const { setting } = instance;
    this.#open.delete(keyOf(setting));
    this.#known.forget(setting);
    if (instance.heedsEpochs) this.#served.putAway(instance.token);
    instance.retire();
  }

  /** Where there is no room, what is not in use at this moment makes room, however lately it was. */
  #makeRoom(): boolean {
    const { maxInstances } = this.#options;
    if (this.#open.size < maxInstances) return true;
    for (const instance of this.#open.values())
      if (!instance.isJoint && !this.#usage.look(instance))
        this.#give({ type: "forget", name: keyOf(instance.setting) });
    return this.#open.size < maxInstances;
  }

  #begin(setting: Setting, { by, isEstablished }: Beginning): Instance {
    if (!this.#makeRoom()) {
      const { maxInstances } = this.#options;
      const text = `this member has ${maxInstances} elections, locks and channels in use, and takes no more: raise limits.maxInstances or use fewer names at a time`;
      this.#options.log.once("too-many-instances", text, { event: "too-many-instances", maxInstances });
      throw new EnvironmentError("too-many-instances", text);
    }
    const instance = this.#make(setting);
    const name = keyOf(setting);
    this.#give({ type: "run", name, setting: textOf(setting), forgotten: instance.forgotten, isEstablished, by });
    return instance;
  }

  /** @throws UsageError if it cannot be. */
  #make(setting: Setting, before: LocalChannel | null = null): Instance {
    const { peers, send, insist, multicast } = this.#options;
    const transport = setting.kind === "channel" ? readChannelOptions(setting.options).transport : "tcp";
    const surroundings: Surroundings = {
      ...this.#options,
      outliving: this.#outliving,
      send: (to, { kind, name, algorithm }, body) => {
        const envelope = { type: kind, name, content: { type: algorithm, body } };
        return kind === "channel" ? insist(to, envelope) : send(to, envelope);
      },
      multicast: (to, { kind, name, algorithm }, body) => {
        const envelope = { type: kind, name, content: { type: algorithm, body } };
        if (repairs(algorithm)) return multicast(to, envelope, transport);
        for (const member of to) insist(member, envelope);
      },
      sayPressure({ name }, isFull) {
        for (const peer of peers) send(peer, { type: "pressure", name, isFull });
      },
    };
    this.#forgetLeft(setting);
    const instance = new Instance(setting, surroundings, before);
    this.#open.set(keyOf(setting), instance);
    if (this.#staysKnown(instance)) this.#known.note(setting, false);
    return instance;
  }

  /** It has been announced. */
  #started(instance: Instance): void {
    const { news, timing } = this.#options;
    instance.start();
    const told = news();
    for (const event of told) instance.onShared(event);
    this.#takeBack(instance, told, news());
    const resume = this.#served.resume(shortfallMs(instance.setting, timing));
    if (resume !== null) instance.tell(resume);
  }

  /** Each step looks at the clock first: this member's service may have ended since what was told was read. */
  #takeBack(instance: Instance, told: readonly AlgorithmEvent[], now: readonly AlgorithmEvent[]): void {
    for (const event of told) {
      const { epoch } = event;
      if (epoch !== undefined && !now.some((other) => equal(other, event)))
        instance.onShared({ type: "deposed", epoch });
    }
  }

  /** Its promises bind whatever runs the same algorithm under that name; another has no use for them. */
  #forgetLeft(setting: Setting): void {
    const left = this.#left.get(keyOf(setting));
    this.#left.delete(keyOf(setting));
    if (left !== undefined && slotNameOf(left.setting) !== slotNameOf(setting)) left.forgetSlot();
  }

  /** Whether it is to be known after a restart from the first moment on. */
  #staysKnown({ hasSlot, setting }: Instance): boolean {
    return hasSlot || (this.#options.journal !== null && hasOwnLease(setting, this.#options.timing));
  }

  #wanted(from: NodeId, key: string, other: Otherwise): void {
    const { setting, form } = other;
    const failure = otherRelease(setting, form) ?? this.#attempt(setting, { by: from, isEstablished: false });
    if (failure === null) return;
    if (!this.#saidFull(setting, failure)) return this.#refuse(from, other, failure.message);
    this.#early.take(key); // Its messages are for others.
    this.#give({ type: "decline", name: key, to: from });
  }

  #refuse(to: NodeId, { setting, form }: Otherwise, why: string): void {
    this.#options.onRefused(setting, this.#options.self, why);
    const [name, text] = [keyOf(setting), textOf(setting, form)];
    this.#give({ type: "refuse", name, setting: text, why: reasonText(why), to });
  }

  /** Between how another runs a name and how it is run here. */
  #difference({ setting, form }: Otherwise): string {
    const own = this.#open.get(keyOf(setting)) as Instance;
    return otherRelease(setting, form)?.message ?? (differenceOf(setting, own.setting) as string);
  }

  /** Why it cannot be run, if so. */
  #attempt(setting: Setting, how: Beginning): UsageError | EnvironmentError | null {
    try {
      this.use(setting, how);
      return null;
    } catch (error) {
      if (error instanceof UsageError || error instanceof EnvironmentError) return error;
      throw error;
    }
  }

  /** Whether it is only that there is no room here: then the others go on without this member. */
  #saidFull(named: Named, { code }: UsageError | EnvironmentError): boolean {
    const isFull = code === "too-many-instances" || code === "too-many-slots";
    if (isFull) this.#options.onFull(named, this.#options.self);
    return isFull;
  }

  #gaveWay(instance: Instance, by: NodeId, refusal: string | null): void {
    const { kind, name } = instance.setting;
    const text =
      refusal === null
        ? `most members run the ${kind} "${name}" otherwise: ${this.#lastDifference}`
        : `node ${by} refuses the ${kind} "${name}": ${refusal}`;
    // Its refusal is on the way, and would find nothing any more.
    if (refusal === null) this.#options.onRefused(instance.setting, by, this.#lastDifference);
    this.#open.delete(keyOf(instance.setting));
    this.#known.forget(instance.setting);
    const { isQuiet, hasSlot } = instance;
    instance.local.close(new CoordinationError("instance-refused", "lost", text));
    instance.local.retire(); // Using its handle again opens the name anew.
    instance.raiseFloors();
    instance.stop();
    if (isQuiet) instance.forgetSlot();
    else if (hasSlot) this.#left.set(keyOf(instance.setting), instance);
    // Opened anew, it would count its grants of this epoch from one.
    if (instance.heedsEpochs) this.#options.onExhausted();
  }

  #deliver(arrived: Arrived): void {
    const { from, envelope, by } = arrived;
    const { type: kind, name, content } = envelope;
    const key = keyOf({ kind, name });
    const retirement = retirementIn(envelope);
    if (retirement !== null) return by === "tcp" ? this.#hear(from, retirement) : undefined;
    const instance = this.#open.get(key);
    const how = admission(this.#state, key, from);
    if (instance === undefined) {
      if (how === "hold") this.#early.hold(key, arrived);
      return;
    }
    // If it is of another algorithm or has other options, its sender has been refused.
    if (instance.setting.algorithm !== content.type || how === "drop" || !("body" in content)) return;
    if (by === "udp" && !instance.multicasts) return this.#options.onStray(from, envelope);
    if (how === "hold") return this.#early.hold(key, arrived);
    instance.receive(from, content.body);
  }
}

/** What is not for elections, locks and channels by name. */
type OfOthers = "detector" | "leadership" | "service";
type Otherwise = ReturnType<typeof settingOf>;

/** Who has announced it, if it is not this member's program that wants it; whether an earlier run knew that a majority runs it so. */
interface Beginning {
  readonly by: NodeId | null;
  readonly isEstablished: boolean;
}
const AT_WILL: Beginning = { by: null, isEstablished: false };

/**
 * The elections, locks and channels that a member takes part in. One that any member uses exists at the others, too: it is announced
 * before its first message, again to members that have just begun, and to those that ask.
 */
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { equal } from "../../core/plain.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import { watching } from "../../protocols/membership/family/watching.ts";
import type { Log } from "../../runtime/log.ts";
import type { Timer } from "../../runtime/platform/platform.ts";
import {
  announcement,
  type Envelope,
  type InstanceEnvelope,
  messageForm,
  RETIREMENT,
  readChannelOptions,
  reasonText,
  type Setting,
} from "./algorithms.ts";
import type { Kind } from "./api.ts";
import type { Transport } from "./channel-api.ts";
import { repairs, stackNamed } from "./channel-stacks.ts";
import { CoordinationError } from "./coordination-error.ts";
import { type Arrived, EarlyMessages } from "./early-messages.ts";
import type { AlgorithmEvent } from "./engine.ts";
import { EpochFloors } from "./epoch-floors.ts";
import { Instance, type Outliving, type Surroundings, slotNameOf } from "./instance.ts";
import { requireName } from "./instance-name.ts";
import { JointRetirement, type RetirementMessage } from "./joint-retirement.ts";
import { KnownSettings } from "./known-settings.ts";
import { LocalChannel } from "./local-channel.ts";
import { hasOwnLease, shortfallMs } from "./own-lease.ts";
import { RequestRuns } from "./request-runs.ts";
import { ServedLocks } from "./served-locks.ts";
import type { Timing } from "./timing.ts";
import { ViewFloors } from "./view-floors.ts";
import { wired } from "./wired.ts";

export interface InstancesOptions extends Omit<Surroundings, "send" | "multicast" | "sayPressure" | "outliving"> {
  readonly maxInstances: number;
  readonly timing: Timing;
  readonly log: Log;
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
  onFull(kind: Kind, name: string, by: NodeId): void;
  /** Whether this member uses the name on the replicated log, and so not with any of these algorithms. */
  isOnLog(kind: Kind, name: string): boolean;
  /** A message came by datagram, and is of no channel that uses them. */
  onStray(from: NodeId, envelope: InstanceEnvelope): void;
}

/** Whatever nobody has used for so long is put away. */
const IDLE_MS = 1_000;
const SWEEP_MS = 250;
/** More names are not remembered as those for which there was no room. */
const MAX_DECLINED = 10_000;
export class Instances {
  readonly #open = new Map<string, Instance>();
  readonly #early: EarlyMessages;
  /** For which there was no room here when they were announced. */
  readonly #declined = new Set<string>();
  /** Names that this member ran with other settings than most, while it was bound by a promise: the slot is there still. */
  readonly #left = new Map<string, Instance>();
  #closed: CoordinationError | null = null;
  readonly #known: KnownSettings;
  readonly #outliving: Outliving | null;
  readonly #served: ServedLocks;
  readonly #together: JointRetirement;
  readonly #retirement = wired("retirement", watching("retirement"), (command) => this.#together.note(command));
  /** Since when each has been as it is: how much it had been told by then. */
  readonly #idle = new WeakMap<Instance, { since: number; activity: number }>();
  #sweeping: Timer | null = null;

  constructor(private readonly options: InstancesOptions) {
    const { platform, self, peers, journal, log, send } = options;
    this.#known = new KnownSettings(journal);
    this.#outliving = journal && {
      runs: new RequestRuns(journal),
      floors: new EpochFloors(journal),
      views: new ViewFloors(journal),
    };
    this.#served = new ServedLocks(self, platform);
    this.#together = new JointRetirement({
      platform,
      self,
      peers,
      send: (to, key, message) => void options.insist(to, envelopeOf(key, RETIREMENT, message)),
      isIdle: (key) => this.#hasBeenIdle(key),
      retire: (key) => this.#retireTogether(key),
    });
    this.#early = new EarlyMessages(platform, log, ({ from, envelope: { type: kind, name } }) => {
      send(from, { type: "ask", kind, name });
    });
  }

  /** Opens again what an earlier run of this member used, unless others run it otherwise by now. */
  restore(): void {
    for (const { setting, isEstablished } of this.#known.all) {
      const failure = this.#attempt(setting);
      const instance = this.#open.get(keyOf(setting));
      if (isEstablished) instance?.agreement.establish();
      if (instance?.hasSlot === false) this.options.journal?.forget(slotNameOf(setting)); // Of an earlier version.
      if (failure === null || this.#saidFull(setting, failure)) continue;
      this.#known.forget(setting);
      this.options.onRefused(setting, this.options.self, failure.message);
    }
  }

  get all(): readonly Instance[] {
    return [...this.#open.values()];
  }

  /** The instance as this member wants it. @throws UsageError if it is in use otherwise, or cannot be. */
  use(setting: Setting): Instance {
    if (this.#closed !== null) throw this.#closed;
    requireName(setting.name);
    const known = this.#open.get(keyOf(setting));
    if (this.options.isOnLog(setting.kind, setting.name)) throw new UsageError("other-setting", onLog(setting));
    if (known === undefined) return this.#begin(setting);
    const difference = differenceOf(setting, known.setting);
    if (difference !== null) throw new UsageError("other-setting", difference);
    return known;
  }

  /** @param by what it came over. A datagram brings messages of channels that use them, and nothing else. */
  receive(from: NodeId, envelope: Exclude<Envelope, { type: OfOthers }>, by: Transport = "tcp"): void {
    switch (envelope.type) {
      case "hello":
        for (const { setting } of this.#open.values()) this.#announce(setting, from);
        return;
      case "ask": {
        const asked = this.#open.get(keyOf(envelope));
        if (asked !== undefined) this.#announce(asked.setting, from);
        return;
      }
      case "open":
        return this.#announced(from, envelope);
      case "refuse":
        return this.#refused(from, envelope);
      case "full":
        return this.options.onFull(envelope.kind, envelope.name, from);
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

  /** What is open of that name. */
  find(named: Named): Instance | null {
    return this.#open.get(keyOf(named)) ?? null;
  }

  /** What a part that all share has emitted, along the wires of each. */
  tell(event: AlgorithmEvent): void {
    const { servesIn } = this.#served;
    this.#served.onShared(event);
    this.#retirement.onShared(event);
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
    const missingMs = shortfallMs(instance.setting, this.options.timing);
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
  }

  stop(): void {
    this.options.platform.timers.cancel(this.#sweeping);
    for (const instance of this.#open.values()) instance.stop();
    this.#open.clear();
    this.#early.clear();
  }

  /** Puts away what nobody has used for a while. What is in use is remembered over a restart. */
  sweep(now: number): void {
    if (this.#closed !== null) return;
    this.#together.sweep(now);
    for (const instance of this.#open.values()) {
      const idleMs = this.#idleMs(instance, now);
      if (this.#staysKnown(instance)) this.#remember(instance); // Later than it is so: the first messages need the disk.
      if (instance.isJoint) {
        if (this.#mayForgetTogether(instance) && idleMs >= IDLE_MS)
          this.#together.consider(keyOf(instance.setting), now);
      } else if (!this.#mayForget(instance)) this.#remember(instance);
      else if (idleMs >= IDLE_MS) this.#retire(instance);
    }
  }

  #remember({ keepsJournal, setting, agreement }: Instance): void {
    if (keepsJournal) this.#known.note(setting, agreement.isEstablished);
  }

  #idleMs(instance: Instance, now: number): number {
    const { activity } = instance;
    const known = this.#idle.get(instance);
    if (known?.activity === activity) return now - known.since;
    this.#idle.set(instance, { since: now, activity });
    return 0;
  }

  #mayForget(instance: Instance): boolean {
    if (instance.forgotten !== "alone" || !instance.isIdle) return false;
    if (hasOwnLease(instance.setting, this.options.timing)) return false;
    // It has heard of a server that this member does not know of yet: opened anew, it could turn to the one before.
    return !instance.heedsEpochs || instance.epoch <= this.#served.epoch;
  }

  #mayForgetTogether({ isJoint, local, setting }: Instance): boolean {
    return isJoint && !local.isUsed && !hasOwnLease(setting, this.options.timing);
  }

  #hasBeenIdle(key: string): boolean {
    const instance = this.#open.get(key);
    if (instance === undefined) return true;
    return this.#mayForgetTogether(instance) && this.#idleMs(instance, this.options.platform.clock.now()) >= IDLE_MS;
  }

  /** All are agreed. If it has been used since this member was asked, it begins anew, as it does at the others. */
  #retireTogether(key: string): void {
    const instance = this.#open.get(key);
    if (instance === undefined || !instance.isJoint) return;
    const { local, setting } = instance;
    if (!local.isUsed) return this.#retire(instance);
    if (local instanceof LocalChannel) {
      this.#retire(instance);
      this.#begin(setting, local);
    } else for (const peer of this.options.peers) this.#announce(setting, peer);
  }

  #retire(instance: Instance): void {
    const { setting } = instance;
    this.#open.delete(keyOf(setting));
    this.#known.forget(setting);
    if (instance.heedsEpochs) this.#served.putAway(instance.token);
    instance.retire();
    this.#declined.clear(); // There is room again.
  }

  /** Where there is no room, what is not in use at this moment makes room, however lately it was. */
  #makeRoom(): boolean {
    const { maxInstances } = this.options;
    if (this.#open.size < maxInstances) return true;
    for (const instance of this.#open.values()) if (this.#mayForget(instance)) this.#retire(instance);
    return this.#open.size < maxInstances;
  }

  #begin(setting: Setting, before: LocalChannel | null = null): Instance {
    const { platform, maxInstances, peers, news, send, insist, multicast } = this.options;
    if (!this.#makeRoom()) {
      const text = `this member has ${maxInstances} elections, locks and channels in use, and takes no more: raise limits.maxInstances or use fewer names at a time`;
      this.options.log.once("too-many-instances", text, { event: "too-many-instances", maxInstances });
      throw new EnvironmentError("too-many-instances", text);
    }
    const transport = setting.kind === "channel" ? readChannelOptions(setting.options).transport : "tcp";
    this.#together.opened(keyOf(setting));
    const surroundings: Surroundings = {
      ...this.options,
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
    this.#declined.delete(keyOf(setting));
    if (this.#staysKnown(instance)) this.#known.note(setting, false);
    this.#sweeping ??= platform.timers.every(SWEEP_MS, () => this.sweep(platform.clock.now())).unref();
    for (const peer of peers) this.#announce(setting, peer); // Before its first message.
    instance.start();
    const told = news();
    for (const event of told) instance.onShared(event);
    this.#takeBack(instance, told, news());
    const resume = this.#served.resume(shortfallMs(setting, this.options.timing));
    if (resume !== null) instance.tell(resume);
    return instance;
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
    return hasSlot || (this.options.journal !== null && hasOwnLease(setting, this.options.timing));
  }

  #announce(setting: Setting, to: NodeId): void {
    this.options.send(to, announcement(setting));
  }

  #announced(from: NodeId, { kind, name, algorithm, options, form }: Setting & { form: number }): void {
    const setting: Setting = { kind, name, algorithm, options };
    if (this.#closed !== null) return; // The others go on without this member.
    const failure = otherRelease(setting, form) ?? this.#attempt(setting);
    const instance = this.#open.get(keyOf(setting));
    if (failure === null) {
      (instance as Instance).agreement.join(from);
      for (const early of this.#early.take(keyOf(setting))) this.#deliver(early);
      return;
    }
    if (this.#saidFull(setting, failure)) {
      this.#decline(keyOf(setting));
      return void this.options.send(from, { type: "full", kind, name });
    }
    const why = failure.message;
    instance?.agreement.part(from);
    this.options.onRefused(setting, this.options.self, why);
    this.options.send(from, { type: "refuse", ...setting, why: reasonText(why) });
    if (instance?.agreement.isOutvoted !== true) return;
    this.options.onRefused(instance.setting, from, why); // Its refusal is on the way, and would find nothing any more.
    this.#giveWay(instance, `most members run the ${kind} "${name}" otherwise: ${why}`);
  }

  /** Its messages are for others. */
  #decline(key: string): void {
    this.#early.take(key);
    if (this.#declined.size < MAX_DECLINED) this.#declined.add(key);
  }

  /** Why it cannot be run, if so. */
  #attempt(setting: Setting): UsageError | EnvironmentError | null {
    try {
      this.use(setting);
      return null;
    } catch (error) {
      if (error instanceof UsageError || error instanceof EnvironmentError) return error;
      throw error;
    }
  }

  /** Whether it is only that there is no room here: then the others go on without this member. */
  #saidFull({ kind, name }: Setting, { code }: UsageError | EnvironmentError): boolean {
    const isFull = code === "too-many-instances" || code === "too-many-slots";
    if (isFull) this.options.onFull(kind, name, this.options.self);
    return isFull;
  }

  #refused(from: NodeId, { kind, name, algorithm, options, why }: Setting & { why: string }): void {
    const instance = this.#open.get(keyOf({ kind, name }));
    // It has been closed already: another refused it, too.
    if (instance === undefined || !equal(instance.setting, { kind, name, algorithm, options })) return;
    this.options.onRefused(instance.setting, from, why);
    instance.agreement.part(from);
    if (instance.agreement.yields) this.#giveWay(instance, `node ${from} refuses the ${kind} "${name}": ${why}`);
  }

  /** All are asked for what is there: from one answer alone this member would not know that a majority runs it. */
  #giveWay(instance: Instance, text: string): void {
    const { kind, name } = instance.setting;
    this.#open.delete(keyOf({ kind, name }));
    this.#declined.clear(); // There is room again.
    this.#known.forget(instance.setting);
    const { isQuiet, hasSlot } = instance;
    instance.local.close(new CoordinationError("instance-refused", "lost", text));
    instance.local.retire(); // Using its handle again opens the name anew.
    instance.raiseFloors();
    instance.stop();
    if (isQuiet) instance.forgetSlot();
    else if (hasSlot) this.#left.set(keyOf(instance.setting), instance);
    // Opened anew, it would count its grants of this epoch from one.
    if (instance.heedsEpochs) this.options.onExhausted();
    for (const peer of this.options.peers) this.options.send(peer, { type: "ask", kind, name });
  }

  #deliver(arrived: Arrived): void {
    const { from, envelope, by } = arrived;
    const { type: kind, name, content } = envelope;
    const key = keyOf({ kind, name });
    if (content.type === RETIREMENT && "body" in content) {
      if (by === "tcp" && this.#closed === null) this.#together.receive(from, key, content.body as RetirementMessage);
      return;
    }
    const instance = this.#open.get(key);
    if (instance === undefined) {
      const isLost = this.#closed !== null || this.#declined.has(key) || this.#together.isOver(key);
      if (!isLost) this.#early.hold(key, arrived);
      return;
    }
    // If it is of another algorithm or has other options, its sender has been refused.
    const { setting, agreement } = instance;
    if (setting.algorithm !== content.type || agreement.isStranger(from) || !("body" in content)) return;
    if (by === "udp" && !instance.multicasts) return this.options.onStray(from, envelope);
    // It may have other options: this one has been opened since that member announced any.
    if (!agreement.isFellow(from)) return this.#early.hold(key, arrived);
    instance.receive(from, content.body);
  }
}

/** What is not for elections, locks and channels by name. */
type OfOthers = "detector" | "leadership" | "service";
type Named = Pick<Setting, "kind" | "name">;

const keyOf = ({ kind, name }: Named): string => `${kind}/${name}`;

function envelopeOf(key: string, type: string, body: Tagged): InstanceEnvelope {
  const end = key.indexOf("/");
  return { type: key.slice(0, end) as Kind, name: key.slice(end + 1), content: { type, body } };
}

/** Its messages look otherwise there: the two must not run it together. What is not known here at all, others refuse by name. */
function otherRelease(setting: Setting, form: number): UsageError | null {
  const own = messageForm(setting);
  if (own === 0 || own === form) return null;
  const text = `expected the messages of ${setting.algorithm} to be those of this member's release, got another release's: run one release at all members that use the ${setting.kind} "${setting.name}"`;
  return new UsageError("other-release", text);
}

const onLog = ({ kind, name, algorithm }: Setting): string =>
  unexpected(`the algorithm of the ${kind} "${name}"`, "raft, as it is in use already", algorithm);

function differenceOf(wanted: Setting, known: Setting): string | null {
  const what = `the ${wanted.kind} "${wanted.name}"`;
  if (wanted.kind === "channel" && !equal(wanted, known))
    return `expected the options of ${what} to be ${chosen(known)}, as they are in use already, got ${chosen(wanted)}`;
  if (wanted.algorithm !== known.algorithm)
    return unexpected(`the algorithm of ${what}`, `${known.algorithm}, as it is in use already`, wanted.algorithm);
  if (wanted.options !== known.options)
    return `expected the options of ${what} to be ${known.options}, as they are in use already, got ${wanted.options}`;
  return null;
}

/** A channel as its callers ask for it, in their words. */
function chosen({ algorithm, options }: Setting): string {
  const { order, carrier } = stackNamed(algorithm);
  return JSON.stringify({ order, reliable: carrier === "views", transport: readChannelOptions(options).transport });
}

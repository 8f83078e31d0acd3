/**
 * The elections, locks and channels that a member takes part in. One that any member uses exists at all of them: it is announced
 * before its first message, again to whoever has just begun, and to whoever asks.
 */
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { equal } from "../../core/plain.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import type { Slot } from "../../runtime/journal/journal.ts";
import type { Log } from "../../runtime/log.ts";
import {
  announcement,
  type Envelope,
  messageForm,
  type Parcel,
  reasonText,
  requireName,
  type Setting,
  settingShape,
  transportOf,
} from "./algorithms.ts";
import type { Kind } from "./api.ts";
import type { Transport } from "./channel-api.ts";
import { repairs, stackNamed } from "./channel-stacks.ts";
import { CoordinationError } from "./coordination-error.ts";
import { Instance, type Surroundings } from "./instance.ts";
import { LocalChannel } from "./local-channel.ts";

export interface InstancesOptions extends Omit<Surroundings, "send" | "multicast" | "sayPressure"> {
  readonly maxInstances: number;
  readonly log: Log;
  send(to: NodeId, envelope: Envelope): ReturnType<Surroundings["send"]>;
  /** Again and again, until it is on its way. */
  insist(to: NodeId, envelope: Envelope): ReturnType<Surroundings["send"]>;
  /** To all of these, over the transport that the channel asks for. */
  multicast(to: readonly NodeId[], envelope: Envelope, transport: Transport): void;
  /** What a new instance is to know of the world: who is suspected, who leads. */
  news(): readonly Tagged[];
  /** Another member refused an instance of this one, or this one refused another's. */
  onRefused(setting: Setting, by: NodeId, why: string): void;
  /** A member, this one or another, has too many instances to take this one, too. */
  onFull(kind: Kind, name: string, by: NodeId): void;
  /** A message came by datagram, and is of no channel that uses them. */
  onStray(from: NodeId, parcel: Parcel): void;
}

/** Messages of instances that have not been announced yet, and their bytes; more are dropped. */
const MAX_EARLY = 10_000;
const MAX_EARLY_BYTES = 4 * 1024 * 1024;
/** Whoever sent one is asked for the announcement, and has so long to answer. */
const EARLY_MS = 10_000;

export class Instances {
  readonly #open = new Map<string, Instance>();
  readonly #early = new Map<string, Early[]>();
  #earlyCount = 0;
  #earlyBytes = 0;
  /** For which there was no room here when they were announced. */
  readonly #declined = new Set<string>();
  #closed: CoordinationError | null = null;

  /**
   * Which instances have records in the journal, so that they are opened again after a restart. A setting that stands there
   * twice in a row has been established.
   */
  readonly #journalled: Slot<Setting> | null;
  readonly #known = new Set<string>();

  constructor(private readonly options: InstancesOptions) {
    this.#journalled = options.journal?.slot("instances", settingShape) ?? null;
  }

  /** Opens again what an earlier run of this member had, unless others run it otherwise by now. */
  restore(): void {
    for (const [key, { setting, isEstablished }] of this.#journalledLast()) {
      if (setting.algorithm === NONE) continue;
      this.#known.add(key);
      const failure = this.#attempt(setting);
      if (isEstablished) this.#open.get(key)?.agreement.establish();
      if (failure === null || this.#saidFull(setting, failure)) continue;
      this.#forget(setting);
      this.options.onRefused(setting, this.options.self, failure.message);
    }
  }

  #journalledLast(): ReadonlyMap<string, { setting: Setting; isEstablished: boolean }> {
    const last = new Map<string, { setting: Setting; isEstablished: boolean }>();
    for (const setting of this.#journalled?.records ?? []) {
      const before = last.get(keyOf(setting))?.setting;
      last.set(keyOf(setting), { setting, isEstablished: before !== undefined && equal(setting, before) });
    }
    return last;
  }

  get all(): readonly Instance[] {
    return [...this.#open.values()];
  }

  /** The instance as this member wants it. @throws UsageError if it is in use otherwise, or cannot be. */
  use(setting: Setting): Instance {
    if (this.#closed !== null) throw this.#closed;
    requireName(setting.name);
    const known = this.#open.get(keyOf(setting));
    if (known === undefined) return this.#begin(setting);
    const difference = differenceOf(setting, known.setting);
    if (difference !== null) throw new UsageError("other-setting", difference);
    return known;
  }

  /** @param by what it came over. A datagram brings messages of channels that use them, and nothing else. */
  receive(from: NodeId, envelope: Exclude<Envelope, { type: "detector" | "leadership" }>, by: Transport = "tcp"): void {
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
        return this.#deliver({ from, parcel: envelope, by });
    }
  }

  /** A command for all whose algorithm knows it. */
  tell(command: Tagged): void {
    for (const instance of this.#open.values()) instance.tell(command);
  }

  heard(node: NodeId): void {
    for (const instance of this.#open.values()) instance.heard(node);
  }

  /** Whether all that has been done here has left. */
  get isSettled(): boolean {
    return this.all.every(({ isSettled }) => isSettled);
  }

  /** Whoever waits is told so, what is held is given back, and nothing more begins. */
  retire(reason: CoordinationError): void {
    this.#closed = reason;
    for (const { local } of this.#open.values()) local.close(reason);
  }

  stop(): void {
    for (const instance of this.#open.values()) instance.stop();
    this.#open.clear();
    this.#early.clear();
  }

  #begin(setting: Setting): Instance {
    const { maxInstances, peers, news, send, insist, multicast } = this.options;
    if (this.#open.size >= maxInstances) {
      const text = `this member has ${maxInstances} elections, locks and channels, and takes no more: raise limits.maxInstances or use fewer names`;
      this.options.log.once("too-many-instances", text);
      throw new EnvironmentError("too-many-instances", text);
    }
    const transport = setting.kind === "channel" ? transportOf(setting.options) : "tcp";
    const instance = new Instance(setting, {
      ...this.options,
      send: (to, { kind, name, algorithm }, body) => {
        const parcel = { type: kind, name, content: { type: algorithm, body } };
        return kind === "channel" ? insist(to, parcel) : send(to, parcel);
      },
      multicast: (to, { kind, name, algorithm }, body) => {
        const parcel = { type: kind, name, content: { type: algorithm, body } };
        if (repairs(algorithm)) return multicast(to, parcel, transport);
        for (const member of to) insist(member, parcel);
      },
      sayPressure({ name }, isFull) {
        for (const peer of peers) send(peer, { type: "pressure", name, isFull });
      },
    });
    this.#open.set(keyOf(setting), instance);
    this.#declined.delete(keyOf(setting));
    this.#note(setting, instance);
    for (const peer of peers) this.#announce(setting, peer); // Before its first message.
    instance.start();
    for (const command of news()) instance.tell(command);
    for (const early of this.#takeEarly(keyOf(setting))) this.#deliver(early);
    return instance;
  }

  #note(setting: Setting, { keepsJournal }: Instance): void {
    if (!keepsJournal || this.#known.has(keyOf(setting))) return;
    this.#known.add(keyOf(setting));
    this.#journalled?.append(setting);
  }

  #announce(setting: Setting, to: NodeId): void {
    this.options.send(to, announcement(setting));
  }

  #announced(from: NodeId, { kind, name, algorithm, options, form }: Setting & { form: number }): void {
    const setting: Setting = { kind, name, algorithm, options };
    if (this.#closed !== null) return; // The others go on without this member.
    const failure = otherRelease(setting, form) ?? this.#attempt(setting);
    const instance = this.#open.get(keyOf(setting));
    if (failure === null) return this.#join(instance as Instance, from);
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

  #join({ agreement, setting, keepsJournal }: Instance, from: NodeId): void {
    const wasEstablished = agreement.isEstablished;
    agreement.join(from);
    if (agreement.isEstablished && !wasEstablished && keepsJournal) this.#journalled?.append(setting);
  }

  /** Its messages are for others. */
  #decline(key: string): void {
    this.#takeEarly(key);
    if (this.#declined.size < MAX_EARLY) this.#declined.add(key);
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

  /** It may come back with another setting; after a restart nobody runs this one again. */
  #forget({ kind, name }: Setting): void {
    if (this.#known.delete(keyOf({ kind, name })))
      this.#journalled?.append({ kind, name, algorithm: NONE, options: NONE });
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
    this.#forget(instance.setting);
    instance.local.close(new CoordinationError("instance-refused", "lost", text));
    instance.stop();
    // Opened anew, it would count its grants of this epoch from one.
    if (instance.heedsEpochs) this.options.onExhausted();
    for (const peer of this.options.peers) this.options.send(peer, { type: "ask", kind, name });
  }

  #deliver(early: Omit<Early, "bytes">): void {
    const { from, parcel, by } = early;
    const { type: kind, name, content } = parcel;
    const instance = this.#open.get(keyOf({ kind, name }));
    if (instance === undefined) return this.#closed === null ? this.#hold(early) : undefined;
    // If it is of another algorithm or has other options, its sender has been refused.
    const isMeant = instance.setting.algorithm === content.type && !instance.agreement.isStranger(from);
    if (!isMeant || !("body" in content)) return;
    if (by === "udp" && !instance.multicasts) return this.options.onStray(from, parcel);
    instance.receive(from, content.body);
  }

  /** The announcement is on its way, or was lost with an earlier run of this process: it is asked for. */
  #hold(early: Omit<Early, "bytes">): void {
    const { from, parcel } = early;
    const { type: kind, name } = parcel;
    const key = keyOf({ kind, name });
    if (this.#declined.has(key)) return;
    const held = this.#early.get(key) ?? [];
    const bytes = JSON.stringify(parcel).length;
    if (this.#earlyCount >= MAX_EARLY || this.#earlyBytes + bytes > MAX_EARLY_BYTES) {
      const text = `${this.#earlyCount} messages of unknown elections, locks and channels wait, of ${this.#earlyBytes} bytes: more are dropped`;
      return this.options.log.once("too-early", text);
    }
    if (held.length === 0) {
      this.#early.set(key, held);
      setTimeout(() => this.#giveUp(held, key), EARLY_MS).unref();
    }
    if (!held.some((other) => other.from === from)) this.options.send(from, { type: "ask", kind, name });
    held.push({ ...early, bytes });
    this.#earlyCount += 1;
    this.#earlyBytes += bytes;
  }

  #takeEarly(key: string): readonly Early[] {
    const held = this.#early.get(key) ?? [];
    this.#early.delete(key);
    this.#earlyCount -= held.length;
    this.#earlyBytes -= held.reduce((sum, { bytes }) => sum + bytes, 0);
    return held;
  }

  #giveUp(held: readonly Early[], key: string): void {
    if (this.#early.get(key) !== held) return; // They have been taken, and others have come since.
    this.#takeEarly(key);
    const text = `dropped ${held.length} messages of ${key}, since nobody has announced it within ${EARLY_MS} ms`;
    this.options.log.once("unannounced", text);
  }
}

/** A message, of an instance that may not have been announced yet. */
interface Early {
  readonly from: NodeId;
  readonly parcel: Parcel;
  readonly by: Transport;
  readonly bytes: number;
}

/** In the journal, of a name that is not used any more. */
const NONE = "";

type Named = Pick<Setting, "kind" | "name">;

const keyOf = ({ kind, name }: Named): string => `${kind}/${name}`;

/** Its messages look otherwise there: the two must not run it together. What is not known here at all, others refuse by name. */
function otherRelease(setting: Setting, form: number): UsageError | null {
  const own = messageForm(setting);
  if (own === 0 || own === form) return null;
  const text = `expected the messages of ${setting.algorithm} to be those of this member's release, got another release's: run one release at all members that use the ${setting.kind} "${setting.name}"`;
  return new UsageError("other-release", text);
}

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
  return JSON.stringify({ order, reliable: carrier === "views", transport: transportOf(options) });
}

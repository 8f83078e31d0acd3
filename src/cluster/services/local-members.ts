/** The calls of `member.cluster`, which change the member list. */
import { UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId } from "../../core/protocol.ts";
import { nextConfiguration } from "../../protocols/service/coordination-service/member-list.ts";
import type {
  Founder,
  ListedMember,
  MemberList,
  MemberOperation,
  MemberStep,
} from "../../protocols/service/coordination-service/member-words.ts";
import { MAX_STEPS } from "../../protocols/service/coordination-service/member-words.ts";
import { asItStands } from "../../protocols/service/coordination-service/snapshot.ts";
import type { Data } from "../../protocols/service/coordination-service/state.ts";
import { isLoopback, parseHostPort } from "../../runtime/host-port.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import type { TcpTransport } from "../../runtime/transport/tcp.ts";
import { snapshotFile } from "../snapshot/snapshot-file.ts";
import type { AddOptions, ClusterMember, ClusterMembers, MemberChange, NewMember } from "./cluster-api.ts";
import { founded } from "./founders.ts";
import * as may from "./known-options.ts";
import { requireOptions } from "./known-options.ts";
import type { Membership } from "./membership.ts";
import { callRules, type IsWanted } from "./state/calls.ts";
import type { ServiceHost } from "./state/service-host.ts";
import type { CallOptions } from "./state/state-api.ts";

export interface LocalMembersOptions {
  readonly service: ServiceHost;
  readonly cluster: string;
  /** Whether traffic may leave this machine, because it is encrypted or because the user has allowed it. */
  readonly mayLeave: boolean;
  /** Returns the founders of the cluster, with their journals. They are the members until the first change. */
  founders(): readonly Founder[];
}

/** How often to check whether a change has taken effect. */
const LOOK_EVERY_MS = 20;
/** A leader that cannot transfer leadership within this time continues to lead, and receives the request again. */
const ASK_AGAIN_MS = 500;

const newRules = { id: may.needed(may.natural), address: may.needed(may.text) };
const type = may.needed(may.oneOf("add", "promote", "remove"));
const knownRules = { type, id: may.needed(may.natural) };

/** Returns the object at `member.cluster` for a member that is joining. */
export function membersOf(
  { config, founders, identity }: Pick<Membership, "config" | "founders" | "identity">,
  service: ServiceHost,
  transport: Pick<TcpTransport<never>, "address">,
): LocalMembers {
  return new LocalMembers({
    service,
    cluster: config.cluster,
    mayLeave: config.tls !== null || !isLoopback(transport.address.host),
    founders: () => founded(founders, config, identity),
  });
}

/** The object at `member.cluster`. */
export class LocalMembers implements ClusterMembers {
  readonly #around: LocalMembersOptions;
  constructor(around: LocalMembersOptions) {
    this.#around = around;
  }

  members(options: CallOptions = {}): Promise<readonly ClusterMember[]> {
    requireOptions("members", options, callRules);
    const { service } = this.#around;
    return service.call({ what: "the member list", changes: false, ...options }, async () => {
      const list = await this.#list();
      const leader = service.leader;
      return list.members.map((member) => shown(list, member, leader));
    });
  }

  add(member: NewMember, options: AddOptions = {}): Promise<void> {
    requireOptions("add", options, { ...callRules, learner: may.flag });
    const { learner = false, ...call } = options;
    const { id, address } = this.#new("add", member);
    return this.#change(`adding member ${id}`, stepOf({ type: "add", id, address, learner }), call);
  }

  promote(id: NodeId, options: CallOptions = {}): Promise<void> {
    return this.#change(`promoting member ${id}`, stepOf({ type: "promote", id: requireId(id) }), options);
  }

  remove(id: NodeId, options: CallOptions = {}): Promise<void> {
    return this.#change(`removing member ${id}`, stepOf({ type: "remove", id: requireId(id) }), options);
  }

  change(changes: readonly MemberChange[], options: CallOptions = {}): Promise<void> {
    if (!Array.isArray(changes) || changes.length === 0 || changes.length > MAX_STEPS)
      throw new UsageError("bad-option", unexpected("changes of change()", `a list of 1 to ${MAX_STEPS}`, changes));
    const steps = (changes as readonly MemberChange[]).map((each) => stepOf(this.#changeIn(each)));
    const what = steps.map(({ type: kind, member }) => `${doing[kind]} member ${member}`).join(", ");
    return this.#change(what, { type: "changeMembers", steps }, options);
  }

  replace(id: NodeId, by: NewMember, options: CallOptions = {}): Promise<void> {
    const { id: member, address } = this.#new("replace", by);
    const operation = { type: "addMember", member, address, isVoter: true, replaces: requireId(id) } as const;
    return this.#change(`replacing member ${id}`, operation, options);
  }

  move(id: NodeId, address: string, options: CallOptions = {}): Promise<void> {
    this.#requireAddress(address);
    return this.#change(`moving member ${id}`, { type: "moveMember", member: requireId(id), address }, options);
  }

  transfer(id: NodeId, options: CallOptions = {}): Promise<void> {
    requireOptions("transfer", options, callRules);
    const { service } = this.#around;
    return service.call({ what: `passing leadership to member ${id}`, changes: true, ...options }, async (isWanted) => {
      const { voters } = await this.#list();
      if (!voters.includes(requireId(id)))
        throw new UsageError("unknown-member", unexpected("a member that votes", `one of ${voters.join(", ")}`, id));
      const { clock } = service.platform;
      for (let asked = Number.NEGATIVE_INFINITY; service.leader !== id && isWanted(); ) {
        if (clock.now() - asked >= ASK_AGAIN_MS) {
          service.transfer(id);
          asked = clock.now();
        }
        await this.#wait();
      }
    });
  }

  settled(options: CallOptions = {}): Promise<void> {
    requireOptions("settled", options, callRules);
    const call = { what: "waiting for membership changes", changes: false, ...options };
    return this.#around.service.call(call, async (isWanted) => {
      while (nextConfiguration(await this.#list()) !== null && isWanted()) await this.#wait();
    });
  }

  snapshot(options: CallOptions = {}): Promise<AsyncIterable<Uint8Array>> {
    requireOptions("snapshot", options, callRules);
    const { service, cluster } = this.#around;
    return service.call({ what: "saving a snapshot", changes: false, ...options }, async () => {
      // This is a read barrier: this replica now has everything that was acknowledged earlier.
      await service.query({ type: "members" });
      const data = service.look(({ replica }) => asItStands(replica.data)) as Data;
      const { clock, timers } = service.platform;
      const header = {
        cluster,
        member: service.self,
        at: clock.wall(),
        revision: data.keyspace.revision,
        salvaged: null,
      };
      return snapshotFile(header, data, () => sleep(timers, 0));
    });
  }

  #wait(): Promise<void> {
    return sleep(this.#around.service.platform.timers, LOOK_EVERY_MS, { ref: false });
  }

  #change(what: string, operation: MemberOperation, options: CallOptions): Promise<void> {
    requireOptions("a membership change", options, callRules);
    const { service } = this.#around;
    service.use();
    return service.call({ what, changes: true, ...options }, async (isWanted) => {
      if ((await this.#known()) === null) await this.#found(isWanted);
      await service.submit(operation, isWanted);
    });
  }

  /** Records the founders in the log as the initial list. This must happen before the first change. */
  async #found(isWanted: IsWanted): Promise<void> {
    await this.#around.service.submit({ type: "foundMembers", members: [...this.#around.founders()] }, isWanted);
  }

  async #known(): Promise<MemberList | null> {
    const { answer } = await this.#around.service.query({ type: "members" });
    return answer.list;
  }

  async #list(): Promise<MemberList> {
    return (await this.#known()) ?? foundedBy(this.#around.founders());
  }

  /** @throws UsageError */
  #new(call: string, member: NewMember): NewMember {
    requireOptions(call, member, newRules);
    this.#requireAddress(member.address);
    return member;
  }

  /** @throws UsageError */
  #changeIn(change: MemberChange): MemberChange {
    const isNew = (change as Partial<MemberChange> | null)?.type === "add";
    requireOptions<object>("change", change, isNew ? { ...knownRules, ...newRules, learner: may.flag } : knownRules);
    if (change.type === "add") this.#requireAddress(change.address);
    return change;
  }

  #requireAddress(address: unknown): void {
    const place = typeof address === "string" ? parseHostPort(address) : null;
    if (place === null || place.port === 0)
      throw new UsageError("bad-option", unexpected("address", "host:port with a port from 1 to 65535", address));
    if (!this.#around.mayLeave && !isLoopback(place.host))
      throw new UsageError(
        "bad-option",
        `${unexpected("address", "one on this machine, since this member has no tls", address)}: pass tls to join(), or tls: "off" on a trusted network`,
      );
  }
}

function requireId(id: unknown): NodeId {
  if (Number.isSafeInteger(id) && (id as number) >= 0) return id as NodeId;
  throw new UsageError("bad-option", unexpected("a member's id", "a whole number of 0 or more", id));
}

function stepOf(change: MemberChange): MemberStep {
  if (change.type === "promote") return { type: "promoteMember", member: change.id };
  if (change.type === "remove") return { type: "removeMember", member: change.id };
  const { id, address, learner = false } = change;
  return { type: "addMember", member: id, address, isVoter: !learner, replaces: null };
}

const doing = { addMember: "adding", promoteMember: "promoting", removeMember: "removing" } as const;

function foundedBy(founders: readonly Founder[]): MemberList {
  const ids = founders.map(({ member }) => member);
  const members = founders.map((founder): ListedMember => ({ ...founder, wish: "voter", replaces: null }));
  return { revision: 0, founders: ids, members, removed: [], voters: ids, learners: [] };
}

function shown(
  { voters, learners }: MemberList,
  { member: id, address, wish }: ListedMember,
  leader: NodeId | null,
): ClusterMember {
  const isIn = wish === "learner" ? learners.includes(id) : voters.includes(id);
  const role = wish === "leaving" ? "leaving" : isIn ? wish : "joining";
  return { id, address, role, isLeader: id === leader };
}
